"""A relay between link and server that reads HTTP/2 frames, and cuts where a plan says.

A cut is (direction, unit, count): when that number of frames, messages of gRPC or bytes has gone
that way since the last cut, all connections are broken, exactly behind the last of them.
"""
import socket
import struct
import threading
import time

PREFACE = 24  # bytes that a client sends first
FRAME_HEADER = 9
DATA = 0
PADDED = 8
UP, DOWN = "up", "down"


class Positions:
    """Follows one direction of a connection; says where in what comes frames and messages end."""

    def __init__(self, preface):
        self.skip = preface
        self.header = b""
        self.left = 0       # of the frame
        self.data_of = None  # the stream of a DATA frame
        self.messages = {}  # stream → [bytes of the message's header so far, bytes that are left]

    def take(self, chunk):
        """[(unit, offset behind its end)…] of this chunk, in order."""
        ends, at = [], 0
        while at < len(chunk):
            if self.skip:
                step = min(self.skip, len(chunk) - at)
                self.skip -= step
                at += step
                continue
            if self.left == 0 and len(self.header) < FRAME_HEADER:
                step = min(FRAME_HEADER - len(self.header), len(chunk) - at)
                self.header += chunk[at:at + step]
                at += step
                if len(self.header) == FRAME_HEADER:
                    self.left = int.from_bytes(self.header[:3], "big")
                    kind, flags = self.header[3], self.header[4]
                    stream = int.from_bytes(self.header[5:], "big") & 0x7fffffff
                    self.data_of = stream if kind == DATA and not flags & PADDED else None
                    if self.left == 0:
                        self.header = b""
                        ends.append(("frame", at))
                continue
            step = min(self.left, len(chunk) - at)
            if self.data_of is not None:
                ends += [("message", at + end) for end in self._messages(chunk[at:at + step])]
            self.left -= step
            at += step
            if self.left == 0:
                self.header = b""
                ends.append(("frame", at))
        return ends

    def _messages(self, data):
        state = self.messages.setdefault(self.data_of, [b"", 0])
        ends, at = [], 0
        while at < len(data):
            if state[1] == 0:
                step = min(5 - len(state[0]), len(data) - at)
                state[0] += data[at:at + step]
                at += step
                if len(state[0]) == 5:
                    state[1] = struct.unpack(">I", state[0][1:])[0]
                    state[0] = b""
                    if state[1] == 0:
                        ends.append(at)
                continue
            step = min(state[1], len(data) - at)
            state[1] -= step
            at += step
            if state[1] == 0:
                ends.append(at)
        return ends


class Relay:
    def __init__(self, port, cuts=(), target="127.0.0.1", enter=lambda: None):
        """`enter` is called by the thread that makes the sockets: to go to a namespace."""
        self.target = (target, port)
        self.enter = enter
        self.listening = threading.Event()
        self.lock = threading.Lock()
        self.cuts = list(cuts)
        self.made = []    # cuts that happened
        self.closed = 0   # connections closed at once, as nothing listens at the target
        self.counts = {}  # direction → units since the last cut
        self.open = set()
        self.delay = lambda: 0  # seconds that the next piece takes longer
        threading.Thread(target=self._serve, daemon=True).start()
        self.listening.wait(10)

    def _serve(self):
        self.enter()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.listening.set()
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                onward = socket.create_connection(self.target, 5)
                onward.settimeout(None)
            except OSError:
                client.close()
                self.closed += 1
                continue
            for end in (client, onward):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.open |= {client, onward}
                for source, sink, direction in ((client, onward, UP), (onward, client, DOWN)):
                    threading.Thread(target=self._carry, daemon=True,
                                     args=(source, sink, direction)).start()

    def _carry(self, source, sink, direction):
        positions = Positions(PREFACE if direction == UP else 0)
        try:
            while chunk := source.recv(1 << 16):
                time.sleep(self.delay())
                ends = positions.take(chunk)
                with self.lock:
                    cut = self._where(direction, ends, len(chunk))
                    if cut is not None:
                        try:
                            sink.sendall(chunk[:cut])
                        finally:
                            self._cut()
                        return
                sink.sendall(chunk)
        except OSError:
            pass
        with self.lock:
            self._close((source, sink))

    def _where(self, direction, ends, size):
        """The offset in this chunk at which the next cut is due."""
        if not self.cuts:
            return None
        way, unit, count = self.cuts[0]
        if way != direction:
            return None
        before = self.counts.get(direction, 0)
        due = count - before
        if unit == "byte":
            self.counts[direction] = before + size
            return due if due <= size else None
        mine = [end for kind, end in ends if kind == unit]
        self.counts[direction] = before + len(mine)
        return mine[due - 1] if 0 < due <= len(mine) else None

    def _cut(self):
        self.made.append(self.cuts.pop(0))
        self.counts = {}
        self._close(tuple(self.open))

    def _close(self, ends):
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            self.open.discard(end)

    def cut_all(self, reset=False):
        """Now; with a reset what is on its way is lost as well."""
        with self.lock:
            if reset:
                for end in self.open:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._close(tuple(self.open))

    def close(self):
        self.listener.close()
        with self.lock:
            self._close(tuple(self.open))
