"""One program with devices of three servers, each on a machine of its own: programs of two devices,
order, and what becomes of the others when one server ends."""
import os
import signal
import unittest

import across_programs_test
import programs
from three_servers import ThreeTest


class ProgramsTest(ThreeTest):
    def test_programs_of_two_devices(self):
        listed = {line.split()[1] for line in across_programs_test.listed()
                  if line.startswith("program ")}
        for names in (self.names[:2], self.names):
            found = {}
            for program in across_programs_test.PROGRAMS:
                name = program.split(".")[0]
                result = self.run_over(names, program)
                self.assertIsNotNone(result.code, f"{program} does not end")
                if wrong := programs.what_is_wrong(name, result):
                    found[name] = wrong
            self.assertEqual(listed, set(found), f"{names}: {found}\n{self.logs()}")

    def test_order_over_three(self):
        result = self.run_over(self.names, "across_order.static", 150, 3)
        self.assertIsNone(programs.what_is_wrong("across_order", result),
                          f"{result}\n{self.logs()}")

    def test_waits_and_copies_that_are_passed_too_early_are_found(self):
        for program, words in (("across_order", (150, 3)), ("across_copies", (40, 3))):
            result = self.run_over(self.names, f"{program}.static", *words,
                                   LONGWIRE_DISABLE="waits_across")
            self.assertEqual(1, result.code, f"{program}: {result}")
            self.assertRegex(result.out + result.err,
                             "out of order|another value came out|is [0-9a-f]{2}, not")

    def test_a_server_that_ends_leaves_the_others(self):
        """Its devices are not those of the copies."""
        process = self.start_copies(30)
        for name in ("longwired", "longwire-warden", "longwire-worker"):
            for pid in self.servers["c"].processes().get(name, ()):
                os.kill(pid, signal.SIGKILL)
        result = self.expect_end(process)
        self.assertIn(self.servers["c"].address, result.err)


if __name__ == "__main__":
    unittest.main()
