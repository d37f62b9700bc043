"""Sessions with more than half of a device's memory, which move away and come back at once: all
that they had where they left is free for them again."""
import ctypes
import json
import subprocess
import sys
import tempfile
import unittest

import server
from two_servers import TwoServers

MIB = 1 << 20
DEVICE = 512  # MiB


def hold(count, each):
    """The program: pieces of `each` MiB with other bytes in each, until its standard input ends."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        code = getattr(cuda, name)(*arguments)
        assert code == 0, (name, code)
    context, addresses = ctypes.c_void_p(), []
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    for number in range(count):
        address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(each * MIB))
        call("cuMemsetD8_v2", address, ctypes.c_ubyte(number % 255 + 1),
             ctypes.c_size_t(each * MIB))
        addresses.append(address)
    call("cuCtxSynchronize")
    print("READY", flush=True)
    sys.stdin.read()
    there = ctypes.create_string_buffer(each * MIB)
    for number, address in enumerate(addresses):
        call("cuMemcpyDtoH_v2", there, address, ctypes.c_size_t(each * MIB))
        assert there.raw == bytes([number % 255 + 1]) * (each * MIB), number
    print("PASS", flush=True)


class MovingMemoryTest(TwoServers):
    variables = {}

    def serve(self, **config):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        config = json.dumps({"moves_from": ["any"], "checkpoint_dir": f"{folder}/sessions",
                             **config})
        self.both = [self.enterContext(server.Server(
            config=config, software_devices=devices, software_memory=DEVICE * MIB,
            variables=self.variables))
            for devices in (2, 1)]
        return self.both

    def start_holding(self, longwire, count, each):
        return self.start_ready(longwire, sys.executable, __file__, "--hold", str(count), str(each))

    def expect_pass(self, program):
        out, err = program.communicate(timeout=120)
        self.assertEqual((0, "PASS\n"), (program.returncode, out), (err, self.logs()))

    def expect_moves(self, program):
        """Devices, servers and disk, one behind the other."""
        here, there = self.both

        def does(longwire, *words):
            done = longwire.cli("admin", *map(str, words), timeout=120)
            self.assertEqual(0, done.code, (words, done, self.logs()))
        for to in (1, 0, 1, 0):
            does(here, "migrate", self.session(here)["id"], to)
        for longwire, to in ((here, there), (there, here), (here, there), (there, here)):
            does(longwire, "migrate", self.session(longwire)["id"], to.address)
        for name in ("one", "two"):
            device = self.session(here)["seats"][0].get("device", 0)
            does(here, "checkpoint", self.session(here)["id"], name)
            does(here, "restore", name, device)
        self.expect_pass(program)
        self.expect_empty()

    def test_there_and_back_at_once(self):
        here, _ = self.serve()
        first = self.start_holding(here, 5, 64)
        device = self.session(here)["seats"][0].get("device", 0)
        self.assertEqual(0, device)
        self.expect_moves(first)

    def fills_while_it_moves(self, **config):
        """Whether keepers copied its memory, by the diagram of their events."""
        here, _ = self.serve(**config)
        picture = here.runtime / "memory.svg"
        program = self.start_holding(here, 3, 64)
        watching = subprocess.Popen(
            [here.dist / "bin" / "longwire", "memory", "--server", here.address,
             "--timeline", picture, "--seconds", "15"], env=here.environment(),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.assertIn("watching", watching.stderr.readline())
        for to in (1, 0):
            self.assertEqual(0, self.migrate(here, self.session(here)["id"], to).code, self.logs())
        self.expect_pass(program)
        _, err = watching.communicate(timeout=60)
        self.assertEqual(0, watching.returncode, err)
        self.expect_empty()
        return ">fill</text>" in picture.read_text()

    def test_keepers_copy_from_device_to_device(self):
        self.assertTrue(self.fills_while_it_moves())

    def test_or_workers_do(self):
        self.variables = {"LONGWIRE_DISABLE": "peer-moves"}
        self.assertFalse(self.fills_while_it_moves())

    def test_what_an_earlier_session_left_is_in_nobodys_way(self):
        """Chunks of other sizes, which the keepers keep for the next session."""
        for_others = self.serve()
        for longwire in for_others:
            sizes = ((3, 128), (20, 20)) if longwire is for_others[0] else ((20, 20),)
            left = [self.start_holding(longwire, *one) for one in sizes]
            for program in left:
                self.expect_pass(program)
        self.expect_empty()
        self.expect_moves(self.start_holding(for_others[0], 5, 64))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--hold"]:
        hold(*map(int, sys.argv[2:4]))
    else:
        unittest.main()
