"""A server whose workers need long to start, as with a context on each of several devices: programs
wait for it as long as it is alive."""
import os
import signal
import threading
import unittest

import programs
import server

PROGRAMS = 6
SECONDS = 7  # longer than a server may take that says nothing


class SlowStartTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(server.Server(warm_workers=0))
        self.assertEqual(0, self.longwire.run("vector_add.static").code)  # a link runs

    def stop(self, name, seconds):
        pids = self.longwire.processes()[name]
        self.assertTrue(pids, name)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

        def go_on():
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        timer = threading.Timer(seconds, go_on)
        timer.start()
        self.addCleanup(timer.join)

    def results(self, address):
        running = [server.start_session(
            self.longwire.command(self.longwire.program("vector_add.static"), server=address),
            self.longwire.environment()) for _ in range(PROGRAMS)]
        return [server.finish(process, 60) for process in running]

    def test_programs_wait_while_workers_start(self):
        for address in (self.longwire.address, f"unix:{self.longwire.door}"):
            with self.subTest(address):
                self.stop("longwire-keeper", SECONDS)
                for result in self.results(address):
                    self.assertIsNone(programs.what_is_wrong("vector_add", result), result)

    def test_a_server_that_is_stopped_is_named_soon(self):
        self.stop("longwired", 12)
        result = self.longwire.run("vector_add.static")
        self.assertEqual(1, result.code)
        self.assertIn("is longwired there stopped", result.err)
        self.assertLess(result.seconds, 8)


if __name__ == "__main__":
    unittest.main()
