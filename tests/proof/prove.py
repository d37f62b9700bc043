#!/usr/bin/env python3
"""Shows that a test can fail: runs it with a guard (must pass) and without it (must fail).

usage: prove.py --disable GUARD -- TEST [ARGUMENT...]
The guard is switched off through LONGWIRE_DISABLE. A GoogleTest program counts as failed only if a
test of it ran and failed an expectation, not if it crashed, hung or ran nothing.
"""
import argparse
import os
import re
import subprocess
import sys

SECONDS = 250


def run(command, disabled):
    """(exit code, output) of the command with LONGWIRE_DISABLE=disabled."""
    environment = {name: value for name, value in os.environ.items() if name != "LONGWIRE_DISABLE"}
    if disabled:
        environment["LONGWIRE_DISABLE"] = disabled
    result = subprocess.run(command, env=environment, text=True, timeout=SECONDS,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return result.returncode, result.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--disable", required=True, metavar="GUARD")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()

    code, output = run(arguments.command, "")
    if code != 0 or not re.search(r"\[  PASSED  \] [1-9]", output):
        print(output)
        print(f"with the guard '{arguments.disable}' the test fails: nothing is shown")
        return 1
    code, output = run(arguments.command, arguments.disable)
    if code != 1 or "[  FAILED  ]" not in output:
        print(output)
        print(f"without the guard '{arguments.disable}' the test ends with {code} and no failed "
              "expectation: it does not watch the guard")
        return 1
    failures = re.findall(r"^\[  FAILED  \] ([^\s,]+).* ms\)$", output, re.MULTILINE)
    print(f"without the guard '{arguments.disable}' these fail: {', '.join(failures)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
