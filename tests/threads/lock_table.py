#!/usr/bin/env python3
"""The table of locks in docs/threads.md against the ranks in base/lock_ranks.h and their use."""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

RANK = re.compile(r'LockRank (k\w+)\{(\d+), "([^"]+)"\}')
ROW = re.compile(r"^\| (\d+) \| (\S+) \| .+ \|$", re.MULTILINE)


def faults(root):
    ranks = RANK.findall((root / "base/lock_ranks.h").read_text())
    rows = ROW.findall((root / "docs/threads.md").read_text())
    orders = [int(order) for _, order, _ in ranks]
    if not ranks or orders != sorted(set(orders)):
        yield "base/lock_ranks.h: the ranks do not rise from line to line"
    for order, name in [row for row in rows if row not in [rank[1:] for rank in ranks]]:
        yield f"docs/threads.md: there is no rank {order} of {name} in base/lock_ranks.h"
    for _, order, name in [rank for rank in ranks if rank[1:] not in rows]:
        yield f"docs/threads.md: rank {order} of {name} is not in the table"
    sources = subprocess.run(["git", "-C", root, "ls-files", "*.h", "*.cc"], check=True,
                             capture_output=True, text=True).stdout.split()
    text = "\n".join((root / name).read_text() for name in sources if (root / name).is_file())
    uses = collections.Counter(re.findall(r"\branks::(k\w+)", text))
    for constant, _, name in ranks:
        if uses[constant] != 1:
            yield f"base/lock_ranks.h: {uses[constant]} mutexes have the rank of {name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    found = list(faults(parser.parse_args().root))
    print("\n".join(found) or "the table is what the code says")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
