"""Cables that are cut while a program copies between two servers: between these, and from either to
the program. What cannot happen any more is an error, in bounded time, and the servers go on."""
import time
import unittest

import namespaces
import server
from bridges_network import BYTES, NAMES, BridgesTest


class CutTest(BridgesTest):
    def test_a_cable_between_the_servers_that_is_cut(self):
        process = self.start_far()
        self.cut(("a", "b"), ("b", "a"))
        self.expect_failure(process)
        for name in NAMES:
            self.expect_server_goes_on(name)

    def test_a_cable_between_the_servers_that_is_cut_for_a_moment(self):
        process = server.start_session(self.command("far", 40, BYTES), self.environment())
        self.addCleanup(process.kill)
        self.assertEqual("READY\n", server.next_line(process), self.logs())
        self.cut(("a", "b"), ("b", "a"))
        time.sleep(14)  # both have noticed, and try again
        self.mend(("a", "b"), ("b", "a"))
        result = server.finish(process, 100)
        self.assertEqual((0, "PASS across_copies\n"), (result.code, result.out),
                         f"{result}\n{self.logs()}")
        self.assertEqual(2, sum(self.servers[name].log.read_text().count("has a bridge to")
                                for name in NAMES), self.logs())

    def test_a_cable_to_the_program_that_is_cut(self):
        for place, name in enumerate(NAMES):
            with self.subTest(name):
                process = self.start_far()
                self.cut((namespaces.CLIENT, name), (name, namespaces.CLIENT))
                try:
                    self.expect_failure(process, place)
                finally:
                    self.mend((namespaces.CLIENT, name), (name, namespaces.CLIENT))
                self.expect_server_goes_on(name)


if __name__ == "__main__":
    unittest.main()
