"""The accounting of a device's memory after its keeper died: running sessions keep their memory,
new ones get an error instead of memory that others have, and the reported figures are right."""
import os
import signal
import subprocess
import unittest

import server

MIB = 1 << 20
CHUNK, CHUNKS = 256 * MIB, 4


class KeepersDeathTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(server.Server(software_memory=4096 * MIB))
        words = [str(CHUNK)] * CHUNKS
        self.program = subprocess.Popen(
            self.longwire.command(self.longwire.program("allocate.static"), *words, "hold"),
            env=self.longwire.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.program.communicate)
        self.addCleanup(self.program.kill)
        while self.program.stdout.readline() not in ("READY\n", ""):
            pass
        session, = self.longwire.status()["sessions"]
        os.kill(session["keeper_pids"][0], signal.SIGKILL)
        server.wait_for(lambda: not server.is_alive(session["keeper_pids"][0]), 10, "its death")

    def ask(self, word):
        self.program.stdin.write(word + "\n")
        self.program.stdin.flush()
        return self.program.stdout.readline().split(), self.program.stdout.readline().split()

    def leased(self):
        return self.longwire.status()["tenants"][0]["memory_leased"]

    def test_a_running_session_keeps_its_memory_and_gets_no_more(self):
        self.assertGreaterEqual(self.leased(), CHUNK * CHUNKS)
        (_, code), figures = self.ask(str(CHUNK))
        self.assertEqual("cudaErrorMemoryAllocation", code)
        # Its own figures are reported all the same.
        self.assertEqual(["free", "total"], figures[::2])
        self.program.stdin.write("\n")
        out, err = self.program.communicate(timeout=60)
        self.assertEqual((0, True), (self.program.returncode, out.endswith("PASS allocate\n")),
                         out + err)
        self.assertIn("the keeper of the device's memory has ended", err + self.longwire.log_tail())

    def test_a_new_session_is_refused_until_the_memory_is_back(self):
        refused = self.longwire.run("allocate.static", str(CHUNK))
        self.assertNotEqual(0, refused.code)
        self.assertIn("no device of the server can be used now; its log says why", refused.err)
        self.assertIn("running sessions (1) keep their memory of device 0, which is lent again "
                      "when they have ended", self.longwire.log_tail())
        self.assertGreaterEqual(self.leased(), CHUNK * CHUNKS)
        self.program.kill()
        self.program.wait()

        def chunks_lent(wanted):
            result = self.longwire.run("allocate.static", *[str(CHUNK)] * wanted)
            return result.out.count("cudaSuccess")
        server.wait_for(lambda: chunks_lent(1) == 1, 20, "the device after its last session")
        # All of it, and not more than there is.
        self.assertEqual(15, chunks_lent(17))


if __name__ == "__main__":
    unittest.main()
