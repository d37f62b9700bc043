"""Hosts whose etcd does not answer, because its members are stopped, so that calls to them hang:
sessions that run do not notice, hosts open new ones within what they have, and when etcd is back
it has them all, and nothing twice."""
import pathlib
import signal
import subprocess
import time
import unittest

import pool_history
import pool_servers
import server

MIB = pool_servers.MIB
SESSIONS = 3  # of each host
WORK = 40
COUNTED = "counted"  # a tenant whose sessions are counted over the pool
FREE = "free"


class PoolCutOffTest(unittest.TestCase):
    def setUp(self):
        self.pool = self.enterContext(pool_servers.Pool(
            names="ab", devices=1, memory=1 << 30, sessions=SESSIONS,
            keys={"tenants": [{"name": FREE, "identities": ["loopback"], "admin": True}]},
            pool_keys={"limits": [{"tenant": COUNTED, "sessions": 5}]}))
        self.programs = []
        self.addCleanup(lambda: pool_servers.end(self.programs))

    def stop_etcd(self):
        for member in self.pool.etcd.members:
            member.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.resume_etcd)

    def etcd_is_stopped(self):
        states = [pathlib.Path(f"/proc/{one.process.pid}/stat").read_text().rsplit(") ")[1][0]
                  for one in self.pool.etcd.members]
        return states == ["T"] * len(states)

    def resume_etcd(self):
        for member in self.pool.etcd.members:
            member.process.send_signal(signal.SIGCONT)

    def hold(self, front):
        self.programs.append(self.pool.held(front))

    def status(self, host):
        """Sessions; not over the pool, so etcd is not asked."""
        return self.pool.servers[host].status()["sessions"]

    def try_at(self, host):
        return self.pool.servers[host].run("vector_add.static")

    def opens(self, host):
        return self.try_at(host).code == 0

    def allocator(self, host):
        longwire = self.pool.servers[host]
        program = subprocess.Popen(
            [longwire.dist / "bin" / "longwire", "run", "--label", f"name={host}", "--server",
             longwire.address, "--", longwire.program("allocate.static"), "hold"],
            env=longwire.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.programs.append(program)
        said = []
        while not said or said[-1] not in ("READY\n", ""):
            said.append(server.next_line(program))
        self.assertEqual("READY\n", said[-1], longwire.log_tail())
        return program

    def test_what_runs_does_not_notice_and_a_daemon_ends(self):
        program = self.allocator("a")
        self.stop_etcd()
        # Each needs answers of worker and keeper; all are done while no call to etcd is.
        for _ in range(WORK):
            for words, lines in ((f"{96 * MIB}", 2), ("free", 1)):
                program.stdin.write(words + "\n")
                program.stdin.flush()
                said = [server.next_line(program) for _ in range(lines)]
                self.assertNotIn("Error", said[0])
                self.assertNotIn("", said)
            self.assertEqual(1, len(self.status("a")))
        self.assertTrue(self.etcd_is_stopped())
        began = time.monotonic()
        daemon = self.pool.servers["b"].children.pop("longwired")
        daemon.terminate()
        daemon.wait(20)
        print(f"a daemon ended after {time.monotonic() - began:.1f} s without etcd")
        self.assertTrue(self.etcd_is_stopped())

    def test_a_host_opens_what_it_has_room_for_and_tells_it_afterwards(self):
        self.hold("a")
        self.hold("b")
        before = self.pool.claims()
        self.assertEqual([1, 1], [len(of) for of in before.values()])
        self.stop_etcd()
        server.wait_for(lambda: self.opens("a"), 30, "a session of a host that is cut off")
        # Those that have ended leave their room.
        for _ in range(SESSIONS):
            server.wait_for(lambda: len(self.status("a")) == 1, 10, "the end of the last one")
            self.assertEqual(0, self.try_at("a").code)
        for _ in range(SESSIONS - 1):
            self.hold("a")
        refused = self.try_at("a")
        self.assertEqual(1, refused.code, refused)
        self.assertIn("this host is cut off from the pool's etcd, and has no room itself",
                      refused.err)
        self.assertEqual(SESSIONS, len(self.status("a")))
        self.assertEqual(1, len(self.status("b")))
        self.resume_etcd()
        server.wait_for(lambda: self.pool.etcd.answers() and
                        len(self.pool.claims()["a"]) == SESSIONS, 30, "the claims")
        server.wait_for(lambda: set(self.pool.joined()) == set("ab"), 20, "both hosts")
        claims = self.pool.claims()
        self.assertEqual(SESSIONS - 1, sum(one.get("local", False) for one in claims["a"].values()))
        self.assertLessEqual(before["a"].keys(), claims["a"].keys())
        self.assertEqual(before["b"].keys(), claims["b"].keys())
        # What is placed from now on counts them.
        self.hold("a")
        self.hold("b")
        self.assertEqual([SESSIONS, SESSIONS], [len(of) for of in self.pool.claims().values()])
        self.assertEqual(1, self.try_at("b").code)
        pool_servers.end(self.programs)
        server.wait_for(self.pool.no_claims, 20, "the end of all claims")
        self.assertEqual([], pool_history.Checker().replay(self.pool.etcd.history()))


class PoolCutOffCountedTest(unittest.TestCase):
    def test_sessions_that_the_pool_counts_are_not_opened(self):
        with pool_servers.Pool(
                names="a", members=1, devices=1,
                keys={"tenants": [{"name": COUNTED, "identities": ["loopback"], "admin": True}]},
                pool_keys={"limits": [{"tenant": COUNTED, "sessions": 5}]}) as pool:
            member = pool.etcd.members[0].process
            self.assertEqual(0, pool.servers["a"].run("vector_add.static").code)
            member.send_signal(signal.SIGSTOP)
            said = f"the sessions of the tenant '{COUNTED}' are counted over the whole pool"
            server.wait_for(lambda: said in pool.servers["a"].run("vector_add.static").err, 30,
                            "the refusal")
            member.send_signal(signal.SIGCONT)
            server.wait_for(lambda: pool.servers["a"].run("vector_add.static").code == 0, 30,
                            "a place")


if __name__ == "__main__":
    unittest.main()
