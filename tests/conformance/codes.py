#!/usr/bin/env python3
"""The table of codes: every code that cuda.h documents for a function that works here is provoked
by a check of this folder, or not-provoked.txt names it with a reason.

    codes.py           runs all checks through Longwire on the software device and looks
    codes.py --table   prints the table, too: function, code, where it was provoked

A pair that is provoked and yet listed by its own name is a fault, too: the list says what is true.
"""
import fnmatch
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

import compare  # noqa: E402
import every_call  # noqa: E402
import server  # noqa: E402  (it lies in the folder just named)

LISTED = HERE / "not-provoked.txt"
COMMENTED = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\s*(?:__CUDA_DEPRECATED\s+)?"
                       r"CUresult\s+CUDAAPI\s+(\w+)\s*\(", re.DOTALL)
RETURNS = re.compile(r"\\returns?\b(.*?)(?:\\sa\b|\\note|\Z)", re.DOTALL)
# NVIDIA's driver looks at what handles of nothing point to, so it is not asked.
MODES = compare.MODES + ("strangers",)
# What checks call by a name of their own.
HELPERS = {"Add": "cuLinkAddData", "Launch": "cuLaunchKernel"}
OPTIONS = re.compile(r"^message (cu\w+) \{\s*option \(call\) = \{([^}]*)\}", re.MULTILINE)


def documented(header):
    """{function: codes} as the comments say, without success."""
    public = header.split("\n#if defined(__CUDA_API_VERSION_INTERNAL)\n")[0]
    table = {}
    for comment, name in COMMENTED.findall(public):
        told = RETURNS.search(comment)
        codes = re.findall(r"CUDA_ERROR_\w+", told.group(1)) if told else []
        table.setdefault(name, set()).update(codes)
    return table


def with_option(proto, option):
    texts = [path.read_text() for path in sorted(proto.rglob("*.proto"))]
    return {every_call.base(name) for text in texts for name, options in OPTIONS.findall(text)
            if f"{option}: true" in options}


def function_of(check):
    """The function that a check calls, if it is one call."""
    found = re.match(r"(?:\S+:\d+ )?(\w+)\(", check)
    name = HELPERS.get(found.group(1), found.group(1)) if found else ""
    return every_call.base(name) if name.startswith("cu") else None


def observe(longwire):
    """{(function, code): check}, and what the rounds of every_call answered."""
    folder = longwire.build / "tests" / "conformance"
    runs = [(folder / "conformance", chapter) for chapter in
            server.run([folder / "conformance"], longwire.environment(
                LD_LIBRARY_PATH=longwire.dist / "lib" / "longwire")).out.split()]
    runs += [(folder / "every_call", mode) for mode in MODES]
    provoked, rounds, faults = {}, {}, []
    for program, part in runs:
        result = server.run(longwire.command(program, part), longwire.environment(), 120)
        if result.code != 0:
            faults.append(f"{part}: it ended with {result.code}: {result.err.strip()[-300:]}")
        for check, answer in compare.answers(result):
            function = function_of(check)
            if function and answer.startswith("CUDA_"):
                provoked.setdefault((function, answer), check)
            if program.name == "every_call":
                rounds.setdefault(part, {})[function] = answer
    return provoked, rounds, faults


def read_listed():
    """[(function's pattern, code's pattern)]; each has its reason below it, indented."""
    lines = [line for line in LISTED.read_text().splitlines() if line and line[0] not in "# "]
    return [tuple(line.split()) for line in lines]


def check_table(table, provoked, listed):
    """Yields what is neither provoked nor listed, and what is both."""
    used = set()
    for function, codes in sorted(table.items()):
        for code in sorted(codes):
            reasons = [entry for entry in listed if fnmatch.fnmatchcase(function, entry[0])
                       and fnmatch.fnmatchcase(code, "CUDA_ERROR_" + entry[1])]
            used.update(reasons)
            if (function, code) in provoked:
                exact = (function, code.replace("CUDA_ERROR_", ""))
                if exact in reasons:
                    yield f"{function} {code} is listed, and {provoked[function, code]} provokes it"
            elif not reasons:
                yield f"{function} {code} is neither provoked nor listed"
    for entry in sorted(set(listed) - used):
        yield f"{' '.join(entry)} is listed, and no such pair is documented"


def check_rounds(names, proto, rounds):
    """Before cuInit all functions that need it say so, or what they look at first."""
    first = with_option(proto, "looks_first")
    for function in sorted(names - with_option(proto, "before_init")):
        answer = rounds["before_init"].get(function)
        good = answer in (None, "CUDA_ERROR_NOT_INITIALIZED")
        if not good and (function not in first or answer == "CUDA_SUCCESS"):
            yield f"{function} before cuInit: {answer}"
    for mode in MODES:
        if len(rounds[mode]) < len(names) - 10:
            yield f"{mode}: only {len(rounds[mode])} of {len(names)} functions answered"


def main(*arguments):
    build = server.build_folder()
    support = (build / "gen" / "longwire" / "support.md").read_text()
    header = pathlib.Path(os.environ["LONGWIRE_CUDA_H"]).read_text()
    names = every_call.served(support) & set(every_call.declared(header))
    table = {name: codes for name, codes in documented(header).items() if name in names}
    with server.Server() as longwire:
        provoked, rounds, faults = observe(longwire)
    faults += check_table(table, provoked, read_listed())
    faults += check_rounds(names, HERE.parents[1] / "proto" / "calls", rounds)
    pairs = {(name, code) for name, codes in table.items() for code in codes}
    if "--table" in arguments:
        for name, code in sorted(pairs):
            print(f"{name} {code} {provoked.get((name, code), '-')}")
    for fault in faults:
        print(fault)
    print(f"{len(table)} functions with {len(pairs)} documented errors, "
          f"{len(pairs & set(provoked))} provoked, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
