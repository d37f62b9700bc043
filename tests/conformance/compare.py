#!/usr/bin/env python3
"""Runs the conformance program against the driver itself and through Longwire, and compares.

    compare.py [--native FOLDER] [--driver NAME]

FOLDER has the libcuda.so.1 to compare with: the software device's unless given. NAME is what the
server loads ("software"). Differences that differences.txt names, with a reason, are reviewed ones.
"""
import argparse
import fnmatch
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

import server  # noqa: E402  (it lies in the folder just named)

LEAST_CHECKS = 600


def read_reviewed():
    """The patterns of checks; each has its reason below it, indented."""
    lines = (HERE / "differences.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith(("#", " "))]


def answers(result):
    lines = [line for line in result.out.splitlines() if " = " in line]
    return [tuple(line.split(" = ", 1)) for line in lines]


def compare(chapter, native, ours, reviewed, used):
    """Yields what is wrong; fills `used` with the reviewed differences that were met."""
    lacks = re.search(r"undefined symbol: (\w+)", native.err)
    if lacks and f"lacks {lacks.group(1)}" in reviewed:
        used.add(f"lacks {lacks.group(1)}")  # what comes after it cannot be compared
    elif lacks:
        yield f"{chapter}: the driver lacks {lacks.group(1)}"
    for name, result in (("natively", native), ("through Longwire", ours)):
        if result.code != 0 and not lacks:
            yield f"{chapter}: {name} it ended with {result.code}: {result.err.strip()[-300:]}"
    for (check, wanted), (same, found) in zip(answers(native), answers(ours)):
        if check != same:
            yield f"{chapter}: the checks part at '{check}' and '{same}'"
            return
        if wanted == found:
            continue
        reasons = [pattern for pattern in reviewed if fnmatch.fnmatchcase(check, pattern)]
        used.update(reasons)
        if not reasons:
            yield f"{chapter}: {check} = {found}, natively {wanted}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--native")
    parser.add_argument("--driver", default="software")
    options = parser.parse_args()
    reviewed, used, checks, faults = read_reviewed(), set(), 0, []
    with server.Server(driver=options.driver) as longwire:
        program = longwire.build / "tests" / "conformance" / "conformance"
        software = longwire.dist / "lib" / "longwire" / "softgpu"
        environment = longwire.environment(LD_LIBRARY_PATH=options.native or software)
        for chapter in server.run([program], environment).out.split():
            native = server.run([program, chapter], environment, 60)
            ours = server.run(longwire.command(program, chapter), longwire.environment(), 60)
            checks += min(len(answers(native)), len(answers(ours)))
            faults += compare(chapter, native, ours, reviewed, used)
    for fault in faults:
        print(fault)
    print(f"{checks} checks, {len(faults)} unexpected differences, "
          f"{len(used)} of {len(reviewed)} reviewed ones met")
    if checks < LEAST_CHECKS:
        print(f"fewer than {LEAST_CHECKS} checks were made")
    return 1 if faults or checks < LEAST_CHECKS else 0


if __name__ == "__main__":
    sys.exit(main())
