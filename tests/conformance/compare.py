#!/usr/bin/env python3
"""Runs the conformance program against the driver itself and through Longwire, and compares.

    compare.py [--gpu] [--every-call] | --recorded

Without --gpu the driver is the software device's. With --every-call every function is called once
in each of a few ways, too (every_call.cc): for a GPU, as the software device takes more than a
driver. With --recorded only these calls are made, through Longwire alone, and compared with what a
driver answered once (every_call-h100.txt).

Differences that differences-software.txt (or differences-gpu.txt) names, with a reason, are
reviewed ones. A driver that dies of a check is run again without it; where it may is reviewed,
too: `dies CHECK`.
"""
import argparse
import fnmatch
import glob
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

import server  # noqa: E402  (it lies in the folder just named)

LEAST_CHECKS = 600
MOST_LEFT_OUT = 12  # of a chapter
MODES = ("before_init", "without_context", "nothing", "numbers")  # of every_call


def read_reviewed(device):
    """The patterns of checks; each has its reason below it, indented."""
    lines = (HERE / f"differences-{device}.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith(("#", " "))]


def answers(result):
    lines = [line for line in result.out.splitlines() if " = " in line]
    return [tuple(line.split(" = ", 1)) for line in lines]


def run_without_deaths(run, ours, most):
    """The result of run(lines to leave out), and the checks of which the library died."""
    died = []
    while True:
        result = run(" ".join(check.split(" ")[0] for check in died))
        made = len(answers(result))
        dies = result.code is not None and result.code < 0 and made < len(answers(ours))
        if not dies or len(died) == most:
            return result, died
        died.append(answers(ours)[made][0])


def compare(chapter, native, ours, reviewed, used):
    """Yields what is wrong; fills `used` with the reviewed differences that were met."""
    lacks = re.search(r"undefined symbol: (\w+)", native.err)
    if lacks and f"lacks {lacks.group(1)}" in reviewed:
        used.add(f"lacks {lacks.group(1)}")  # what comes after it cannot be compared
    elif lacks:
        yield f"{chapter}: the driver lacks {lacks.group(1)}"
    for name, result in (("natively", native), ("through Longwire", ours)):
        if result.code != 0 and not (lacks and result is native):
            yield f"{chapter}: {name} it ended with {result.code}: {result.err.strip()[-300:]}"
    if not lacks and len(answers(native)) != len(answers(ours)):
        yield f"{chapter}: {len(answers(ours))} checks, natively {len(answers(native))}"
    for (check, wanted), (same, found) in zip(answers(native), answers(ours)):
        if check != same:
            yield f"{chapter}: the checks part at '{check}' and '{same}'"
            return
        if wanted in (found, "(left out)"):
            continue
        reasons = [pattern for pattern in reviewed if fnmatch.fnmatchcase(check, pattern)]
        used.update(reasons)
        if not reasons:
            yield f"{chapter}: {check} = {found}, natively {wanted}"


def parts_of(folder, environment, every_call):
    """(program, chapter, how many checks the library may die of)"""
    program = folder / "conformance"
    chapters = server.run([program], environment).out.split()
    parts = [(program, chapter, MOST_LEFT_OUT) for chapter in chapters]
    return parts + [(folder / "every_call", mode, 100) for mode in MODES if every_call]


def recorded(mode):
    """The driver's answers as every_call would have printed them."""
    text = (HERE / "every_call-h100.txt").read_text().replace("\n    ", " ")
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    for name, *codes in rows:
        place = MODES.index(mode)
        while codes[place] == "=":
            place -= 1
        code = codes[place]
        prefix = "CUDA_" if code == "SUCCESS" else "CUDA_ERROR_"
        yield f"{name}({mode})", "(left out)" if code == "-" else prefix + code


def run_recorded():
    """As run, for every_call alone; functions that this driver did not have are not compared."""
    reviewed, checks, faults = read_reviewed("gpu"), 0, []
    with server.Server(driver="software") as longwire:
        program = longwire.build / "tests" / "conformance" / "every_call"
        for mode in MODES:
            ours = server.run(longwire.command(program, mode), longwire.environment(), 60)
            if ours.code != 0:
                faults.append(f"{mode}: it ended with {ours.code}: {ours.err.strip()[-300:]}")
            found = dict(answers(ours))
            for check, wanted in recorded(mode):
                checks += 1
                listed = any(fnmatch.fnmatchcase(check, pattern) for pattern in reviewed)
                if wanted not in (found.get(check), "(left out)") and not listed:
                    faults.append(f"{check} = {found.get(check)}, the driver {wanted}")
    print("\n".join(faults))
    print(f"{checks} checks, {len(faults)} unexpected differences")
    return not faults and checks >= LEAST_CHECKS


def run(gpu, build=None, every_call=False):
    """Prints what differs and the sums; returns whether all is as it should be."""
    reviewed, used, checks, faults = read_reviewed("gpu" if gpu else "software"), set(), 0, []
    with server.Server(driver="auto" if gpu else "software", build=build) as longwire:
        folder = longwire.build / "tests" / "conformance"
        software = longwire.dist / "lib" / "longwire" / "softgpu"
        environment = longwire.environment(**({} if gpu else {"LD_LIBRARY_PATH": software}))
        # Natively a program sees every device.
        seen = {"LONGWIRE_DEVICES": len(glob.glob("/dev/nvidia[0-9]*"))} if gpu else {}
        for program, chapter, most in parts_of(folder, environment, every_call):
            ours = server.run(longwire.command(program, chapter), longwire.environment(**seen), 60)
            native, died = run_without_deaths(
                lambda lines, words=(program, chapter): server.run(
                    words, {**environment, "CONFORMANCE_LEAVE_OUT": lines}, 60), ours, most)
            for check in died:
                reasons = [pattern for pattern in reviewed
                           if fnmatch.fnmatchcase(f"dies {check}", pattern)]
                used.update(reasons)
                if not reasons:
                    faults.append(f"{chapter}: natively the driver dies of {check}")
            checks += min(len(answers(native)), len(answers(ours)))
            faults += compare(chapter, native, ours, reviewed, used)
    for fault in faults:
        print(fault)
    for pattern in set(reviewed) - used:
        print(f"(reviewed and not met this time: {pattern})")
    print(f"{checks} checks, {len(faults)} unexpected differences, "
          f"{len(used)} of {len(reviewed)} reviewed ones met")
    if checks < LEAST_CHECKS:
        print(f"fewer than {LEAST_CHECKS} checks were made")
    return not faults and checks >= LEAST_CHECKS


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gpu", action="store_true", help="compare with this machine's driver")
    parser.add_argument("--every-call", action="store_true", help="call every function, too")
    parser.add_argument("--recorded", action="store_true", help="compare with recorded answers")
    arguments = parser.parse_args()
    if arguments.recorded:
        return 0 if run_recorded() else 1
    return 0 if run(arguments.gpu, every_call=arguments.every_call) else 1


if __name__ == "__main__":
    sys.exit(main())
