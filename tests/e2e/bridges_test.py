"""Copies between servers on machines of their own: they go from server to server, and the program's
host does not see their bytes. What happens where the servers do not reach each other, and where one
ends in the middle."""
import os
import re
import signal
import unittest

import namespaces
import server
from bridges_network import BYTES, NAMES, PASS, BridgesTest


class CopiesTest(BridgesTest):
    def test_the_bytes_do_not_pass_the_program(self):
        passed, result = self.far(6)
        # Up once and down once, and what surrounds it.
        self.assertLess(passed, 2.3 * BYTES, result.err)
        self.assertIn("has a bridge to", self.logs())

    def sent(self, copies, size):
        """Records that the program sends to each server for copies of that size. The servers take
        all bytes straight into pinned memory."""
        result = self.run_copies("far", copies, size)
        self.assertEqual((0, PASS), (result.code, result.out), f"{result}\n{self.logs()}")
        sent = [int(count) for count in re.findall(r"(\d+) calls sent", result.err)]
        self.assertEqual(len(NAMES), len(sent), result.err)
        ordinary = re.findall(r"bridges sent .*, (\d+) in ordinary memory", result.err)
        self.assertEqual(["0"] * len(NAMES), ordinary, result.err)
        return sent

    def test_a_copy_is_announced_once(self):
        copies = 6
        small, large = self.sent(copies, BYTES // 8), self.sent(copies, BYTES)
        for before, after in zip(small, large):
            self.assertLess(after, before + copies)  # in pieces: three more for each copy

    def test_through_the_program_where_the_servers_do_not_reach_each_other(self):
        self.cut(("a", "b"), ("b", "a"))
        passed, result = self.far(3)
        self.assertGreater(passed, 2 * 3 * BYTES)
        told = [line for line in result.err.splitlines() if "pass through this host" in line]
        self.assertEqual(1, len(told), result.err)
        self.assertIn(self.servers["b"].address, told[0])

    def test_through_the_program_where_it_has_switched_bridges_off(self):
        passed, result = self.far(3, LONGWIRE_DISABLE="bridges")
        self.assertGreater(passed, 2 * 3 * BYTES, result.err)
        self.assertNotIn("has a bridge to", self.logs())

    def test_the_other_server_connects_where_the_first_one_cannot(self):
        namespaces.call(*self.network.at(
            "b", "iptables", "-w", "-A", "INPUT", "-s", self.network.addresses["a"], "-p", "tcp",
            "--syn", "-j", "DROP"))
        passed, result = self.far(4)
        self.assertLess(passed, 2.3 * BYTES, result.err)
        self.servers["b"].must_log("has a bridge to")

    def test_a_server_that_ends(self):
        for name in ("longwire-worker", "longwired"):
            with self.subTest(name):
                process = self.start_far()
                one = self.servers["b"]
                others = {"longwired": ("longwire-warden", "longwire-worker")}
                for kind in (name, *others.get(name, ())):
                    for pid in one.processes().get(kind, ()):
                        os.kill(pid, signal.SIGKILL)
                self.expect_failure(process, 1)
                self.expect_server_goes_on("a")

    def test_a_daemon_that_is_restarted(self):
        for name in NAMES:
            with self.subTest(name):
                command = self.command("far", 12, BYTES)
                process = server.start_session(command, self.environment())
                self.addCleanup(process.kill)
                self.assertEqual("READY\n", server.next_line(process), self.logs())
                self.servers[name].end_daemon()
                self.servers[name].start_daemon()
                result = server.finish(process, 100)
                self.assertEqual((0, "PASS across_copies\n"), (result.code, result.out),
                                 f"{result}\n{self.logs()}")


class SwitchedOffTest(BridgesTest):
    """In the servers' own environment."""
    variables = {"LONGWIRE_DISABLE": "bridges"}

    def test_through_the_program(self):
        passed, result = self.far(3)
        self.assertGreater(passed, 2 * 3 * BYTES, result.err)
        self.assertNotIn("has a bridge to", self.logs())


if __name__ == "__main__":
    unittest.main()
