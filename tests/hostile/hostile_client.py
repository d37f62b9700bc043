"""A client that keeps no rule: speaks the records of a session itself, over the local socket.

wire/open.h, wire/record.h and wire/rings/ring_control.h describe what is packed here. The numbers
of the calls come from the build's generated header. tests/hostile/*_test.py are its users.
"""
import array
import contextlib
import ctypes
import mmap
import os
import pathlib
import re
import socket
import struct
import time

OPEN_REQUEST = 0x5157574c
PROTOCOL = 13  # the last version in which an opening may end without a range
WINDOWS = ((0x200000000000, 1 << 44), (0x500000000000, 1 << 44))
RECORD_HEADER = struct.Struct("<IHHIIQ")
DOWN_HEADER = struct.Struct("<IHHiIQ")
PAGE = 4096
# Offsets in a ring's first page.
CLOSED, WRITTEN, RELEASED, DATA_BELL, SPACE_BELL = 16, 64, 128, 192, 256
SYSTEM_CALL_FUTEX = 202
FUTEX_WAKE = 1
MAX_DESCRIPTORS = 64
REPLY, ERROR = 1, 6  # DownKind

_libc = ctypes.CDLL(None, use_errno=True)


def u32(value):
    return struct.pack("<I", value)


def i32(value):
    return struct.pack("<i", value)


def u64(value):
    return struct.pack("<Q", value)


def blob(data):
    data = data.encode() if isinstance(data, str) else data
    return u32(len(data)) + data


def list32(values):
    return u32(len(values)) + b"".join(map(u32, values))


def list64(values):
    return u32(len(values)) + struct.pack(f"<{len(values)}Q", *values)


def call_numbers(build):
    """Name → number of every call of the build's protocol."""
    text = (pathlib.Path(build) / "gen" / "longwire" / "call_ids.h").read_text()
    return {name: int(number) for name, number in re.findall(r"^\s+(\w+) = (\d+),", text, re.M)}


def open_request(program="hostile", host="hostile", environment=(), windows=WINDOWS, pid=None,
                 lanes=0, shares_memory=0):
    return (u32(OPEN_REQUEST) + u32(PROTOCOL) + u32(os.getpid() if pid is None else pid)
            + blob(host) + blob(program) + u32(700)
            + u32(len(environment)) + b"".join(map(blob, environment))
            + u32(len(windows)) + b"".join(u64(base) + u64(size) for base, size in windows)
            + u32(lanes) + u64(1 << 20) + u64(512 << 10) + u32(shares_memory))


def sentence_of(reply):
    """Why an opening was refused; empty if it was not."""
    code, length = struct.unpack_from("<iI", reply, 8)
    return reply[16:16 + length].decode(errors="replace") if code else ""


