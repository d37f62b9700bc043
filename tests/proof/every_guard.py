#!/usr/bin/env python3
"""Checks that sources, the table of wire/guards.h and the proofs know the same guards.

usage: every_guard.py --root REPOSITORY
"""
import argparse
import pathlib
import re
import sys

FOLDERS = ("cli", "client-shim", "link", "policy", "server", "softgpu", "wire")


def names(pattern, *files):
    return {name for file in files for name in re.findall(pattern, file.read_text(), re.MULTILINE)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True, type=pathlib.Path)
    root = parser.parse_args().root
    sources = [file for folder in FOLDERS for file in (root / folder).rglob("*.cc")]
    asked = names(r'GuardIsOff\("([\w-]+)"\)', *sources)
    listed = names(r'^    "([\w-]+)", +// .*\.(?:cc|h)$', root / "wire/guards.h")
    proven = names(r"^longwire_(?:e2e_)?proof\(([\w-]+)", root / "tests/proof/CMakeLists.txt")
    # Optimisations can be switched off, too, and may have a proof.
    faults = [f"the guard '{name}' is not in {where}"
              for where, missing in (("any source", listed - asked),
                                     ("the table of wire/guards.h", asked - listed),
                                     ("tests/proof/CMakeLists.txt", asked - proven))
              for name in sorted(missing)]
    print("\n".join(faults) or f"{len(asked)} guards, each with a proof")
    return 1 if faults or not asked else 0


if __name__ == "__main__":
    sys.exit(main())
