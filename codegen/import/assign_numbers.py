#!/usr/bin/env python3
"""Gives every described call that has no wire number the next one. Published numbers stay."""

import re
import sys
from pathlib import Path

HEAD = """# Wire numbers of the calls: "number symbol". A published number never changes its meaning
# and is never used again; new calls get new numbers at the end (codegen/import/assign_numbers.py).
"""


def main(proto_folder, numbers_path):
    path = Path(numbers_path)
    lines = path.read_text() if path.exists() else HEAD
    taken = {symbol: int(number) for number, symbol in re.findall(r"^(\d+) (\w+)$", lines, re.M)}
    following = max(taken.values(), default=0) + 1
    for file in sorted(Path(proto_folder).rglob("*.proto"),
                       key=lambda f: (f.stem != "private", f.stem)):
        for message in re.findall(r"^message (\w+) \{\s*\n\s*option \(call\)", file.read_text(),
                                  re.M):
            if message not in taken:
                taken[message] = following
                lines += f"{following} {message}\n"
                following += 1
    path.write_text(lines)


if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2] / "proto"
    main(*(sys.argv[1:] or [root / "calls", root / "wire_numbers.txt"]))
