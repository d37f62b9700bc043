#!/usr/bin/env python3
"""each_source.py BUILD-FOLDER: an entry for each source in its compile_commands.json.

CMake lists a batch of sources (longwire_batches) as the one file that includes them. Editors,
clang-tidy and our tests look for the sources themselves.
"""
import json
import pathlib
import re
import sys

BATCH = re.compile(r"/Unity/unity_\d+_cxx\.cxx$")
INCLUDED = re.compile(r'^#include "(.+)"', re.MULTILINE)


def each_source(entries):
    for entry in entries:
        batch = entry["file"]
        if not BATCH.search(batch):
            yield entry
            continue
        for source in INCLUDED.findall(pathlib.Path(batch).read_text()):
            yield {"directory": entry["directory"], "file": source,
                   "command": entry["command"].replace(batch, source)}


def main():
    commands = pathlib.Path(sys.argv[1]) / "compile_commands.json"
    text = commands.read_text()
    if "/Unity/unity_" in text:
        commands.write_text(json.dumps(list(each_source(json.loads(text))), indent=1) + "\n")


if __name__ == "__main__":
    main()
