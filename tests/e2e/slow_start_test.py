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

    def stop(self, name):
        """Returns what lets it go on."""
        pids = self.longwire.processes()[name]
        self.assertTrue(pids, name)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

        def go_on():
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        self.addCleanup(go_on)
        return go_on

    def results(self, address):
        running = [server.start_session(
            self.longwire.command(self.longwire.program("vector_add.static"), server=address),
            self.longwire.environment()) for _ in range(PROGRAMS)]
        return [server.finish(process, 60) for process in running]

    def test_programs_wait_while_workers_start(self):
        for address in (self.longwire.address, f"unix:{self.longwire.door}"):
            with self.subTest(address):
                timer = threading.Timer(SECONDS, self.stop("longwire-keeper"))
                timer.start()
                self.addCleanup(timer.join)
                for result in self.results(address):
                    self.assertIsNone(programs.what_is_wrong("vector_add", result), result)

    def test_a_server_that_is_stopped_is_named_soon(self):
        self.stop("longwired")
        result = self.longwire.run("vector_add.static")
        self.assertEqual(1, result.code)
        self.assertIn("is longwired there stopped", result.err)
        self.assertLess(result.seconds, 20)


if __name__ == "__main__":
    unittest.main()
