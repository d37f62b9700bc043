#!/usr/bin/env python3
"""docs/semantics.md names tests for every rule: each rule is there, each name is a test's.

semantics.py PROJECT_ROOT
"""
import pathlib
import re
import sys

RULES = 30


def known_tests(root):
    for path in (root / "tests" / "apps").glob("*.c[cu]"):
        yield path.stem
    for path in (root / "tests" / "e2e").glob("*_test.py"):
        yield from re.findall(r"def (test_\w+)\(", path.read_text())
    for folder in ("tests", "server", "client-shim", "softgpu"):
        for path in (root / folder).rglob("*_test.cc"):
            for suite, name in re.findall(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", path.read_text(),
                                          re.MULTILINE):
                yield f"{suite}.{name}"


def main(root):
    root = pathlib.Path(root)
    text = (root / "docs" / "semantics.md").read_text()
    rows = dict(re.findall(r"^\| (\d+) \| [^|]+ \| ([^|]+) \|$", text, re.MULTILINE))
    known, faults = set(known_tests(root)), []
    for number in range(1, RULES + 1):
        if str(number) not in rows:
            faults.append(f"rule {number} has no row")
    for number, tests in rows.items():
        for name in re.findall(r"`([\w.]+)`", tests):
            if name not in known:
                faults.append(f"rule {number}: there is no test {name}")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
