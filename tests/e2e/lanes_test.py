"""Large copies over connections that break, and ends in the middle of them."""
import os
import signal
import time
import unittest

import programs
import server
from proxy import Proxy


class LanesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

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
                                         LONGWIRE_DISABLE="striped_transfers"))
        self.assertEqual(1, self.proxy.connections)

    def test_a_session_without_large_copies_has_one_connection(self):
        result = self.longwire.run("vector_add.static", server=self.proxy.address,
                                   LONGWIRE_TRANSFER_STREAMS=3, LONGWIRE_TRANSFER_FROM=1 << 30)
        self.assertIsNone(programs.what_is_wrong("vector_add", result))
        self.assertEqual(1, self.proxy.connections)

    def test_the_local_door(self):
        self.expect_pass(self.longwire.run("large_copies.static", timeout=60,
                                           server=f"unix:{self.longwire.door}",
                                           LONGWIRE_TRANSFER_STREAMS=4, LONGWIRE_COPY_THREADS=3))

    def test_settings_that_are_none(self):
        result = self.run_copies(LONGWIRE_TRANSFER_STREAMS="many", LONGWIRE_COPY_THREADS=0)
        self.assertEqual(0, result.code, result)
        first, second = result.err.strip().splitlines()
        self.assertIn("LONGWIRE_TRANSFER_STREAMS=many is not a number from 0 to 16", first)
        self.assertIn("LONGWIRE_COPY_THREADS=0 is not a number from 1 to", second)

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
