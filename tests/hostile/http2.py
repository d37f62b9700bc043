"""HTTP/2 and gRPC by hand, for what no client library does: streams that stay open, messages that
never end. RFC 9113 describes the frames, link/transport/frame.h what a stream carries.
"""
import select
import socket
import ssl
import struct
import threading

DATA, HEADERS, RESET, SETTINGS, PING_FRAME, GO_AWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_HEADERS, ACKNOWLEDGED = 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
LARGEST_WINDOW = 0x7fffffff
DATA_BYTES = 16384
SERVICE = b"/longwire.transport.Transport/"
FRAME_PING = 8
MOST_STREAMS = 3  # of one connection (link/transport/grpc_setup.cc)
LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
PING = struct.pack("<QQII", 0, 0, 1, FRAME_PING)  # a FrameHeader without a body


def frame(kind, flags, stream, payload=b""):
    return (struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream)
            + payload)


def literal(name, value):
    """A header that no table keeps; `name` is text or an index of the static table."""
    if isinstance(name, int):
        return bytes([name, len(value)]) + value
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def message(payload, announced=None):
    return b"\0" + struct.pack(">I", len(payload) if announced is None else announced) + payload


class Connection:
    """`tls`: an ssl.SSLContext. Reads and drops what comes, on a thread of its own."""

    def __init__(self, port, tls=None, settings_acknowledged=True):
        plain = socket.create_connection(("127.0.0.1", port), 10)
        self.socket = tls.wrap_socket(plain, server_hostname="127.0.0.1") if tls else plain
        self.scheme = b"\x87" if tls else b"\x86"
        self.acknowledges = settings_acknowledged
        self.stream = -1
        self.ended_streams = 0
        self.closed = threading.Event()
        # A TLS connection is not for two threads at a time: neither call of it waits.
        self.socket.setblocking(False)
        self.lock = threading.Lock()
        self.sending = threading.Lock()
        self.changed = threading.Condition()
        self.first_window = 65535
        self.windows = {0: 65535}
        initial = struct.pack(">HI", 4, LARGEST_WINDOW)
        self.send(PREFACE + frame(SETTINGS, 0, 0, initial)
                  + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0x7fff0000)))
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, data):
        """False once the other side has closed the connection."""
        data = memoryview(data)
        with self.sending:  # what could not be sent has to be tried again before anything else
            while data and not self.closed.is_set():
                try:
                    with self.lock:
                        data = data[self.socket.send(data):]
                except LATER:
                    self._await(select.POLLOUT)
                except OSError:
                    self.closed.set()
        return not data

    def _await(self, event):
        poll = select.poll()
        try:
            poll.register(self.socket, event)
            poll.poll(50)
        except (OSError, ValueError):
            self.closed.set()

    def close(self):
        self.closed.set()
        with self.lock:
            try:
                self.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            self.socket.close()

    def open(self, method=b"Execute"):
        """Begins a call; its stream."""
        self.stream += 2
        self.windows.setdefault(self.stream, self.first_window)
        headers = (b"\x83" + self.scheme + literal(4, SERVICE + method) + literal(1, b"x")
                   + literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers"))
        self.send(frame(HEADERS, END_HEADERS, self.stream, headers))
        return self.stream

    def ping(self, stream):
        return self.send(frame(DATA, 0, stream, message(PING)))

    def pour(self, stream, data, seconds=2):
        """Sends as much as the other side allows; how much that was."""
        sent = 0
        while sent < len(data) and not self.closed.is_set():
            with self.changed:
                open_window = self.changed.wait_for(
                    lambda: self.closed.is_set() or min(self.windows[0], self.windows[stream]) > 0,
                    seconds)
                room = min(self.windows[0], self.windows[stream], DATA_BYTES, len(data) - sent)
                if not open_window or room <= 0:
                    break
                self.windows[0] -= room
                self.windows[stream] -= room
            if not self.send(frame(DATA, 0, stream, data[sent:sent + room])):
                break
            sent += room
        return sent

    def _read(self):
        data = b""
        while not self.closed.is_set():
            try:
                with self.lock:
                    more = self.socket.recv(65536)
            except LATER:
                self._await(select.POLLIN)
                continue
            except (OSError, ValueError):
                more = b""
            if not more:
                break
            data += more
            while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], "big"):
                size = int.from_bytes(data[:3], "big")
                self._handle(data[3], data[4], int.from_bytes(data[5:9], "big"), data[9:9 + size])
                data = data[9 + size:]
        with self.changed:
            self.closed.set()
            self.changed.notify_all()

    def _handle(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACKNOWLEDGED:
            for at in range(0, len(payload), 6):
                key, value = struct.unpack(">HI", payload[at:at + 6])
                if key == 4:
                    self.first_window = value
            if self.acknowledges:
                self.send(frame(SETTINGS, ACKNOWLEDGED, 0))
        elif kind == PING_FRAME and not flags & ACKNOWLEDGED:
            self.send(frame(PING_FRAME, ACKNOWLEDGED, 0, payload))
        elif kind == DATA and payload:
            self.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload))))
        elif kind == RESET or (kind == HEADERS and flags & 1):
            self.ended_streams += 1
        elif kind == WINDOW_UPDATE:
            with self.changed:
                self.windows[stream] = (self.windows.get(stream, self.first_window)
                                        + struct.unpack(">I", payload)[0])
                self.changed.notify_all()


def tls_context(folder, name):
    """For the user whose files are `name`.crt and `name`.key in the folder."""
    context = ssl.create_default_context(cafile=f"{folder}/ca.crt")
    context.set_alpn_protocols(["h2"])
    context.load_cert_chain(f"{folder}/{name}.crt", f"{folder}/{name}.key")
    return context
