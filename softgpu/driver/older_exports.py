"""Which symbols a driver of an older version exports: a linker's version script.

older_exports.py VERSION FILE, where 12020 is CUDA 12.2
"""
import pathlib
import re
import sys

TABLE = pathlib.Path(__file__).with_name("proc_table.inc")


def later_symbols(version):
    rows = re.findall(r'\{"\w+", (\d+), [FP]\((\w+)\)\}', TABLE.read_text())
    if not rows:
        sys.exit(f"{TABLE} has no rows as they are read here")
    first = {}
    for introduced, symbol in rows:
        first[symbol] = min(int(introduced), first.get(symbol, int(introduced)))
    return sorted(symbol for symbol, introduced in first.items() if introduced > version)


def main(version, file):
    local = "".join(f"  {symbol};\n" for symbol in later_symbols(int(version)))
    pathlib.Path(file).write_text(f"{{ global: cu[A-Z]*; local:\n{local}  *; }};\n")


main(*sys.argv[1:])
