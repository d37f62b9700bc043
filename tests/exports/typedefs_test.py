#!/usr/bin/env python3
"""Every function that cuGetProcAddress finds has the type that cudaTypedefs.h promises for its
name, version and stream mode: said by the compiler.

typedefs_test.py GENERATED_FOLDER CUDA_INCLUDE COMPILER
"""

import pathlib
import re
import subprocess
import sys

import header

HEAD = """#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <type_traits>
"""
MODES = {header.LEGACY: ("",), header.PER_THREAD: ("_ptsz", "_ptds")}


def promised(include):
    """The names of all the types of a version."""
    found = set()
    for name in ("cudaTypedefs.h", "cudaProfilerTypedefs.h"):
        text = (pathlib.Path(include) / name).read_text()
        found.update(re.findall(r"\*(PFN_cu\w+_v\d+(?:_ptds|_ptsz)?)\)", text))
    return found


def type_of(row, types):
    name, introduced, mode, _ = row
    fitting = [f"PFN_{name}_v{introduced}{suffix}" for suffix in MODES[int(mode)]]
    return next((type_ for type_ in fitting if type_ in types), None)


def compile_text(text, include, compiler):
    return subprocess.run(
        [compiler, "-std=c++17", "-fsyntax-only", "-Wno-deprecated-declarations", f"-I{include}",
         "-x", "c++", "-"], input=text, capture_output=True, text=True)


def main(generated, include, compiler):
    table = (pathlib.Path(generated) / "proc_table.cc").read_text()
    declarations = re.search(r'extern "C" \{.*?\n\}', table, re.S).group()
    types = promised(include)
    rows = re.findall(r'\{"(\w+)", (\d+), (\d), Address\(&::(\w+)\), "\w+"\}', table)
    faults, lines, used = [], [], set()
    for row in rows:
        type_ = type_of(row, types)
        if type_ is None:
            faults.append(f"{row}: cudaTypedefs.h has no such type")
            continue
        used.add(type_)
        lines.append(f"static_assert(std::is_same_v<{type_}, decltype(&::{row[3]})>,"
                     f' "{type_}: {row[3]}");')
    faults += [f"{type_} is of no function that is found" for type_ in sorted(types - used)]
    if len(lines) < 600:
        faults.append(f"only {len(lines)} types were compared")
    result = compile_text("\n".join([HEAD, declarations, *lines, ""]), include, compiler)
    faults += [line for line in result.stderr.splitlines() if "error:" in line]
    # What the compiler lets pass is worth nothing if it lets everything pass.
    wrong = f"{HEAD}static_assert(std::is_same_v<PFN_cuInit_v2000, decltype(&::cuMemAlloc_v2)>);\n"
    if compile_text(wrong, include, compiler).returncode == 0:
        faults.append("a wrong type was accepted")
    if result.returncode != 0 and not faults:
        faults.append(result.stderr)
    print("\n".join(faults) or f"{len(lines)} types are as promised")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
