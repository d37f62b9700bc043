"""The file of a suspended session as server/daemon/checkpoints and server/worker/process/snapshot.h
write it, for tests that put another value into it whose digests are right; and a server for such
files."""
import hashlib
import pathlib
import struct
import tempfile

import server

MAGIC = b"longwire checkpoint\n"
PIECE = 1 << 20
ENTRY, CONTENTS = 422, 423  # kinds of the snapshot's frames
NUMBERS = pathlib.Path(__file__).resolve().parents[2] / "proto" / "wire_numbers.txt"


def chained(chain, data):
    return hashlib.sha256(chain + data).digest()


def take(text):
    """(head with what stands before it, content) of a file that is not encrypted."""
    (length,) = struct.unpack_from("<I", text, len(MAGIC))
    at = len(MAGIC) + 4 + length
    begin, pieces = text[:at], []
    while True:
        (size,) = struct.unpack_from("<I", text, at)
        if size == 0:
            return begin, b"".join(pieces)
        pieces.append(text[at + 4:at + 4 + size])
        at += 4 + size + 32


def make(begin, content):
    """(file, its last digest)."""
    chain = chained(bytes(32), begin[len(MAGIC) + 4:])
    texts = [begin]
    for at in [*range(0, len(content), PIECE), len(content)]:  # the last one has no bytes
        piece = content[at:at + PIECE]
        frame = struct.pack("<I", len(piece)) + piece
        chain = chained(chain, frame)
        texts += [frame, chain]
    return b"".join(texts), chain


def skip_string(content, at):
    return at + 4 + struct.unpack_from("<I", content, at)[0]


def after_rings(content):
    """Where the worker's part begins."""
    (length,) = struct.unpack_from("<I", content, 0)
    rings = skip_string(content, 8)  # behind the kind: the request
    (count,) = struct.unpack_from("<I", content, rings)
    at = 4 + length
    for ring in range(count):
        _, written, released = struct.unpack_from("<QQQ", content, rings + 4 + 24 * ring)
        at += written - released
    return at


def number_of(call):
    for line in NUMBERS.read_text().splitlines():
        words = line.split()
        if call in words:
            return int(next(word for word in words if word.isdigit()))
    raise AssertionError(f"{call} has no number")


def answers(text):
    """The places of all bytes of answers that are compared: (place in the content, call)."""
    _, content = take(text)
    at, places = after_rings(content), []
    # Its answer has the context's number, which hangs on the device's (server/worker's Journal).
    unlike = number_of("lwContextCreate")
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        at += 8
        (kind,) = struct.unpack_from("<I", content, at)
        if kind == ENTRY:
            call, = struct.unpack_from("<H", content, at + 12)
            sizes = struct.unpack_from("<QQQ", content, at + length - 24)
            reply = at + length + sizes[0]
            if call != unlike:
                places += [(place, call) for place in range(reply, reply + sizes[1])]
            at += length + sum(sizes)
        elif kind == CONTENTS:
            _, size = struct.unpack_from("<QQ", content, at + 4)
            at += length + size
        else:
            at += length
    return places


def flip(text, place):
    """(the file with one bit of that byte changed, its last digest)."""
    begin, content = take(text)
    at = place[0]
    return make(begin, content[:at] + bytes([content[at] ^ 1]) + content[at + 1:])


def ticket_for(ticket, text, digest):
    """The ticket of that file, for the one with this digest."""
    body = ticket[:-32]
    assert text[-32:] in body
    body = body.replace(text[-32:], digest)
    return body + chained(bytes(32), body)


def serve(case, text="", **options):
    """A server with a folder for suspended sessions, which outlives its daemons."""
    longwire = server.Server(software_devices=2, **options)
    # Its folder has its name when it has begun.
    folder = case.enterContext(tempfile.TemporaryDirectory(prefix="longwire-kept-"))
    longwire.config = f"checkpoint_dir: {folder}/sessions\n" + text
    case.enterContext(longwire)
    longwire.kept = pathlib.Path(folder) / "sessions"
    return longwire
