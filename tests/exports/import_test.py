#!/usr/bin/env python3
"""The importer against a toolkit that differs: what is new, changed and gone is said by name.

import_test.py CUDA_INCLUDE
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
IMPORTER = HERE.parents[1] / "codegen" / "import" / "import_cuda_h.py"
HEADERS = ("cuda.h", "cudaTypedefs.h", "cudaProfiler.h", "cudaProfilerTypedefs.h")

# (header, what stands there, what the other toolkit says instead); a text must be there.
EDITS = [
    # A function with a name of its own, in the group of cuCtxGetId.
    ("cuda.h", r"(CUresult CUDAAPI cuCtxGetId\()",
     r"typedef struct CUteapot_st { unsigned int cups, sugar; } CUteapot;\n"
     r"CUresult CUDAAPI cuCtxBrew(CUcontext ctx, const char *what, CUteapot *pot);\n\1"),
    ("cudaTypedefs.h", r"(typedef CUresult \(CUDAAPI \*PFN_cuCtxGetId_v12000\))",
     r"typedef CUresult (CUDAAPI *PFN_cuCtxBrew_v13010)(CUcontext ctx);\n\1"),
    # A variant of a function that there is.
    ("cuda.h", r"(CUresult CUDAAPI cuStreamGetDevice\()",
     r"CUresult CUDAAPI cuStreamGetDevice_v2(CUstream hStream, int *where);\n\1"),
    # A parameter of another type, one with another name, one more.
    ("cuda.h", r"cuDeviceGetCount\(int \*count\)", "cuDeviceGetCount(unsigned int *count)"),
    ("cuda.h", r"cuDriverGetVersion\(int \*driverVersion\)", "cuDriverGetVersion(int *version)"),
    ("cuda.h", r"cuCtxGetFlags\(unsigned int \*flags\)",
     "cuCtxGetFlags(unsigned int *flags, size_t size)"),
    # A larger struct.
    ("cuda.h", r"(struct CUuuid_st \{[^}]*char bytes\[)16\]", r"\g<1>32]"),
    # Another version, and a function that is gone.
    ("cudaTypedefs.h", r"PFN_cuMemGetInfo_v3020", "PFN_cuMemGetInfo_v3050"),
    ("cuda.h", r"CUresult CUDAAPI cuMemFreeHost\(.*?\);",
     ""),
]

EXPECTED = [
    "// new: context.proto",
    "message cuCtxBrew {",
    "option (call) = {introduced: 13010};",
    "string what = 2;",
    "CUteapot pot = 3 [(out) = true];",
    "// new: types.proto",
    "message CUteapot { option (type) = {kind: STRUCT, bytes: 8}; }",
    r"changed: CUuuid \(types.proto\) has 32 bytes, not 16",
    "// new: stream.proto",
    "message cuStreamGetDevice_v2 {",
    r"changed: cuDeviceGetCount \(\w+.proto:\d+\): parameter 1 is unsigned int\* count, "
    r"described as int\* count",
    r"changed: cuDriverGetVersion \(\w+.proto:\d+\): parameter 1 is int\* version, "
    r"described as int\* driverVersion",
    r"changed: cuCtxGetFlags \(\w+.proto:\d+\): parameter 2 is size_t size, described as nothing",
    r"changed: cuMemGetInfo_v2 \(\w+.proto:\d+\): introduced in 3050, not 3020",
    r"gone: cuMemFreeHost \(memory.proto:\d+\)",
]


def write_other_toolkit(include, folder):
    for header in HEADERS:
        shutil.copy(pathlib.Path(include) / header, folder / header)
    for header, pattern, replacement in EDITS:
        text, count = re.subn(pattern, replacement, (folder / header).read_text())
        if count == 0:
            raise ValueError(f"{header} has nothing like {pattern}")
        (folder / header).write_text(text)


def check(said, code, errors):
    lines = [line.strip() for line in said.splitlines()]
    for expected in EXPECTED:
        # What is printed as the description would have it is compared as it stands.
        literal = not expected.startswith(("changed", "gone"))
        if not any(line == expected if literal else re.fullmatch(expected, line)
                   for line in lines):
            yield f"not said: {expected}"
    extra = [line for line in lines if line.startswith(("gone:", "changed:", "// new:"))]
    if len(extra) != 9:
        yield f"{len(extra)} differences, not 9"
    if not re.match(r"2 new, 4 changed, 1 gone, \d+ in the header; 2 types", errors):
        yield f"the sum: {errors.strip()}"
    if code != 1:
        yield f"exit code {code}, where there are differences"


def main(include):
    with tempfile.TemporaryDirectory() as folder:
        write_other_toolkit(include, pathlib.Path(folder))
        result = subprocess.run([sys.executable, IMPORTER, "--include", folder],
                                capture_output=True, text=True)
    faults = list(check(result.stdout, result.returncode, result.stderr))
    if faults:
        print("\n".join(faults), "\nsaid:\n" + result.stdout + result.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
