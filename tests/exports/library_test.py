#!/usr/bin/env python3
"""The built libcuda.so.1: what it exports, what it needs, what its cuGetProcAddress answers; the
built libnvidia-ml.so.1: what it exports and needs.

library_test.py LIBCUDA CUDA_INCLUDE
library_test.py LIBNVIDIA-ML
"""

import ctypes
import pathlib
import re
import subprocess
import sys

import header

HERE = pathlib.Path(__file__).resolve().parent
NEEDED = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
NEWEST_GLIBC = (2, 34)
FOUND, UNKNOWN, TOO_OLD = 0, 1, 2  # CUdriverProcAddressQueryResult


def tool(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check_symbols(library, list_):
    allowed = set(header.read_list(HERE / list_))
    extra = set(header.read_list(HERE / "extra.txt"))
    exported = {line.split()[-1] for line in
                tool("nm", "-D", "--defined-only", library).splitlines()}
    for symbol in sorted(allowed - exported):
        yield f"{symbol} is not exported"
    for symbol in sorted(exported - allowed - extra):
        yield f"{symbol} is exported, neither NVIDIA's does nor extra.txt gives a reason"
    if any("@" in symbol for symbol in exported):
        yield "exports have symbol versions; NVIDIA's have none"


def check_interoperation(library, include):
    """The names of the headers for OpenGL, EGL and VDPAU, which no list of a stub library has."""
    exported = tool("nm", "-D", "--defined-only", library)
    for header_name in ("cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"):
        text = (pathlib.Path(include) / header_name).read_text()
        names = set(re.findall(r"CUresult CUDAAPI (cu(?!WGL)\w+)\(", text))
        names |= set(re.findall(r"#define cu\w+\s+(?:__CUDA_API_PT\w+\()?(cu\w+)", text))
        for name in sorted(names):
            if not re.search(rf" {name}$", exported, re.M):
                yield f"{name} of {header_name} is not exported"


def check_needs(library, name):
    dynamic = tool("readelf", "-d", library)
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic))
    for other in sorted(needed - NEEDED):
        yield f"needs {other}"
    if re.findall(r"\(SONAME\).*\[(.+)\]", dynamic) != [name]:
        yield f"SONAME is not {name}"
    for major, minor in sorted(set(re.findall(r"GLIBC_(\d+)\.(\d+)",
                                              tool("objdump", "-T", library)))):
        if (int(major), int(minor)) > NEWEST_GLIBC:
            yield f"needs GLIBC_{major}.{minor}"


class Lookup:
    """cuGetProcAddress_v2 of the library."""

    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        self.function = self.library.cuGetProcAddress_v2

    def __call__(self, name, version, flags):
        pointer, status = ctypes.c_void_p(), ctypes.c_int(-1)
        code = self.function(name.encode(), ctypes.byref(pointer), ctypes.c_int(version),
                             ctypes.c_uint64(flags), ctypes.byref(status))
        return code, pointer.value, status.value

    def address(self, symbol):
        return ctypes.cast(getattr(self.library, symbol), ctypes.c_void_p).value


def best(rows, version):
    """The newest of (introduced, symbol) that is not newer than `version`."""
    fitting = [row for row in rows if row[0] <= version]
    return max(fitting)[1] if fitting else None


def check_lookups(library, include):
    exports = header.read_list(HERE / "libcuda-13.0.txt")
    lookup = Lookup(library)
    rows = {}
    for name, mode, introduced, symbol in header.expected_lookups(exports, include):
        rows.setdefault(name, {}).setdefault(mode, []).append((introduced, symbol))
    versions = sorted({row[0] for modes in rows.values() for list_ in modes.values()
                       for row in list_})
    if len(rows) < 400 or len(versions) < 20:
        yield f"only {len(rows)} names and {len(versions)} versions to ask for"
    for name, modes in sorted(rows.items()):
        for version in versions:
            for flags in (0, 1, 2):
                symbol = best(modes.get(header.PER_THREAD, []), version) if flags == 2 else None
                symbol = symbol or best(modes.get(header.LEGACY, []), version)
                answer = lookup(name, version, flags)
                if symbol is not None:
                    expected = (0, lookup.address(symbol), FOUND)
                else:
                    known = any(modes.values())
                    expected = (0, None, TOO_OLD if known else UNKNOWN)
                if answer != expected:
                    yield f"{name} {version} flags {flags}: {answer}, not {expected} ({symbol})"
    if lookup("cuNoSuchFunction", 12000, 0) != (0, None, UNKNOWN):
        yield f"cuNoSuchFunction: {lookup('cuNoSuchFunction', 12000, 0)}"


def main(library, include=None):
    name = "libcuda.so.1" if include else "libnvidia-ml.so.1"
    list_ = name.replace(".so.1", "-13.0.txt")
    faults = [*check_symbols(library, list_), *check_needs(library, name)]
    if include:
        faults += [*check_interoperation(library, include), *check_lookups(library, include)]
    print("\n".join(faults[:50]))
    if len(faults) > 50:
        print(f"… {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
