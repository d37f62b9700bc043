#!/usr/bin/env python3
"""Retired words: no folder may have more of them than words_left.txt says.

    words.py --list FOLDER   each place in the folder and below it, with what to write instead
    words.py --shrink        writes the present counts into words_left.txt, where they are lower

docs/glossary.md has the words and what to write instead, retired.py how each is found: in comments,
in literals that are sentences, in pages, in identifiers and in the names of sources.
"""
import argparse
import collections
import os
import pathlib
import re
import sys

import prose
import retired

LIMITS_FILE = pathlib.Path(__file__).resolve().parent / "words_left.txt"
GLOSSARY = pathlib.Path("docs/glossary.md")
HEADING = "## Words that are retired"
# Text that is kept as it came, what happened in the past, and the lists of these words.
EXEMPT_FOLDERS = ("golden", "results", "testdata", "tidy")
EXEMPT_FILES = ("CHANGELOG.md", "LICENSE", "NOTICE")
SUFFIXES = prose.C_LIKE | prose.HASH_COMMENTS | {".md"}


def is_checked(path):
    named = path.suffix in SUFFIXES and (path.suffix or path.name == "dev")
    return named and path.name not in EXEMPT_FILES and not set(path.parts) & set(EXEMPT_FOLDERS)


def glossary_words(text):
    """{retired: instead} of the glossary's table."""
    table = text[text.find(HEADING):]
    rows = re.findall(r"^\| (.*?) \| (.*?) \|$", table, re.MULTILINE)
    return {old: new for old, new in rows if old not in ("retired", "---")}


def find_words(path, text):
    """Yields (line, what stands there, the retired word) in the order of the lines."""
    if path == GLOSSARY and HEADING in text:
        text = text[:text.find(HEADING)]
    found = {}
    texts = [(prose.words_of(path.suffix, text).lower(), retired.PROSE_PATTERNS),
             (prose.code_of(path.suffix, text), retired.IDENTIFIER_PATTERNS)]
    for searched, patterns in texts:
        for name, pattern in patterns:
            for match in pattern.finditer(searched):
                line = searched.count("\n", 0, match.start()) + 1
                found.setdefault((line, match.start(), name), re.sub(r"\s+", " ", match.group()))
    if path.suffix in prose.C_LIKE:
        for name, pattern in retired.IDENTIFIER_PATTERNS:
            if pattern.fullmatch(path.stem):
                found.setdefault((1, 0, name), path.name)
    for (line, _, name), what in sorted(found.items()):
        yield line, what, name


def find_all(root, paths):
    """{folder: ["file:line: …"]}"""
    places = collections.defaultdict(list)
    glossary = root / GLOSSARY
    instead = glossary_words(glossary.read_text()) if glossary.exists() else {}
    for path in paths:
        if is_checked(path):
            text = (root / path).read_text(encoding="utf-8", errors="replace")
            for line, what, name in find_words(path, text):
                new = re.sub(r" \(.*\)", "", instead.get(name, name))
                places[str(path.parent)].append(f'{path}:{line}: "{what}" is retired: {new}')
    return places


def read_limits():
    lines = [line.split() for line in LIMITS_FILE.read_text().splitlines()
             if line and not line.startswith("#")]
    return {folder: int(count) for folder, count in lines}


def check_glossary(root):
    """Yields words that only one of the glossary and retired.py has."""
    if (root / GLOSSARY).exists():
        words = glossary_words((root / GLOSSARY).read_text())
        for name in sorted(words.keys() ^ retired.PROSE.keys()):
            where = "tests/tidy/retired.py" if name in words else str(GLOSSARY)
            yield f"{where}:1: does not have the retired word {name}"


def check_words(root, paths):
    limits = read_limits()
    yield from check_glossary(root)
    for folder, places in sorted(find_all(root, paths).items()):
        limit = limits.get(folder, 0)
        if len(places) > limit:
            yield (f"{folder}: {len(places)} retired words, {limit} are allowed "
                   f"(tests/tidy/words_left.txt):\n  " + "\n  ".join(places))


def shrink(root, paths):
    """Writes no number that is higher than before."""
    head = [line for line in LIMITS_FILE.read_text().splitlines() if line.startswith("#")]
    limits, present = read_limits(), find_all(root, paths)
    lower = {folder: min(limit, len(present.get(folder, ()))) for folder, limit in limits.items()}
    rows = [f"{folder} {count}" for folder, count in sorted(lower.items()) if count]
    LIMITS_FILE.write_text("\n".join(head + rows) + "\n")


def main():
    import tidy  # which runs this check, too
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=pathlib.Path, default=LIMITS_FILE.parents[2])
    parser.add_argument("--list", metavar="FOLDER", help="what is left in and below the folder")
    parser.add_argument("--shrink", action="store_true", help="lowers the limits to the present")
    arguments = parser.parse_args()
    paths = tidy.list_files(arguments.root)
    if arguments.shrink:
        shrink(arguments.root, paths)
        return 0
    if arguments.list is None:
        faults = list(check_words(arguments.root, paths))
        print("\n".join(faults))
        return 1 if faults else 0
    folder = os.path.normpath(arguments.list)
    below = [path for path in paths if folder == "." or str(path).startswith(folder + "/")
             or str(path) == folder]
    for places in find_all(arguments.root, below).values():
        print("\n".join(places))
    return 0


if __name__ == "__main__":
    sys.exit(main())
