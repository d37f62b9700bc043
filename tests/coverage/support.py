#!/usr/bin/env python3
"""Adds to the generated list of functions which test program called each through the wire.

support.py GENERATED RECORDED OUTPUT
"""
import pathlib
import re
import sys

HEADS = {"| function | since | per-thread form | answered |": " called in |",
         "| --- | --- | --- | --- |": " --- |"}

CLAIM = """of them were called with success by a program of `tests/apps` that
checks what came of it, or by a chapter of `tests/conformance`, whose results are
compared with the driver's own: through client, wire, daemon and worker. The last
column names one, and `tests/coverage` runs them all again. (A few have no right
answer but an error, natively too: with them that is what counts.)
"""


def main(generated, recorded, output):
    lines = pathlib.Path(recorded).read_text().splitlines()
    programs = dict(line.split() for line in lines if not line.startswith("#"))
    out, called = [], 0
    for line in pathlib.Path(generated).read_text().splitlines():
        row = re.match(r"\| `(\w+)` \|", line)
        if row:
            program = programs.get(row.group(1), "")
            called += program != ""
            line += f" {program} |" if program else "  |"
        out.append(line + HEADS.get(line, ""))
    text = "\n".join(out) + "\n"
    sentence = f"{called} {CLAIM}"
    pathlib.Path(output).write_text(text.replace("\n\n## ", f"\n\n{sentence}\n## ", 1))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
