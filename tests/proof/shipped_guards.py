#!/usr/bin/env python3
"""Looks for the names of guards (wire/guards.h) in programs and libraries: what is shipped has
none.

usage: shipped_guards.py [--all] FOLDER
Names that stand there for another reason, as words of messages or of the configuration, end in no
zero byte, or are left out below. --all: of a build for tests, where every name must be found.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Ordinary words: keys and values with these names are in the programs anyway.
ORDINARY = {"admin", "certificate", "handles", "identity", "lent", "peer", "quota", "resources",
            "sizes", "token", "unordered", "bounds", "between", "epoch"}

# With which a process of a build for tests plays another version (wire/versions.h).
TEST_VERSIONS = "LONGWIRE_TEST_VERSIONS"
# With which another program takes a worker's place (server/walls/main.cc), and all its system calls
# are logged (server/worker/walls/system_calls.cc).
TEST_WALLS = {"LONGWIRE_TEST_WORKER", "LONGWIRE_TEST_NO_CALLS"}


def names():
    table = re.search(r"kGuards\[\] = \{(.*?)\};", (ROOT / "wire/guards.h").read_text(), re.DOTALL)
    return {*re.findall(r'"([\w-]+)"', table[1]), TEST_VERSIONS, *TEST_WALLS} - ORDINARY


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    contents = [(file, file.read_bytes()) for file in arguments.folder.rglob("*")
                if file.is_file() and not file.is_symlink()]
    binaries = [(file, content) for file, content in contents if content[:4] == b"\x7fELF"]
    found = {name: [file for file, content in binaries
                    if re.search(rb"(?<![\w-])" + name.encode() + rb"\0", content)]
             for name in sorted(names())}
    if arguments.all:
        faults = [f"{name} is in no program" for name, files in found.items() if not files]
    else:
        faults = [f"{file} has the guard {name}" for name, files in found.items() for file in files]
    print("\n".join(faults) or f"{len(found)} guards in {len(binaries)} files: as it should be")
    return 1 if faults or not binaries else 0


if __name__ == "__main__":
    sys.exit(main())
