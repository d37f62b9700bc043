"""The accounting of a device's memory when its keeper is killed: running sessions keep their memory
and allocate on, new ones get the rest and not what others have, and the figures are right."""
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
        while server.next_line(self.program) not in ("READY\n", ""):
            pass

    def say(self, word):
        self.program.stdin.write(word + "\n")
        self.program.stdin.flush()

    def ask(self, word):
        self.say(word)
        return server.next_line(self.program).split(), server.next_line(self.program).split()

    def leased(self):
        status = self.longwire.status()
        session, = status["sessions"]
        device, = status["devices"]
        tenant, = status["tenants"]
        return session["leased"], device["leased"], tenant["memory_leased"]

    def expect_nothing_lent(self):
        server.wait_for(self.longwire.is_unused, 20, "the memory")
        tenants = self.longwire.status().get("tenants", [])
        self.assertEqual([], [tenant for tenant in tenants if tenant.get("memory_leased", 0) != 0])

    def kill_keeper(self):
        """Kills it, and looks at the figures until there is another one."""
        before = self.leased()
        keeper = self.longwire.processes()["longwire-keeper"]
        os.kill(keeper[0], signal.SIGKILL)
        server.wait_for(lambda: not server.is_alive(keeper[0]), 10, "its death")
        seen = [self.leased()]

        def is_replaced():
            seen.append(self.leased())
            return self.longwire.processes()["longwire-keeper"] not in ([], keeper)
        server.wait_for(is_replaced, 20, "another keeper")
        seen += [self.leased() for _ in range(3)]
        self.assertEqual([before] * len(seen), seen)
        session, = self.longwire.status()["sessions"]
        self.assertEqual(self.longwire.processes()["longwire-keeper"], session["keeper_pids"])
        return before[0]

    def end(self):
        self.program.stdin.write("\n")
        out, err = self.program.communicate(timeout=60)
        self.assertEqual((0, True), (self.program.returncode, out.endswith("PASS allocate\n")),
                         out + err + self.longwire.log_tail())

    def test_a_running_session_allocates_on(self):
        before = self.kill_keeper()
        self.assertGreaterEqual(before, CHUNK * CHUNKS)
        for more in range(1, 4):
            (_, code), (_, free, _, total) = self.ask(str(CHUNK))
            self.assertEqual("cudaSuccess", code)
            self.assertLessEqual(int(free), int(total) - (CHUNKS + more) * CHUNK)
            self.assertGreaterEqual(int(free), int(total) - before - (more + 1) * CHUNK)
        self.kill_keeper()
        self.say("free")  # also what it has of the first two keepers
        self.assertIn("free", server.next_line(self.program))
        self.assertEqual("cudaSuccess", self.ask(str(CHUNK))[0][1])
        self.end()
        self.expect_nothing_lent()

    def chunks_lent(self, wanted):
        result = self.longwire.run("allocate.static", *[str(CHUNK)] * wanted)
        lent = result.out.count("cudaSuccess")
        self.assertNotEqual(0, lent, (result, self.longwire.log_tail()))
        return lent

    def test_a_new_session_gets_the_rest_and_not_what_others_have(self):
        self.kill_keeper()
        self.assertEqual(15 - CHUNKS, self.chunks_lent(17))
        self.end()
        server.wait_for(self.longwire.is_unused, 20, "the memory")
        self.assertEqual(15, self.chunks_lent(17))

    def test_what_a_worker_had_that_ended_meanwhile_is_lent_again(self):
        keeper, = self.longwire.processes()["longwire-keeper"]
        worker = self.longwire.status()["sessions"][0]["worker_pid"]
        os.kill(keeper, signal.SIGSTOP)  # it does not notice the other one's end
        os.kill(worker, signal.SIGKILL)
        os.kill(keeper, signal.SIGKILL)
        # Until there is another keeper no session can be opened.
        server.wait_for(lambda: self.longwire.status()["devices"][0].get("keeper_pid")
                        not in (None, 0, keeper), 20, "another keeper")
        self.expect_nothing_lent()
        self.assertEqual(15, self.chunks_lent(17))


if __name__ == "__main__":
    unittest.main()
