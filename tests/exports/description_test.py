#!/usr/bin/env python3
"""The generated tables against the toolkit's own: exported symbols, versions, stream modes.

description_test.py GENERATED_FOLDER CUDA_INCLUDE
"""

import pathlib
import re
import sys

import header

HERE = pathlib.Path(__file__).resolve().parent


def check_exports(generated, exports):
    defined = []
    for path in generated.glob("shim_entries_*.cc"):
        defined += re.findall(r"^LONGWIRE_EXPORT CUresult (\w+)\(", path.read_text(), re.M)
    for symbol in sorted(set(exports) - set(defined)):
        yield f"{symbol} is exported by libcuda 13.0 and not described"
    for symbol in sorted(set(defined) - set(exports)):
        yield f"{symbol} is described and not exported by libcuda 13.0"
    if len(defined) != len(set(defined)):
        yield "a symbol is defined twice"


def check_lookups(generated, exports, include):
    table = set()
    for name, introduced, mode, symbol in re.findall(
            r'\{"(\w+)", (\d+), (\d), Address\(&::(\w+)\), "\w+"\}',
            (generated / "proc_table.cc").read_text()):
        table.add((name, int(mode), int(introduced), symbol))
    expected = set(header.expected_lookups(exports, include))
    if len(expected) < 600:
        yield f"only {len(expected)} variants were found in the toolkit's headers"
    for row in sorted(table - expected):
        yield f"the table gives {row}, the toolkit's headers do not"
    for row in sorted(expected - table):
        yield f"the table lacks {row} of the toolkit's headers"


def main(generated, include):
    exports = header.read_list(HERE / "libcuda-13.0.txt")
    generated = pathlib.Path(generated)
    faults = [*check_exports(generated, exports), *check_lookups(generated, exports, include)]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