@contextlib.contextmanager
def as_user(uid, gid=60):
    """Runs as another user, whom the daemon sees as the peer of sockets connected here."""
    os.setegid(gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


class Ring:
    """One direction of a session; written to or read from without any check."""

    def __init__(self, descriptor):
        size = os.fstat(descriptor).st_size
        self.bytes = size - PAGE
        self.memory = mmap.mmap(descriptor, size)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def get(self, offset, count=8):
        return int.from_bytes(self.memory[offset:offset + count], "little")

    def put(self, offset, value, count=8):
        self.memory[offset:offset + count] = value.to_bytes(count, "little")

    @property
    def closed(self):
        """0 while it is open."""
        return self.get(CLOSED, 4)

    def ring_bell(self, bell):
        self.put(bell, (self.get(bell, 4) + 1) & 0xffffffff, 4)
        _libc.syscall(SYSTEM_CALL_FUTEX, ctypes.c_void_p(self.base + bell), FUTEX_WAKE, 0x7fffffff,
                      None, None, 0)

    def write(self, data, seconds=10):
        """Waits for room; ConnectionError once the other side closed, TimeoutError after the
        seconds."""
        end = time.monotonic() + seconds
        while self.bytes - (self.get(WRITTEN) - self.get(RELEASED)) < len(data):
            if self.closed:
                raise ConnectionError(f"the ring was closed with {self.closed}")
            if time.monotonic() > end:
                raise TimeoutError("the ring stays full")
            time.sleep(0.0002)
        written = self.get(WRITTEN)
        at = written % self.bytes
        first = min(len(data), self.bytes - at)
        self.memory[PAGE + at:PAGE + at + first] = data[:first]
        self.memory[PAGE:PAGE + len(data) - first] = data[first:]
        self.put(WRITTEN, written + len(data))
        self.ring_bell(DATA_BELL)
        return written

    def read(self, position, count):
        at = position % self.bytes
        first = min(count, self.bytes - at)
        return self.memory[PAGE + at:PAGE + at + first] + self.memory[PAGE:PAGE + count - first]

    def release(self, position):
        self.put(RELEASED, position)
        self.ring_bell(SPACE_BELL)


class Client:
    """One session. `code` is 0, or why it was refused, then `sentence` says so."""

    def __init__(self, door, build, uid=None, **request):
        self.calls = call_numbers(build)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(60)
        with as_user(uid) if uid is not None else contextlib.nullcontext():
            self.socket.connect(str(door))
        self.socket.send(open_request(**request))
        descriptors = array.array("i")
        self.reply, ancillary, _, _ = self.socket.recvmsg(
            200 << 10, socket.CMSG_LEN(MAX_DESCRIPTORS * 4))
        for _, kind, data in ancillary:
            if kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[:len(data) // 4 * 4])
        self.descriptors = list(descriptors)
        if not self.reply:
            raise ConnectionError("the server closed the connection without a reply")
        self.code, = struct.unpack_from("<i", self.reply, 8)
        length, = struct.unpack_from("<I", self.reply, 12)
        self.sentence = self.reply[16:16 + length].decode(errors="replace")
        self.session, = struct.unpack_from("<Q", self.reply, 16 + length)
        if self.code == 0:
            self.up, self.down = Ring(self.descriptors[0]), Ring(self.descriptors[1])
            self.cursor = self.down.get(RELEASED)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []

    def worker_pid(self):
        """The worker's process id, which the reply names."""
        role = b"longwire-worker"
        at = self.reply.find(role) + len(role)
        length, = struct.unpack_from("<I", self.reply, at)
        return struct.unpack_from("<I", self.reply, at + 4 + length)[0]

    def record(self, call, arguments=b"", thread=1, context=1, stream=0, flags=0):
        """One call's record; `call` is a name or any number."""
        number = self.calls[call] if isinstance(call, str) else call
        size = RECORD_HEADER.size + len(arguments)
        data = RECORD_HEADER.pack(size, number, flags, thread, context, stream) + arguments
        return data + b"\0" * (-len(data) % 8)

    def send(self, call, arguments=b"", **header):
        """Returns the call's position."""
        return self.up.write(self.record(call, arguments, **header))

    def messages(self, seconds=5):
        """(kind, code, position, payload) of what comes down, until the seconds are over."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            while self.down.get(WRITTEN) - self.cursor >= DOWN_HEADER.size:
                size, kind, _, code, _, position = DOWN_HEADER.unpack(
                    self.down.read(self.cursor, DOWN_HEADER.size))
                if self.down.get(WRITTEN) - self.cursor < size:
                    break
                payload = self.down.read(self.cursor + DOWN_HEADER.size, size - DOWN_HEADER.size)
                self.cursor += -(-size // 8) * 8
                self.down.release(self.cursor)
                yield kind, code, position, payload
            if self.down.closed:
                return
            time.sleep(0.001)

    def skip(self):
        """Takes all that has come down, unread."""
        self.cursor = self.down.get(WRITTEN)
        self.down.release(self.cursor)

    def ask(self, call, arguments=b"", seconds=20, **header):
        """(code, payload) of the call's reply; (None, b"") if none came."""
        position = self.send(call, arguments, **header)
        for kind, code, where, payload in self.messages(seconds):
            if kind == REPLY and where == position:
                return code, payload
        return None, b""

    def create_context(self):
        """Context 1 on the first device, with stream 5."""
        code, _ = self.ask("lwContextCreate", u32(1) + i32(0) + u32(0) + b"\1", context=0)
        self.send("lwStreamCreate", u64(5) + u32(1) + i32(0))
        return code

    def lease(self, sizes):
        """(code, ids) of chunks of the first device's memory."""
        code, payload = self.ask("lwLease", i32(0) + list64(sizes))
        if code != 0:
            return code, []
        count, = struct.unpack_from("<I", payload)
        return code, list(struct.unpack_from(f"<{count}Q", payload, 4))


def resident_mib(pid):
    """Memory of a process that is resident, in MiB."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+)", status, re.M)[1]) // 1024
