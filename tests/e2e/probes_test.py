"""Probes in programs' kernels: what the tools count, that programs compute what they did before,
and what is refused. All programs with --long."""
import pathlib
import re
import sys
import tempfile
import unittest

import programs
import server

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "extending.md"
TOOLS = ["threadhist", "kernelretsnoop", "launchlate", "memhist", "smload"]
# Of the programs: kernels with divergence, calls, shared memory and fences; graphs; the driver's API.
SAMPLE = ["vector_add.static", "reduce_shuffle.static", "scan.static", "graph_capture.static",
          "driver_ptx.cuda"]
# Their kernels do other things when they run longer, or they look at what is not the same.
NOT_EQUAL = {}
LONG = "--long" in sys.argv


def count_of(report, title):
    """The sum of the counts below a title."""
    lines = report.split(title + "\n", 1)[1].splitlines()
    total = 0
    for line in lines:
        match = re.match(r"^ +(?:[0-9A-Z]+ to [0-9A-Z]+|\d+) +(\d+)(?:  #+)?$", line)
        if not match:
            break
        total += int(match[1])
    return total


class ProbesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def probe(self, tool, name, *options, arguments=()):
        with tempfile.NamedTemporaryFile("r") as report:
            command = [self.longwire.dist / "bin" / "longwire", "probe", tool, "-o", report.name,
                       *options, "--server", self.longwire.address, "--",
                       self.longwire.program(name), *arguments]
            result = server.run(command, self.longwire.environment())
            return result, report.read()

    def check(self, tool, name):
        result, report = self.probe(tool, name)
        wrong = programs.what_is_wrong(name.split(".")[0], result)
        self.assertIsNone(wrong, f"{tool} {name}: {result}\n{report}\n{self.longwire.log_tail()}")
        return report

    def test_programs_compute_what_they_did_before(self):
        for name in SAMPLE:
            for tool in TOOLS[::2] if name != SAMPLE[0] else TOOLS:
                with self.subTest(name, tool=tool):
                    report = self.check(tool, name)
                    self.assertNotIn(" 0 places", report)


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--long"])
