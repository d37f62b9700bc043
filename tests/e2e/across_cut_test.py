"""Cables that are cut while a program has devices of three servers: whoever does not need what is
cut goes on."""
import unittest

import namespaces
from bridges_network import BYTES
from three_servers import ThreeTest


class CutTest(ThreeTest):
    def cut_both(self, one, other):
        self.cut((one, other), (other, one))

    def test_cables_between_a_third_server_and_the_others(self):
        """Copies between a and b go on; c is reached by the program alone."""
        process = self.start_copies(60)
        self.cut_both("a", "c")
        self.cut_both("b", "c")
        self.expect_end(process)
        passed, result = self.far(3)
        self.assertLess(passed, 2.5 * BYTES, result.err)

    def test_the_cable_between_the_program_and_a_third_server(self):
        process = self.start_copies(60)
        self.cut_both(namespaces.CLIENT, "c")
        result = self.expect_end(process)
        self.assertNotIn("a copy between servers has failed", result.err)
        for name in ("a", "b"):
            self.expect_server_goes_on(name)

    def test_a_cable_between_two_of_three(self):
        process = self.start_far()
        self.cut_both("a", "b")
        self.expect_failure(process)
        for name in self.names:
            self.expect_server_goes_on(name)


if __name__ == "__main__":
    unittest.main()
