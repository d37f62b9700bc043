#!/usr/bin/env python3
"""Which driver functions the test programs call through the wire.

    coverage.py            every function that recorded.txt claims must be called again
    coverage.py --update   writes recorded.txt anew

A function counts when it succeeded in a program of tests/apps that checks its own results and
passed, or in a chapter of tests/conformance, whose results are compared with the driver's own;
the few whose right answer is an error, when it gave that. recorded.txt names one program for each,
and docs/support.md shows it.
"""
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

import narrow_test  # noqa: E402  (it lies in the folder just named)
import programs  # noqa: E402
import server  # noqa: E402

RECORDED = HERE / "recorded.txt"
# One build of each program: which variant it is changes how it comes to the same functions.
VARIANTS = {("static", "any"), ("driver", "any"), ("static", "two"),
            ("driver", "two")}

# What has no other right answer here than an error, the error, and the program that wants it. (Of
# arrays: without cuMemMapArrayAsync there are none that such questions are good for.)
ALWAYS_REFUSED = {
    "cuArrayGetMemoryRequirements": ("CUDA_ERROR_INVALID_VALUE", "driver_tensor_maps"),
    "cuArrayGetSparseProperties": ("CUDA_ERROR_INVALID_VALUE", "driver_tensor_maps"),
    "cuCtxGetExecAffinity": ("CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", "driver_context_events"),
    "cuDeviceGetLuid": ("CUDA_ERROR_NOT_SUPPORTED", "driver_context_events"),
    "cuMipmappedArrayGetMemoryRequirements": ("CUDA_ERROR_INVALID_VALUE", "driver_tensor_maps"),
    "cuMipmappedArrayGetSparseProperties": ("CUDA_ERROR_INVALID_VALUE", "driver_tensor_maps"),
    "cuProfilerInitialize": ("CUDA_ERROR_NOT_SUPPORTED", "driver_context_events"),
}
WANT_ERRORS = {program for _, program in ALWAYS_REFUSED.values()}


def good_calls(text):
    return re.findall(r"^longwire: \d+ good calls of (cu\w+)$", text, re.MULTILINE)


def functions_of(longwire, program, variant, *arguments, **environment):
    """The functions that succeeded in the program; none if it failed."""
    result = longwire.run(f"{program}.{variant}", *arguments, timeout=60, **{
        "LONGWIRE_TRACE": "summary", "LONGWIRE_DEVICES": 2, **environment})
    said = [line for line in result.err.splitlines() if not line.startswith("longwire: ")]
    wrong = programs.what_is_wrong(program, result._replace(err="\n".join(said)))
    if wrong:
        print(f"{program}: {wrong}")
        return []
    refused = [function for function, (code, where) in ALWAYS_REFUSED.items()
               if where == program and re.search(rf" {function} = {code}(,|$)", result.err, re.M)]
    return good_calls(result.err) + refused


def observe_low(found):
    """The forms with 32-bit addresses need memory below 4 GiB."""
    with server.Server(software_memory=256 << 20, variables=narrow_test.LOW) as longwire:
        for function in functions_of(longwire, "driver_narrow", "driver", "low",
                                     LONGWIRE_DEVICES=1, **narrow_test.WINDOW):
            found.setdefault(function, []).append("driver_narrow")


def observe_own(found):
    """A program that suspends itself needs a server that allows that, and one device."""
    with tempfile.TemporaryDirectory(prefix="longwire-kept-") as folder:
        config = f"checkpoint_dir: {folder}/sessions\ncheckpoint_own_sessions: 1\n"
        with server.Server(config=config) as longwire:
            for function in functions_of(longwire, "driver_own_checkpoint", "driver", "lock",
                                         "checkpoint", "restore", "unlock", "count", "join",
                                         LONGWIRE_DEVICES=1):
                found.setdefault(function, []).append("driver_own_checkpoint")


def observe():
    """{function: [programs]}"""
    found = {}
    observe_low(found)
    observe_own(found)
    # Little memory, because some take nearly all of it and other tests run beside.
    with server.Server(software_devices=2, software_memory=1 << 30) as longwire:
        for program, variant, kind in programs.list_programs(longwire.build):
            if (variant, kind) in VARIANTS:
                trace = "summary,calls" if program in WANT_ERRORS else "summary"
                for function in functions_of(longwire, program, variant, LONGWIRE_TRACE=trace):
                    found.setdefault(function, []).append(program)
        body = longwire.build / "tests" / "conformance" / "conformance"
        chapters = server.run(longwire.command(body), longwire.environment()).out.split()
        for chapter in chapters:
            result = server.run(longwire.command(body, chapter),
                                longwire.environment(LONGWIRE_TRACE="summary"))
            for function in good_calls(result.err):
                found.setdefault(function, []).append(f"conformance/{chapter}")
    return found


def read_recorded(path=RECORDED):
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(line.split() for line in lines if not line.startswith("#"))


def most_telling(found):
    """For each function the program that calls the fewest others: the one that is about it."""
    calls = {}
    for users in found.values():
        for program in users:
            calls[program] = calls.get(program, 0) + 1
    rare = {}
    for function, users in found.items():
        rare[function] = min(users, key=lambda program: (calls[program], program))
    return rare


def main(*arguments):
    found = observe()
    if arguments == ("--update",):
        telling = sorted(most_telling(found).items())
        lines = [f"{function} {program}\n" for function, program in telling]
        head = "# Written by coverage.py --update: function, a program that calls it.\n"
        RECORDED.write_text(head + "".join(lines))
        print(f"{len(lines)} functions are called")
        return 0
    missing = sorted(set(read_recorded()) - set(found))
    for function in missing:
        print(f"{function} is recorded and no program called it with success")
    unrecorded = sorted(set(found) - set(read_recorded()))
    if unrecorded:
        print(f"not recorded yet (coverage.py --update): {' '.join(unrecorded)}")
    return 1 if missing or not found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
