#!/usr/bin/env python3
"""Clang's analysis of locks (-Wthread-safety) over the sources that no preset compiles by clang.

Compiles each source that names a mutex or an annotation of base/, or includes a header of ours that
does, for its diagnostics alone; prints every finding and ends with 1 if there is any.
"""
import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

# The preset asan analyses what it compiles (thread_safety_test.py checks that it does). This is the
# rest: what needs gRPC, the worker's own program, the generator.
FOLDERS = ("codegen", "link", "server/daemon", "server/worker/process")
# Options that only GCC knows.
GCC_OPTIONS = {"-fvect-cost-model=dynamic", "-fpch-preprocess", "-Winvalid-pch"}
ANALYSIS = ["-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror"]
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
BATCH = 12  # sources that are compiled as one
MUTEX = re.compile(r"\bbase::Mutex(Lock)?\b|\bLONGWIRE_(GUARDED_BY|REQUIRES|EXCLUDES)\b")


class Headers:
    """Which headers of ours name a mutex."""

    def __init__(self, root):
        self.root = root
        self.known = {}

    def name_mutex(self, name):
        if name not in self.known:
            path = self.root / name
            self.known[name] = path.is_file() and MUTEX.search(path.read_text()) is not None
        return self.known[name]


def has_locks(source, headers):
    text = source.read_text()
    return MUTEX.search(text) is not None or any(
        headers.name_mutex(name) for name in INCLUDE.findall(text))


def chosen_commands(root, build):
    """One compile command for each source of the folders that has locks."""
    headers = Headers(root)
    folders = [root / name for name in FOLDERS]
    chosen = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if source in chosen or not any(source.is_relative_to(folder) for folder in folders):
            continue
        if has_locks(source, headers):
            chosen[source] = entry
    return chosen


def batches(chosen, only):
    """Lists of sources of one folder."""
    folders = {}
    for source in chosen:
        if only in str(source):
            folders.setdefault(source.parent, []).append(source)
    return [sources[first:first + BATCH] for sources in folders.values()
            for first in range(0, len(sources), BATCH)]


def clang_options(entry):
    """Of a compile command: without what only GCC knows, and what it has precompiled."""
    words = iter(shlex.split(entry["command"]))
    while not re.search(r"(\+\+|g\+\+-\d+)$", next(words)):
        pass
    kept = []
    for word in words:
        if word in ("-include", "-o", "-c"):
            next(words)  # the operand of -c, the source, comes last
        elif word not in GCC_OPTIONS and not word.startswith("--param="):
            kept.append(word)
    return kept


class Analysis:
    def __init__(self, compiler, folder):
        self.compiler = compiler
        self.folder = pathlib.Path(folder)

    def check_all(self, sources, chosen):
        """What clang finds in sources of one folder, by source. They are compiled as one, as they
        share most headers; in halves if that finds anything, or if names in them clash."""
        if len(sources) == 1:
            found = self.check(sources[0], chosen[sources[0]])
            return {sources[0]: found} if found else {}
        batch = self.folder / "batch.cc"
        batch.write_text("".join(f'#include "{source}"\n' for source in sources))
        entries = [chosen[source] for source in sources]
        if not self.check(batch, *entries):
            return {}
        half = len(sources) // 2
        return {**self.check_all(sources[:half], chosen), **self.check_all(sources[half:], chosen)}

    def check(self, source, *entries):
        """What clang finds in one source, with the options of these commands; empty if nothing."""
        options = dict.fromkeys(word for entry in entries for word in clang_options(entry))
        result = subprocess.run([self.compiler, *options, *ANALYSIS, str(source)],
                                capture_output=True, text=True)
        return "" if result.returncode == 0 else result.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="clang++-19")
    parser.add_argument("--only", default="", help="sources whose path has this alone")
    arguments = parser.parse_args()
    chosen = chosen_commands(arguments.root, arguments.build)
    findings = 0
    with tempfile.TemporaryDirectory() as folder:
        analysis = Analysis(arguments.compiler, folder)
        for sources in batches(chosen, arguments.only):
            found = analysis.check_all(sources, chosen)
            findings += len(found)
            print(*found.values(), sep="", end="")
    print(f"{len(chosen)} sources, {findings} with findings")
    return 1 if findings or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
