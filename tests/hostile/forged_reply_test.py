#!/usr/bin/env python3
"""A server that lies when a session opens: a relay at a local socket changes one field of a true
reply. The program gets an error with a sentence, or passes; it does not crash, and its memory stays
as it was."""
import array
import os
import pathlib
import random
import socket
import struct
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import server  # noqa: E402

PROGRAM = "guarded_memory.static"
GUARD, GUARD_BYTES = 0x100000000000, 64 << 20  # as in tests/apps/guarded_memory.cu
CHANGED = 9
REFUSED = "the server's answer is not accepted"
MESSAGE = 200 << 10
DESCRIPTORS = 64
TOP = 1 << 63


class Reply:
    """Where the fields of an OpenReply lie (wire/open.cc): name → (offset, format)."""

    def __init__(self, data):
        self.data, self.at, self.fields = data, 8, {}
        self.field("code", "<i")
        self.at += 4 + self.peek("<I")  # the sentence
        for name, form in (("session", "<Q"), ("driver_version", "<i"), ("least", "<i"),
                           ("greatest", "<i"), ("granularity", "<Q"), ("upload_window", "<Q"),
                           ("stream_share", "<Q"), ("lanes", "<I"), ("segment", "<Q"),
                           ("largest_chunk", "<Q"), ("devices", "<I")):
            self.field(name, form)
        self.at += 4 + self.peek("<I") + 16  # name and UUID of the first device
        self.field("total_memory", "<Q")
        self.attributes = self.field("attributes", "<I")
        self.first_attribute = self.at
        self.at += 12 * self.attributes
        self.field("base", "<Q")
        self.field("bytes", "<Q")
        if self.field("leased", "<I"):
            self.field("chunk", "<Q")
            self.field("chunk_bytes", "<Q")

    def peek(self, form):
        return struct.unpack_from(form, self.data, self.at)[0]

    def field(self, name, form):
        value = self.peek(form)
        self.fields[name] = (self.at, form)
        self.at += struct.calcsize(form)
        return value

    def value(self, name):
        offset, form = self.fields[name]
        return struct.unpack_from(form, self.data, offset)[0]

    def put(self, name, value):
        offset, form = self.fields[name]
        struct.pack_into(form, self.data, offset, value)

    def put_attribute(self, number, value):
        for at in range(self.first_attribute, self.first_attribute + 12 * self.attributes, 12):
            if struct.unpack_from("<i", self.data, at)[0] == number:
                struct.pack_into("<ii", self.data, at + 4, 0, value)


def set_to(**values):
    def change(reply):
        for name, value in values.items():
            reply.put(name, value)
    return change


def plus(name, amount):
    return lambda reply: reply.put(name, reply.value(name) + amount)


def flip(share):
    """One byte, that share of the way through the reply."""
    def change(reply):
        reply.data[8 + int(share * (len(reply.data) - 8))] ^= 0xff
    return change


# What must be refused, each by a sentence.
FORGED = {
    # Pinned memory begins behind the first quarter.
    "the program's memory as window": set_to(base=GUARD - (1 << 30), bytes=4 << 30),
    "the program's memory and no more": set_to(base=GUARD, bytes=GUARD_BYTES),
    "a window at the program's memory": set_to(base=GUARD),
    "a window at no address": set_to(base=0),
    "an odd window": plus("base", 4096),
    "a window before the one offered": plus("base", -(1 << 30)),
    "a window of 2^63 bytes": set_to(bytes=TOP),
    "a window of all addresses": set_to(base=1 << 21, bytes=2 ** 64 - (1 << 22)),
    "a window of no bytes": set_to(bytes=0),
    "granularity 0": set_to(granularity=0),
    "granularity 3": set_to(granularity=3),
    "granularity 2^63": set_to(granularity=TOP),
    "no upload window": set_to(upload_window=0),
    "an endless upload window": set_to(upload_window=2 ** 64 - 1),
    "no share of a stream": set_to(stream_share=0),
    "an odd largest chunk": set_to(largest_chunk=(1 << 21) + 1),
    "a largest chunk of 2^63 bytes": set_to(largest_chunk=TOP),
    "a leased chunk of one byte": set_to(chunk_bytes=1),
    "a leased chunk of 2^63 bytes": set_to(chunk_bytes=TOP),
    "an odd segment": plus("segment", 4096),
    "warps of no threads": lambda reply: reply.put_attribute(10, 0),
}
# What cannot be read any more.
UNREADABLE = {
    "a window that wraps around": set_to(base=2 ** 64 - 4096, bytes=8192),
    "2^32 - 1 devices": set_to(devices=2 ** 32 - 1),
    "2^32 - 1 attributes": set_to(attributes=2 ** 32 - 1),
    "2^32 - 1 leased chunks": set_to(leased=2 ** 32 - 1),
    "2^32 - 1 lanes": set_to(lanes=2 ** 32 - 1),
    "one lane more": plus("lanes", 1),
    "no segment": set_to(segment=0),
}


