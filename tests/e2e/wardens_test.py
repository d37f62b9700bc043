"""A warden that is killed while programs run: every program is notified and none hangs, nothing of
it is left, and the next warden serves the same daemon."""
import os
import signal
import subprocess
import time
import unittest

import server

MIB = 1 << 20


class WardensTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(server.Server(software_memory=1024 * MIB))

    def start(self, *words, said="READY\n"):
        process = subprocess.Popen(
            self.longwire.command(self.longwire.program(words[0]), *map(str, words[1:])),
            env=self.longwire.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(said, server.next_line(process), self.longwire.log_tail())
        return process

    def test_sessions_end_with_a_sentence_and_the_next_warden_serves(self):
        allocating = self.start("allocate_on.static", 1000000, 8, 8, 1)
        waiting = self.start("until_the_end.static", "wait_device", 60, 2)
        warden = self.longwire.children.pop("longwire-warden")
        children = [pid for name in ("longwire-worker", "longwire-keeper")
                    for pid in self.longwire.processes()[name]]
        self.assertGreaterEqual(len(children), 3)
        os.kill(warden.pid, signal.SIGKILL)
        warden.wait()
        begun = time.monotonic()
        server.wait_for(lambda: not any(map(server.is_alive, children)), 2, "the workers' end")
        _, err = allocating.communicate(timeout=60)
        self.assertNotEqual(0, allocating.returncode)
        self.assertIn("longwire: the session has ended: the server's warden ended", err)
        out, err = waiting.communicate(timeout=60)
        self.assertEqual(0, waiting.returncode, out + err)  # it was notified, with errors since
        self.assertIn("ERROR 719", out)
        self.assertLess(time.monotonic() - begun, 6)
        self.longwire._start("longwire-warden", "--socket", self.longwire.warden_socket,
                             "--driver", "software")

        def is_served():
            result = self.longwire.run("allocate.static", str(800 * MIB))
            return "cudaSuccess" in result.out
        server.wait_for(is_served, 20, "a session of the next warden")


if __name__ == "__main__":
    unittest.main()
