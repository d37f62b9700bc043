"""Large copies over connections that break, and ends in the middle of them."""
import os
import pathlib
import re
import signal
import time
import unittest

import programs
import server
from proxy import Proxy


def ring_bytes(pid):
    """Resident bytes of a process's rings."""
    resident, in_ring = 0, False
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match("[0-9a-f]+-[0-9a-f]+ ", line):
            in_ring = "longwire-ring" in line
        elif in_ring and line.startswith("Rss:"):
            resident += int(line.split()[1]) << 10
    return resident


class LanesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # A proxy that is gone for good may leave a session behind, which the next test waits for.
        cls.longwire = cls.enterClassContext(server.Server(config="resume_grace: 1s\n"))

    def setUp(self):
        self.proxy = Proxy(self.longwire.port)
        self.addCleanup(self.proxy.close)

    def expect_pass(self, result):
        self.assertIsNone(programs.what_is_wrong("large_copies", result), self.longwire.log_tail())

    def run_copies(self, **environment):
        return self.longwire.run("large_copies.static", server=self.proxy.address, timeout=60,
                                 **environment)

    def test_connections_that_break_lose_and_repeat_nothing(self):
        with self.proxy.cut_again_and_again() as cuts:
            result = self.run_copies(LONGWIRE_TRANSFER_STREAMS=4)
        self.expect_pass(result)
        # Some cuts met the lanes, too: two ends of the log's connection and of others.
        self.assertGreater(max(cuts), 2, cuts)

    def test_each_stream_has_a_connection_of_its_own(self):
        self.expect_pass(self.run_copies(LONGWIRE_TRANSFER_STREAMS=3))
        self.assertEqual(4, self.proxy.connections)

    def test_the_off_switch(self):
        self.expect_pass(self.run_copies(LONGWIRE_TRANSFER_STREAMS=3,
                                         LONGWIRE_DISABLE="striped-transfers"))
        self.assertEqual(1, self.proxy.connections)

    def test_a_session_without_large_copies_has_one_connection(self):
        result = self.longwire.run("vector_add.static", server=self.proxy.address,
                                   LONGWIRE_TRANSFER_STREAMS=3, LONGWIRE_TRANSFER_FROM=1 << 30)
        self.assertIsNone(programs.what_is_wrong("vector_add", result))
        self.assertEqual(1, self.proxy.connections)

    def test_the_local_socket(self):
        self.expect_pass(self.longwire.run("large_copies.static", timeout=60,
                                           server=f"unix:{self.longwire.door}",
                                           LONGWIRE_TRANSFER_STREAMS=4, LONGWIRE_COPY_THREADS=3))

    def test_settings_that_are_none(self):
        result = self.run_copies(LONGWIRE_TRANSFER_STREAMS="many", LONGWIRE_COPY_THREADS=0)
        self.assertEqual(0, result.code, result)
        first, second = result.err.strip().splitlines()
        self.assertIn("LONGWIRE_TRANSFER_STREAMS=many is not a number from 0 to 16", first)
        self.assertIn("LONGWIRE_COPY_THREADS=0 is not a number from 1 to", second)

    def processes_of(self, program):
        """The program and those that may have rings of its session."""
        session, = self.longwire.status()["sessions"]
        # Those of other tests lead to proxies that are gone, and may still look for them.
        links = [pid for pid in self.longwire.processes()["longwire-link"] if self.longwire.address
                 in pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")]
        self.assertEqual(1, len(links))
        return [program.pid, *links, session["worker_pid"],
                self.longwire.children["longwired"].pid]

    def start_twice(self, **environment):
        self.expect_nothing_left()  # of the tests before
        program = self.longwire.start("large_copies.static", "twice", LONGWIRE_TRANSFER_STREAMS=4,
                                      **environment)
        self.addCleanup(lambda: program.poll() is None and (program.kill(), program.communicate()))
        return program

    def test_rings_give_their_memory_back(self):
        program = self.start_twice()
        processes = self.processes_of(program)
        try:
            server.wait_for(lambda: all(ring_bytes(pid) < 1 << 20 for pid in processes), 10,
                            "less memory")
        except TimeoutError:
            self.fail(f"bytes in rings: {[(pid, ring_bytes(pid)) for pid in processes]}, of the "
                      "program, the link, the worker and longwired")
        program.send_signal(signal.SIGUSR1)
        out, err = program.communicate(timeout=60)
        self.assertEqual((0, "PASS large_copies\n"), (program.returncode, out), err)

    def test_the_off_switch_of_giving_back(self):
        program = self.start_twice(LONGWIRE_DISABLE="trim-rings")
        time.sleep(3)
        self.assertGreater(ring_bytes(program.pid), 4 << 20)

    def start_copying(self):
        return self.longwire.start("keep_copying.static", LONGWIRE_TRANSFER_STREAMS=3)

    def expect_nothing_left(self):
        server.wait_for(lambda: not self.longwire.status()["sessions"], 10, "the session's end")

    def test_a_program_killed_in_the_middle_of_a_copy(self):
        process = self.start_copying()
        time.sleep(0.1)  # anywhere in its copies
        process.kill()
        process.communicate()
        self.expect_nothing_left()
        self.expect_pass(self.run_copies())

    def test_a_worker_killed_in_the_middle_of_a_copy(self):
        self.expect_nothing_left()  # of the tests before
        process = self.start_copying()
        session, = self.longwire.status()["sessions"]
        os.kill(session["worker_pid"], signal.SIGKILL)
        out, err = process.communicate(timeout=15)
        self.assertEqual(3, process.returncode, (out, err))
        self.assertEqual("cudaErrorLaunchFailure\n", out)
        self.assertRegex(err, "the session has ended: .*signal 9")
        self.expect_nothing_left()


if __name__ == "__main__":
    unittest.main()
