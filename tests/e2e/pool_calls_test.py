"""No call after a session's opening touches etcd: its requests are counted while a program makes
ten thousand calls, and with all members killed the program goes on and ends well."""
import re
import subprocess
import unittest
import urllib.request

import pool_servers
import server

CALLS = 10_000
# What the host writes meanwhile by its own clock: its lease, its load, its mirror, in a minute.
OWN = CALLS // 20


class PoolCallsTest(unittest.TestCase):
    def setUp(self):
        self.pool = self.enterContext(pool_servers.Pool("a", members=1, devices=1,
                                                        memory=1 << 30))
        longwire = self.pool.servers["a"]
        self.program = subprocess.Popen(
            longwire.command(longwire.program("allocate.static"), "hold"),
            env=longwire.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: pool_servers.end([self.program]))
        while server.next_line(self.program) not in ("READY\n", ""):
            pass

    def requests(self):
        """All that the member has begun to answer, of whatever kind."""
        member = self.pool.etcd.members[0]
        with urllib.request.urlopen(f"http://{member.address}/metrics", timeout=5) as page:
            return sum(float(value) for value in re.findall(
                r"^grpc_server_started_total\{.*\} (\S+)$", page.read().decode(), re.M))

    def call(self, times):
        """Five at a time: memory is taken, filled, read, given back, and its rest asked for."""
        for _ in range(times // 5):
            self.program.stdin.write("1048576\nfree\n")
            self.program.stdin.flush()
            said = [server.next_line(self.program) for _ in range(3)]
            self.assertEqual("1048576 cudaSuccess\n", said[0])
            self.assertRegex(said[2], r"free \d+ total \d+")

    def test_calls_ask_nothing_of_etcd(self):
        before = self.requests()
        self.call(CALLS)
        asked = self.requests() - before
        print(f"{asked:.0f} requests to etcd while the program made {CALLS} calls")
        self.assertLess(asked, OWN)
        # What a session asks at its opening is counted, so the counter counts.
        before = self.requests()
        self.assertEqual(0, self.pool.servers["a"].run("vector_add.static").code)
        self.assertGreater(self.requests() - before, 3)

    def test_a_program_goes_on_and_ends_well_without_etcd(self):
        self.pool.etcd.members[0].kill()
        self.call(CALLS // 10)
        self.assertFalse(self.pool.etcd.answers())
        out, err = self.program.communicate("\n", timeout=60)
        self.assertEqual(0, self.program.returncode, (out, err))
        self.assertIn("allocate", out)
        longwire = self.pool.servers["a"]
        server.wait_for(lambda: not longwire.status()["sessions"], 20, "the session's end")


if __name__ == "__main__":
    unittest.main()
