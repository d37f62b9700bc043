"""Calls that are well-formed and mostly wrong, chosen by a seed: every call that travels, with
arguments of the right types.

The build's generated headers say which calls there are and what they consist of.
"""
import pathlib
import re
import struct

FORMATS = {"uint64_t": "Q", "uint32_t": "I", "uint16_t": "H", "uint8_t": "B", "int64_t": "q",
           "int32_t": "i", "float": "f", "double": "d"}
LIMITS = (2**64 - 1, 2**63, 2**62, 2**46, 2**32, 2**32 - 1, 2**31, 2**31 - 1, 2**21, 65536, 4096,
          2**64 - 4096, 0x200000000000, 0x500000000000, 64, 1024)
# Lists that are as long as the one before them, in all but few calls: others end the session.
AS_LONG = {("lwGraphLaunch", 2), ("lwGraphLaunch", 4)}
# What ends the session unless it belongs to something that was announced: rarely sent.
ENDS_SESSION = ("lwCopyData",)
FIELD = re.compile(r"^  ((?:[\w:]+)(?:<.*>)?) (\w+)(?: = [^;()]*|\{\})?;")
FACTS = re.compile(r"^    Word\(CallKindValue::k(\w+),.*//\s*(\w+)")


def layouts(build):
    """Name → [type of each field] of every record and call."""
    text = (pathlib.Path(build) / "gen" / "longwire" / "calls.h").read_text()
    found, name = {}, None
    for line in text.splitlines():
        if start := re.match(r"^struct (\w+) \{", line):
            name = start[1]
            found[name] = []
        elif line.startswith("};"):
            name = None
        elif name and not line.startswith(("  using", "  static")) and (field := FIELD.match(line)):
            found[name].append(field[1])
    return found


def travelling(build):
    """Name → whether a stream orders it, of the calls that a server takes."""
    text = (pathlib.Path(build) / "gen" / "longwire" / "call_ids.h").read_text()
    return {fact[2]: "kStreamOrdered" in fact[0]
            for fact in map(FACTS.match, text.splitlines()) if fact and fact[1] in
            ("AtOnce", "AfterReply")}


class AnyCalls:
    """Arguments and headers; `known` are numbers that the server has given out."""

    def __init__(self, build, random):
        self.random = random
        self.layouts = layouts(build)
        self.ordered = travelling(build)
        self.names = sorted(name for name in self.ordered if name in self.layouts)
        self.known = [1, 2, 3]
        self.count = 0  # of the newest list
        self.makers = {name: [self._maker(kind, (name, index) in AS_LONG)
                              for index, kind in enumerate(kinds)]
                       for name, kinds in self.layouts.items()}

    def learn(self, payload):
        """Takes numbers out of an answer."""
        for at in range(0, min(len(payload) - 7, 64), 4):
            number, = struct.unpack_from("<Q", payload, at)
            if number > 255 and len(self.known) < 400:
                self.known.append(number)
            elif number > 255:
                self.known[self.random.randrange(400)] = number

    def number(self):
        kind = self.random.random()
        if kind < 0.45:
            return self.random.randrange(10)
        if kind < 0.75:
            return self.random.choice(self.known)
        if kind < 0.85:
            return 2**63 + self.random.randrange(16)
        if kind < 0.97:
            return self.random.choice(LIMITS)
        return self.random.getrandbits(64)

    def name(self):
        name = self.random.choice(self.names)
        rare = name in ENDS_SESSION and self.random.random() < 0.95
        return self.name() if rare else name

    def arguments(self, name):
        return b"".join(make() for make in self.makers[name])

    def _number_maker(self, letter):
        size = struct.calcsize(letter)
        if letter in "fd":
            return lambda: struct.pack("<" + letter, self.random.choice((0.0, 1.0, -1e30)))
        mask = 2**(8 * size) - 1
        return lambda: (self.number() & mask).to_bytes(size, "little")

    def _list_maker(self, make, as_long):
        def made():
            if not as_long or self.random.random() < 0.01:
                self.count = self.random.choice((0, 0, 1, 1, 2, 3, 100))
            count = self.count
            return struct.pack("<I", count) + b"".join(make() for _ in range(count))
        return made

    def _bytes(self, count):
        """Mostly zeros, with numbers in between."""
        data = bytearray(count)
        for _ in range(self.random.randrange(4)):
            if count >= 8:
                at = self.random.randrange(count // 8) * 8
                data[at:at + 8] = self.number().to_bytes(8, "little")
        return bytes(data)

    def _blob(self):
        count = self.random.choice((0, 1, 8, 16, 32, 48, 64, 104, 112, 144, 600, 4096))
        return struct.pack("<I", count) + self._bytes(count)

    def _text(self):
        text = self.random.choice((b"", b"nothing", b"kernel", b"x" * 300, b"\xff\x00\x1b[31m"))
        return struct.pack("<I", len(text)) + text

    def _maker(self, kind, as_long=False):
        if kind in FORMATS:
            return self._number_maker(FORMATS[kind])
        if kind == "bool":
            return lambda: bytes([self.random.randrange(2)])
        if kind == "std::string_view":
            return self._text
        if kind == "std::span<const std::byte>":
            return self._blob
        if array := re.fullmatch(r"std::array<std::byte, (\d+)>", kind):
            return lambda: self._bytes(int(array[1]))
        if inner := re.fullmatch(r"std::vector<(.*)>", kind):
            return self._list_maker(self._maker(inner[1]), as_long)
        if inner := re.fullmatch(r"std::optional<(.*)>", kind):
            make = self._maker(inner[1])
            return lambda: b"\0" if self.random.randrange(2) else b"\1" + make()
        if kind in self.layouts:
            return lambda: self.arguments(kind)
        raise ValueError(f"no rule for fields of type {kind}")
