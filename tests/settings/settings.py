#!/usr/bin/env python3
"""Checks that sources and what people read know the same settings: the switches of
LONGWIRE_DISABLE with who reads them, the client's variables, and the pages that messages name.

usage: settings.py --root REPOSITORY
"""
import argparse
import pathlib
import re
import sys

CODE = ("cli", "client-shim", "link", "nvml-shim", "server", "wire")
CLIENT = ("client-shim", "nvml-shim", "wire")


def sources(root, folders):
    for folder in folders:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in (".cc", ".h") and not file.stem.endswith("_test"):
                yield file.read_text()


def found(pattern, *texts):
    return [hit for text in texts for hit in re.findall(pattern, text, re.MULTILINE)]


def differences(what, kinds):
    """Sentences on things that not every one of the kinds, {where: things}, has."""
    every = set().union(*kinds.values())
    return [f"the {what} {thing} is not in {where}"
            for where, things in kinds.items() for thing in sorted(every - set(things))]


def check_switches(root):
    table = dict(found(r'^    "([\w-]+)", +// ([\w, ]+): ', (root / "wire/switches.h").read_text()))
    page = found(r"^\| `([\w-]+)` \| ([\w, ]+) \|", (root / "docs/switches.md").read_text())
    asked = found(r'IsSwitchedOff\("([\w-]+)"\)', *sources(root, CODE))
    yield from differences("switch", {"wire/switches.h": table, "docs/switches.md": dict(page),
                                      "any source": asked})
    yield from (f"docs/switches.md says that {name} is read by {readers}"
                for name, readers in page if table.get(name, readers) != readers)
    if [name for name, _ in page] != sorted(name for name, _ in page):
        yield "the names of docs/switches.md are not sorted"


# Former names of variables, which are accepted with a warning.
FORMER = {"LONGWIRE_KEEP_UPLOADS"}


def check_variables(root):
    rows = found(r"^\| (`LONGWIRE_.*?) \| ", (root / "docs/settings.md").read_text())
    conf = (root / "deploy/client.conf").read_text()
    yield from differences("variable", {
        "docs/settings.md": found(r"`(LONGWIRE_\w+)`", *rows),
        "deploy/client.conf": found(r"^#(LONGWIRE_\w+)=", conf),
        "any source of the client": set(found(r'"(LONGWIRE_(?!TEST_)[A-Z_]+)"',
                                              *sources(root, CLIENT))) - FORMER})


def check_pages(root):
    """Who has only the packages can read what a message sends him to."""
    installed = found(r"/docs/([\w-]+\.md)", (root / "deploy/CMakeLists.txt").read_text())
    code = re.sub(r"//.*", "", "\n".join(sources(root, CODE)))
    for page in sorted(set(found(r"docs/([\w-]+\.md)", code))):
        if page not in installed:
            yield f"a message names docs/{page}, which deploy/CMakeLists.txt does not install"
    for page in installed:
        if not (root / "docs" / page).exists():
            yield f"there is no docs/{page}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True, type=pathlib.Path)
    root = parser.parse_args().root
    faults = [*check_switches(root), *check_variables(root), *check_pages(root)]
    print("\n".join(faults) or "all the same")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
