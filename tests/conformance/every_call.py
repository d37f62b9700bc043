#!/usr/bin/env python3
"""Writes every_call.inc: the names of all functions that work, for every_call.cc.

    every_call.py SUPPORT.MD CUDA.H OUTPUT

SUPPORT.MD is the generated list of functions. The names are those of cuda.h, which gives each its
newest version.
"""
import pathlib
import re
import sys

PROTOTYPE = re.compile(r"^(?:__CUDA_DEPRECATED\s+)?CUresult\s+CUDAAPI\s+(\w+)\s*\(", re.MULTILINE)
ROW = re.compile(r"^\| `(cu\w+)` \|[^|]*\|[^|]*\| (?!no: )", re.MULTILINE)


def base(name):
    return re.sub(r"_v\d+$", "", name)


def served(support):
    """The functions of the list that are not refused, under the names of cuda.h."""
    return {base(name) for name in ROW.findall(support)}


def declared(header):
    """What programs see: what stands behind __CUDA_API_VERSION_INTERNAL are older versions."""
    public = header.split("\n#if defined(__CUDA_API_VERSION_INTERNAL)\n")[0]
    return list(dict.fromkeys(PROTOTYPE.findall(public)))


def main(support, header, output):
    known = served(pathlib.Path(support).read_text())
    names = [name for name in declared(pathlib.Path(header).read_text()) if name in known]
    pathlib.Path(output).write_text("".join(f"CALL({name})\n" for name in names))
    return 0 if names else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
