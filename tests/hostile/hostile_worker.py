"""In the place of a worker: lets a real one open the session, and then sends nonsense to keeper,
daemon and warden, over all that a worker has: sockets, rings, the page of gates, its standard
error.

usage: hostile_worker.py REAL_WORKER --control N --up N --down N --keeper N,… [more]
$CUDA_DEVICE_MAX_CONNECTIONS is the seed. worker_test.py is its user.
"""
import array
import contextlib
import mmap
import os
import random
import select
import signal
import socket
import struct
import sys
import time

SECONDS = 1.5  # of nonsense
PAGE = 4096
# The kinds of server/protocol/, with the widths of their fields: 0 stands for a list of numbers of
# 8 bytes, -1 for a text.
KEEPER = {101: (8, 0, 1), 104: (0,), 105: (8,), 107: (8, 0), 109: (8, 8, 8), 111: (8, 8, 8),
          112: (4, 8), 114: (8, 4), 115: (8,), 118: (4,), 119: (8, 8, 8), 121: (8,),
          201: (8,), 203: (8, 4), 204: (8, 8, 8, 8, 8), 205: (8, -1), 301: (4, 4)}
DAEMON = {101: (8, -1, 8, 1), 103: (-1, 8), 111: (4, 8, 4, -1), 2: (8, 4, -1, 8, 4, 1, 0),
          6: (8, 4, 4, 4, -1), 301: (4, 4)}
NUMBERS = (0, 1, 2, 3, 7, 64, 4096, 2 << 20, 64 << 20, 2**31, 2**32 - 1, 2**32, 2**46, 2**63,
           2**64 - 1)


class Nonsense:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.known = list(NUMBERS)

    def number(self, width):
        return (self.random.choice(self.known) & (256**width - 1)).to_bytes(width, "little")

    def field(self, width):
        if width > 0:
            return self.number(width)
        count = self.random.choice((0, 1, 2, 5, 64, 65, 3000))
        if width == 0:
            return struct.pack("<I", count) + b"".join(self.number(8) for _ in range(count))
        text = self.random.choice((b"", b"0" * 64, b"ab" * 32, b"../../../x",
                                   b"\x1b[2J\n\x00\xff" * 9, self.random.randbytes(40)))
        return struct.pack("<I", len(text)) + text

    def packet(self, kinds):
        kind = self.random.choice(list(kinds))
        packet = struct.pack("<I", kind) + b"".join(map(self.field, kinds[kind]))
        if self.random.random() < 0.1:
            packet = packet[:self.random.randrange(len(packet))]
        return packet or b"\0"

    def descriptors(self):
        """Now and then some, of files that are none of what is expected."""
        if self.random.random() < 0.7:
            return []
        kind = self.random.randrange(5)
        if kind == 0:
            return list(os.pipe())
        if kind == 1:
            return [os.open("/", os.O_RDONLY)]
        if kind == 2:
            return [os.eventfd(0)]
        file = os.memfd_create("nonsense", os.MFD_ALLOW_SEALING)
        os.ftruncate(file, self.random.choice((0, 24, 4096, 1 << 20, 1 << 40)))
        return [file] * self.random.choice((1, 1, 2, 20))

    def send(self, link, kinds):
        files = self.descriptors()
        with contextlib.suppress(OSError):
            link.sendmsg([self.packet(kinds)],
                         [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
                         if files else [], socket.MSG_DONTWAIT)
        for file in set(files):
            os.close(file)

    def hear(self, link):
        """Takes numbers out of what comes, for later packets."""
        with contextlib.suppress(OSError):
            data, extra, _, _ = link.recvmsg(200 << 10, 4096, socket.MSG_DONTWAIT)
            for at in range(4, min(len(data) - 7, 100), 4):
                number, = struct.unpack_from("<Q", data, at)
                if len(self.known) < 300:
                    self.known.append(number)
            for _, _, files in extra:
                for file in array.array("i", files[:len(files) // 4 * 4]):
                    os.close(file)

    def falsify(self, memory, last):
        """A number of 8 bytes somewhere."""
        at = self.random.randrange(last // 8) * 8
        memory[at:at + 8] = self.number(8)


def receive(link):
    data, extra, _, _ = link.recvmsg(200 << 10, 4096)
    files = array.array("i")
    for _, _, packed in extra:
        files.frombytes(packed[:len(packed) // 4 * 4])
    return data, list(files)


def send(link, data, files):
    link.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
                 if files else [])


def open_session(real, control, arguments, nonsense):
    """A real worker opens it. The descriptors of the page of gates, or [] if there is none."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    position = arguments.index("--control") + 1
    arguments = [*arguments]
    arguments[position] = str(its.fileno())
    request, page = receive(control)
    child = os.fork()
    if child == 0:
        os.set_inheritable(its.fileno(), True)
        os.execv(real, [real, *arguments])
    its.close()
    send(ours, request, page)
    reply, files = receive(ours)
    kind = nonsense.random.randrange(8)
    if kind == 0:  # another number somewhere
        at = nonsense.random.randrange(8, len(reply) - 8)
        reply = reply[:at] + nonsense.number(nonsense.random.choice((1, 4, 8))) + reply[at + 8:]
    elif kind == 1:
        reply = nonsense.packet(DAEMON)
    elif kind == 2:
        files = nonsense.descriptors()
    send(control, reply, files)
    return child, page


def write_nonsense(nonsense, control, keepers, memories):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for keeper in keepers:
            for _ in range(20):
                nonsense.send(keeper, KEEPER)
                if nonsense.random.random() < 0.5:
                    nonsense.hear(keeper)
        nonsense.send(control, DAEMON)
        if nonsense.random.random() < 0.5:
            nonsense.hear(control)
        for memory, last in memories:
            nonsense.falsify(memory, last)
        with contextlib.suppress(OSError):
            os.set_blocking(2, False)
            os.write(2, nonsense.random.choice((b"\x1b]0;x\x07\n", b"longwire-warden: it is over\n",
                                                b"x" * 9000, b"\xe2\x80\xae\n", b"\0\n")))
        select.select([], [], [], 0.002)


def main():
    real, *arguments = sys.argv[1:]
    options = dict(zip(arguments[::2], arguments[1::2]))
    nonsense = Nonsense(int(os.environ["CUDA_DEVICE_MAX_CONNECTIONS"]))
    control = socket.socket(fileno=int(options["--control"]))
    keepers = [socket.socket(fileno=int(number)) for number in options["--keeper"].split(",")]
    memories = []
    for number in (options["--up"], options["--down"]):
        # The first page, which has the cursors, and what is in the ring's beginning.
        memories.append((mmap.mmap(int(number), os.fstat(int(number)).st_size), 2 * PAGE))
    child = 0
    with contextlib.suppress(OSError, ValueError, IndexError):
        child, page = open_session(real, control, arguments, nonsense)
        if page:
            size = os.fstat(page[0]).st_size
            memories.append((mmap.mmap(page[0], size), size))
    if child and nonsense.random.random() < 0.5:
        os.kill(child, signal.SIGKILL)
    write_nonsense(nonsense, control, keepers, memories)
    for keeper in keepers:
        with contextlib.suppress(OSError):
            keeper.shutdown(nonsense.random.choice((socket.SHUT_RD, socket.SHUT_WR)))
    write_nonsense(nonsense, control, keepers, memories)
    if child:
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
    os._exit(nonsense.random.randrange(3))


if __name__ == "__main__":
    main()
