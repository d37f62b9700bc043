"""Keepers that are killed while programs of several tenants allocate and free: every program reads
the bytes that it reads without that, what is lent is right before, in between and at the end, and
what two programs share stays shared.

keepers_test.py [--long]: with more kills, and more programs at once.
"""
import os
import signal
import subprocess
import sys
import time
import unittest

import server
import tenants

MIB = 1 << 20
LONG = "--long" in sys.argv
KILLS = 10 if LONG else 3
ROUNDS, BUFFERS, MOST = 600 if LONG else 80, 12, 24
TENANTS = {"one": {"memory": "600MiB"}, "two": {"memory_reserved": "64MiB"},
           "admin": {"admin": True}}
PROGRAMS = [("one", 1), ("one", 2), ("two", 3)] + ([("two", 4), ("admin", 5)] if LONG else [])


class KeepersTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(
            tenants.TenantServer(TENANTS, software_memory=2048 * MIB))

    def start(self, tenant, program, *words):
        process = subprocess.Popen(
            self.longwire.command(self.longwire.program(program), *map(str, words)),
            env=self.longwire.environment_of(tenant), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def expect_line(self, process, beginning):
        line = server.next_line(process)
        if not line or not line.startswith(beginning):
            process.kill()
            self.fail(f"{line!r}, not {beginning}: {process.communicate()} "
                      + self.longwire.log_tail())
        return line

    def kill_keeper(self):
        keeper = self.longwire.processes()["longwire-keeper"]
        os.kill(keeper[0], signal.SIGKILL)
        server.wait_for(
            lambda: self.longwire.processes()["longwire-keeper"] not in ([], keeper), 20,
            "another keeper")

    def figures(self):
        """Of the device, of all sessions, of all tenants: three sums of the same."""
        status = self.longwire.status_as("admin")
        of_tenants = sum(tenant.get("memory_leased", 0) - tenant.get("memory_charged", 0)
                         for tenant in status.get("tenants", []))
        return (status["devices"][0].get("leased", 0),
                sum(session.get("leased", 0) for session in status["sessions"]), of_tenants)

    def expect_sums(self, programs_have):
        """The three sums agree, and are what the programs have and what sessions keep for them."""
        def agree():
            self.seen = self.figures()
            return len(set(self.seen)) == 1
        server.wait_for(agree, 5, "figures that agree")
        self.assertGreaterEqual(self.seen[0], programs_have)
        return self.seen[0]

    def run_all(self, kills):
        """The last line of each program; the keeper is killed that often in each of two bouts."""
        programs = [self.start(tenant, "allocate_on.static", ROUNDS, BUFFERS, MOST, seed)
                    for tenant, seed in PROGRAMS]
        for process in programs:
            self.expect_line(process, "READY")
        for _ in range(kills):
            self.kill_keeper()
            time.sleep(0.1)
        has = sum(int(self.expect_line(process, "has").split()[1]) for process in programs)
        before = self.expect_sums(has)
        if kills:
            self.kill_keeper()
            self.assertEqual(before, self.expect_sums(has))
        for process in programs:
            process.stdin.write(f"{ROUNDS // 2}\n")
            process.stdin.flush()
        if kills:
            self.kill_keeper()
        sums = []
        for process in programs:
            out, err = process.communicate(timeout=120)
            self.assertEqual(0, process.returncode, out + err + self.longwire.log_tail())
            sums.append(out)
        server.wait_for(lambda: self.figures() == (0, 0, 0), 20, "nothing lent")
        return sums

    def test_programs_read_the_same_bytes(self):
        undisturbed = self.run_all(0)
        self.assertEqual(undisturbed, self.run_all(KILLS))
        # And all of the device is lent again.
        result = self.longwire.run_as("admin", self.longwire.program("allocate.static"),
                                      *[128 * MIB] * 16)
        self.assertEqual(15, result.out.count("cudaSuccess"),
                         result.out + self.longwire.log_tail())

    def test_a_limit_holds_over_keepers(self):
        holder = self.start("one", "allocate.static", 300 * MIB, "hold")
        while self.expect_line(holder, "") != "READY\n":
            pass
        self.kill_keeper()
        result = self.longwire.run_as("one", self.longwire.program("allocate.static"),
                                      301 * MIB, 236 * MIB)
        self.assertIn(f"{301 * MIB} cudaErrorMemoryAllocation", result.out)
        self.assertIn(f"{236 * MIB} cudaSuccess", result.out)

    def test_shared_memory_can_be_opened_after_its_keeper(self):
        offering = self.start("one", "ipc_handle.static", "offer")
        handle = self.expect_line(offering, "").strip()
        self.expect_line(offering, "READY")
        for tenant, said in (("one", "cudaSuccess\n77777777\n"), ("two", "cudaErrorInvalidValue\n"),
                             ("one", "cudaSuccess\n77777777\n")):
            self.kill_keeper()
            result = self.longwire.run_as(tenant, self.longwire.program("ipc_handle.static"),
                                          "take", handle)
            self.assertTrue(result.out.startswith(said),
                            result.out + result.err + self.longwire.log_tail())
        offering.communicate()
        server.wait_for(lambda: self.figures() == (0, 0, 0), 20, "nothing lent")


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--long"])
