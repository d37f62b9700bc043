"""A program that profiles itself with CUPTI, as torch.profiler does, gets no records, and longwire
doctor --explain says so and what shows them."""
import pathlib
import sys
import tempfile
import unittest

import server

# Kernels and copies, asked for before the first call as a profiler does.
PROGRAM = """
import ctypes, sys
cupti = ctypes.CDLL({cupti!r})
for kind in (1, 3, 5, 10):  # copies, kernels, driver, concurrent kernels
    print("enable", kind, cupti.cuptiActivityEnable(kind))
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
print("enable again", cupti.cuptiActivityEnable(3))
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), 4096) == 0
assert cuda.cuMemsetD8_v2(memory, 7, 4096) == 0
assert cuda.cuCtxSynchronize() == 0
print("PASS")
"""


def cupti():
    """The toolkit's, where CMake found it; nvcc in the PATH may be a script elsewhere."""
    cache = (server.build_folder() / "CMakeCache.txt").read_text()
    [line] = [line for line in cache.splitlines() if line.startswith("LONGWIRE_CUDA_STUB:")]
    return pathlib.Path(line.split("=", 1)[1]).parents[1] / "libcupti.so"


class ProfilerTest(unittest.TestCase):
    def test_it_is_told_and_works(self):
        longwire = self.enterContext(server.Server())
        folder = self.enterContext(tempfile.TemporaryDirectory())
        program = pathlib.Path(folder) / "profiled.py"
        program.write_text(PROGRAM.format(cupti=str(cupti())))
        result = longwire.cli("doctor", "--server", longwire.address, "--explain", "--",
                              sys.executable, str(program))
        self.assertIn("PASS", result.out, result.err)
        self.assertEqual(0, result.code, result.err)
        report = result.err.split("It used what Longwire refuses:\n")[1].splitlines()
        [line] = [line for line in report if "CUPTI" in line]
        self.assertIn("CUPTI is not supported: no records of kernels, copies and calls come to "
                      "profilers", line)
        self.assertIn("longwire trace -o FILE", line)


if __name__ == "__main__":
    unittest.main()
