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
# Options that only GCC knows; what follows the second kind is its precompiled header.
GCC_OPTIONS = {"-fvect-cost-model=dynamic", "-fpch-preprocess", "-Winvalid-pch"}
ANALYSIS = ["-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror"]
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
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


def without_gcc_options(arguments):
    """The arguments for clang, and the text that GCC has precompiled, if any."""
    kept, precompiled = [], None
    words = iter(arguments)
    for word in words:
        if word in GCC_OPTIONS or word.startswith("--param="):
            continue
        if word == "-include":
            precompiled = next(words)
        elif word in ("-o", "-c"):
            # Their operands are the object and the source, which comes last.
            next(words)
        else:
            kept.append(word)
    return kept, precompiled


class Analysis:
    def __init__(self, compiler, folder):
        self.compiler = compiler
        self.folder = pathlib.Path(folder)
        self.precompiled = {}

    def run(self, arguments):
        return subprocess.run([self.compiler, *arguments], capture_output=True, text=True)

    def headers(self, text, options):
        """Clang's own precompiled form of what GCC precompiles: most units need it."""
        if text not in self.precompiled:
            made = self.folder / f"{len(self.precompiled)}.pch"
            result = self.run([*options, "-x", "c++-header", text, "-o", str(made)])
            if result.returncode != 0:
                sys.exit(f"{text} cannot be compiled:\n{result.stderr}")
            self.precompiled[text] = made
        return self.precompiled[text]

    def check(self, source, entry):
        """What clang finds in one source; empty if nothing."""
        arguments = shlex.split(entry["command"])
        first = next(i for i, word in enumerate(arguments) if re.search(r"(\+\+|g\+\+-\d+)$", word))
        options, text = without_gcc_options(arguments[first + 1:])
        options.append("-pthread")  # clang precompiles for programs with threads or for others
        if text is not None and pathlib.Path(text).is_file():
            options += ["-include-pch", str(self.headers(text, options))]
        result = self.run([*options, *ANALYSIS, str(source)])
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
        for source, entry in chosen.items():
            if arguments.only in str(source):
                found = analysis.check(source, entry)
                findings += found != ""
                print(found, end="")
    print(f"{len(chosen)} sources, {findings} with findings")
    return 1 if findings or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
