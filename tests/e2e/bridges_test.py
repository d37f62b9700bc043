"""Copies between servers on machines of their own: they go from server to server, and the program's
host does not see their bytes. What happens where the servers do not reach each other, and where a
cable is cut or a server ends in the middle."""
import json
import os
import pathlib
import re
import signal
import unittest

import namespaces
import pool_network
import programs
import server

BYTES = 32 << 20
NAMES = ("a", "b")
PASS = "READY\nPASS across_copies\n"


class BridgesTest(unittest.TestCase):
    config = {"insecure_listen_anywhere": True, "resume_grace": "6s"}

    def setUp(self):
        self.network = self.enterContext(namespaces.Network(NAMES))
        self.servers = {name: self.enterContext(self.host(name)) for name in NAMES}

    def host(self, name):
        return pool_network.Host(self.network, name, 0, config=json.dumps(self.config))

    def environment(self):
        return self.servers["a"].environment(LONGWIRE_ACROSS=1, LONGWIRE_TRACE="summary")

    def command(self, *arguments):
        addresses = ",".join(self.servers[name].address for name in NAMES)
        one = self.servers["a"]
        return one.command(one.program("across_copies.static"), *arguments, server=addresses)

    def run_copies(self, *arguments, timeout=120):
        return server.run(self.command(*arguments), self.environment(), timeout)

    def logs(self):
        return "\n".join(one.log_tail() for one in self.servers.values())

    def client_bytes(self):
        """That have passed the program's cable, in both directions."""
        table = pathlib.Path("/proc/thread-self/net/dev").read_text()
        numbers = re.search(r"cable:(.*)", table).group(1).split()
        return int(numbers[0]) + int(numbers[8])

    def far(self, copies):
        """Large copies, and how many bytes passed the program's host for them."""
        before = self.client_bytes()
        result = self.run_copies("far", copies, BYTES)
        self.assertEqual((0, PASS), (result.code, result.out), f"{result}\n{self.logs()}")
        return self.client_bytes() - before, result

    def start_far(self):
        process = server.start_session(self.command("far", 1 << 20, BYTES), self.environment())
        self.addCleanup(process.kill)
        self.assertEqual("READY\n", process.stdout.readline(), self.logs())
        return process

    def expect_failure(self, process, seconds=60):
        """Both devices' contexts have failed, and the program says so."""
        result = server.finish(process, seconds)
        self.assertEqual(0, result.code, f"{result}\n{self.logs()}")
        self.assertRegex(result.out, r"^copy \d+ gave 719\n"
                                     r"device 0 gives 719\ndevice 1 gives 719\n$")
        self.assertIn("a copy between servers has failed", result.err)

    def expect_server_goes_on(self, name):
        one = self.servers[name]
        result = one.run("vector_add.static")
        self.assertIsNone(programs.what_is_wrong("vector_add", result), one.log_tail())

    def cut(self, *pairs):
        for source, target in pairs:
            self.network.cut([source], target)

    def mend(self, *pairs):
        for source, target in pairs:
            self.network.mend([source], target)

    def test_the_bytes_do_not_pass_the_program(self):
        passed, result = self.far(6)
        # Up once and down once, and what surrounds it.
        self.assertLess(passed, 2.3 * BYTES, result.err)
        self.assertIn("has a bridge to", self.logs())

    def test_through_the_program_where_the_servers_do_not_reach_each_other(self):
        self.cut(("a", "b"), ("b", "a"))
        passed, result = self.far(3)
        self.assertGreater(passed, 2 * 3 * BYTES)
        told = [line for line in result.err.splitlines() if "pass through this host" in line]
        self.assertEqual(1, len(told), result.err)
        self.assertIn(self.servers["b"].address, told[0])

    def test_the_other_server_connects_where_the_first_one_cannot(self):
        for flag in ("-A",):
            namespaces.call(*self.network.at(
                "b", "iptables", "-w", flag, "INPUT", "-s", self.network.addresses["a"], "-p",
                "tcp", "--syn", "-j", "DROP"))
        passed, result = self.far(4)
        self.assertLess(passed, 2.3 * BYTES, result.err)
        self.assertIn("has a bridge to", self.servers["b"].log.read_text())

    def test_a_cable_between_the_servers_that_is_cut_for_long(self):
        process = self.start_far()
        self.cut(("a", "b"), ("b", "a"))
        self.expect_failure(process)
        for name in NAMES:
            self.expect_server_goes_on(name)

    def test_a_server_that_ends(self):
        for name in ("longwire-worker", "longwired"):
            with self.subTest(name):
                process = self.start_far()
                one = self.servers["b"]
                doomed = ("longwire-worker",) if name == "longwire-worker" else \
                    ("longwired", "longwire-warden", "longwire-worker")
                for kind in doomed:
                    for pid in one.processes().get(kind, ()):
                        os.kill(pid, signal.SIGKILL)
                self.expect_failure(process)
                self.expect_server_goes_on("a")

    def test_a_cable_to_the_program_that_is_cut(self):
        for name in NAMES:
            with self.subTest(name):
                process = self.start_far()
                self.cut((namespaces.CLIENT, name), (name, namespaces.CLIENT))
                self.expect_failure(process)
                self.mend((namespaces.CLIENT, name), (name, namespaces.CLIENT))
                self.expect_server_goes_on(name)

    def test_a_daemon_that_is_restarted(self):
        for name in NAMES:
            with self.subTest(name):
                command = self.command("far", 12, BYTES)
                process = server.start_session(command, self.environment())
                self.addCleanup(process.kill)
                self.assertEqual("READY\n", process.stdout.readline(), self.logs())
                self.servers[name].end_daemon()
                self.servers[name].start_daemon()
                result = server.finish(process, 100)
                self.assertEqual((0, "PASS across_copies\n"), (result.code, result.out),
                                 f"{result}\n{self.logs()}")


if __name__ == "__main__":
    unittest.main()