class Relay:
    """Between one program and the daemon's local socket."""

    def __init__(self, door, path, change):
        self.door, self.path, self.change = door, path, change
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listening.bind(str(path))
        self.listening.listen(4)
        self.listening.settimeout(60)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listening.close()
        self.thread.join(10)
        os.unlink(self.path)

    def run(self):
        try:
            program, _ = self.listening.accept()
        except OSError:
            return
        with program, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as daemon:
            daemon.connect(str(self.door))
            daemon.send(program.recv(MESSAGE))
            descriptors = array.array("i")
            data, ancillary, _, _ = daemon.recvmsg(MESSAGE, socket.CMSG_LEN(DESCRIPTORS * 4))
            for _, _, numbers in ancillary:
                descriptors.frombytes(numbers[:len(numbers) // 4 * 4])
            reply = Reply(bytearray(data))
            self.change(reply)
            program.sendmsg([bytes(reply.data)],
                            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
            for descriptor in descriptors:
                os.close(descriptor)
            try:
                program.recv(1)  # until the program has gone
            except OSError:
                pass


class ForgedReplyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def run_with(self, change, program=PROGRAM):
        path = self.longwire.runtime / "forged"
        with Relay(self.longwire.door, path, change):
            return self.longwire.run(program, server=f"unix:{path}")

    def expect_unharmed(self, result):
        """Passed, or ended by itself with an error."""
        self.assertNotEqual(CHANGED, result.code, result.out)
        self.assertIn(result.code, (0, 1), f"{result}; {self.longwire.log_tail()}")

    def test_a_true_reply(self):
        result = self.run_with(lambda reply: None)
        self.assertEqual((0, "PASSED\n"), (result.code, result.out), result.err)

    def test_forged_fields_are_refused(self):
        for name, change in FORGED.items():
            with self.subTest(name):
                result = self.run_with(change)
                self.expect_unharmed(result)
                self.assertEqual(1, result.code, result.out)
                self.assertIn(REFUSED, result.err)

    def test_what_cannot_be_read(self):
        for name, change in UNREADABLE.items():
            with self.subTest(name):
                result = self.run_with(change)
                self.expect_unharmed(result)
                self.assertEqual(1, result.code, result.out)
                self.assertIn("longwire: ", result.err)

    def test_other_programs(self):
        for program in ("vector_add.static", "managed_memory.static", "mapped_memory.static",
                        "graph_memory.static", "host_functions.static"):
            with self.subTest(program):
                result = self.run_with(FORGED["the program's memory as window"], program)
                self.assertEqual(1, result.code, result)
                self.assertIn(REFUSED, result.err)

    def test_single_bytes(self):
        """Text, versions and limits among them: many changes are as good as the truth."""
        shares = random.Random(26)
        for _ in range(24):
            share = shares.random()
            with self.subTest(share):
                self.expect_unharmed(self.run_with(flip(share)))


if __name__ == "__main__":
    unittest.main()
