"""longwire trace --calls: each call of the driver with its result, when it began, and how long it
took."""
import re
import unittest

import programs
import server

LINE = re.compile(r"^longwire: \[(\d+)\] (cu\w+) = (CUDA_\w+)"
                  r"(?:, at (\d+\.\d{6}) s for (\d+\.\d) us)?$")
MICROSECOND = 1e-6


class TraceTest(unittest.TestCase):
    def test_calls_have_times(self):
        longwire = self.enterContext(server.Server())
        result = longwire.cli("trace", "--server", longwire.address, "--calls", "--",
                              longwire.program("vector_add.static"))
        self.assertEqual(0, result.code, result.err[-500:])
        self.assertIn("PASS vector_add", result.out)
        calls = [found.groups() for found in map(LINE.match, result.err.splitlines()) if found]
        names = [name for _, name, *_ in calls]
        self.assertIn("cuInit", names)
        self.assertIn("cuLaunchKernel", names)
        timed = [(int(thread), float(at), float(took) * MICROSECOND)
                 for thread, _, _, at, took in calls if at is not None]
        self.assertGreaterEqual(len(timed), len(calls) - 1, "but cuInit, with which tracing begins")
        end = 0
        for _, at, took in [call for call in timed if call[0] == 1]:
            self.assertGreaterEqual(at, end - 2 * MICROSECOND)  # as the line rounds them
            end = at + took
        self.assertLess(0, sum(took for *_, took in timed))
        self.assertLess(end, result.seconds)
        self.assertIsNone(programs.what_is_wrong("vector_add", longwire.run("vector_add.static")))


if __name__ == "__main__":
    unittest.main()
