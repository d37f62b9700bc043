"""Reads the call description as far as the importer needs it: C signatures and versions."""

import dataclasses
import re
from pathlib import Path

BUILTIN = {"int32": "int", "uint32": "unsigned int", "uint64": "unsigned long long",
           "float": "float", "double": "double", "string": "char"}


@dataclasses.dataclass
class Described:
    symbol: str
    file: str
    line: int
    signature: list      # "C type name" of each parameter
    introduced: int
    per_thread: str      # "", "ptsz", "ptds"


def c_spellings(types_file):
    """Names of types.proto -> how C spells them."""
    text = Path(types_file).read_text()
    return {name: (re.search(r'c: "([^"]+)"', option) or [None, name])[1]
            for name, option in re.findall(r"^message (\w+) \{ option \(type\) = (\{.*?\});", text,
                                           re.M)}


def struct_sizes(types_file):
    """C spelling -> bytes of a struct that travels as it is; None for every other type."""
    text = Path(types_file).read_text()
    sizes = {}
    for name, option in re.findall(r"^message (\w+) \{ option \(type\) = (\{.*?\});", text, re.M):
        spelling = (re.search(r'c: "([^"]+)"', option) or [None, name])[1]
        size = re.search(r"bytes: (\d+)", option)
        sizes[spelling] = int(size.group(1)) if size else None
    return sizes | {spelling: None for spelling in BUILTIN.values()}


def c_type(proto_type, options, spellings):
    literal = re.search(r'\(c_type\) = "([^"]+)"', options)
    if literal:
        return literal.group(1)
    base = BUILTIN.get(proto_type) or spellings[proto_type]
    written = "(out) = true" in options or "(inout) = true" in options
    if proto_type == "string" or "(counted_by)" in options or "(in) = true" in options:
        return f"{base}*" if written else f"const {base}*"
    return f"{base}*" if written else base


def read(proto_folder):
    """Symbol -> Described, for every public call."""
    spellings = c_spellings(Path(proto_folder) / "types.proto")
    found = {}
    for path in sorted((Path(proto_folder) / "calls").rglob("*.proto")):
        text = path.read_text()
        for message in re.finditer(r"^message (cu\w+) \{\n(.*?)^\}", text, re.M | re.S):
            symbol, body = message.groups()
            option = re.search(r"option \(call\) = \{(.*?)\};", body, re.S).group(1)
            fields = re.findall(r"^  (\w+) (\w+) = \d+(?:\s*\[(.*?)\])?;", body, re.M | re.S)
            introduced = re.search(r"introduced: (\d+)", option)
            per_thread = re.search(r"per_thread: (PTSZ|PTDS)", option)
            found[symbol] = Described(
                symbol, path.name, text.count("\n", 0, message.start()) + 1,
                [f"{c_type(kind, options, spellings)} {name}" for kind, name, options in fields],
                int(introduced.group(1)) if introduced else 0,
                per_thread.group(1).lower() if per_thread else "")
    return found
