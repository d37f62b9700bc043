"""A pool whose members of etcd, placer and hosts are killed: nothing is placed twice, nothing is
given away that still runs, and what has ended is given back."""
import signal
import time
import unittest

import pool_history
import pool_servers
import server


class PoolFailuresTest(unittest.TestCase):
    def setUp(self):
        self.pool = self.enterContext(pool_servers.Pool(sessions=12, memory=8 << 30))
        self.programs = []
        self.addCleanup(lambda: pool_servers.end(self.programs))

    def hold(self, front, *words, **variables):
        self.programs.append(self.pool.held(front, words, LONGWIRE_WAIT="60s", **variables))
        return self.programs[-1]

    def check(self, **about):
        self.assertEqual([], pool_history.Checker(**about).replay(self.pool.etcd.history()))

    def kill(self, name):
        daemon = self.pool.servers[name].children.pop("longwired")
        daemon.kill()
        daemon.wait()

    def test_members_of_etcd_killed(self):
        self.hold("a")
        self.pool.etcd.leader().kill()
        began = time.monotonic()
        self.hold("b")
        print(f"a place {time.monotonic() - began:.1f} s after the leader's end")
        # Without a majority: who runs goes on, nobody is placed, and it is said why.
        alive = [one for one in self.pool.etcd.members if one.process.poll() is None]
        alive[0].kill()
        result = self.pool.servers["a"].run("vector_add.static")
        self.assertEqual(1, result.code, result)
        self.assertIn("etcd", result.err)  # for five seconds it may come back
        self.assertTrue(all(one.poll() is None for one in self.programs))
        alive[0].start(self.pool.etcd.cluster())
        server.wait_for(self.pool.etcd.answers, 20, "etcd")
        self.hold("c")
        # A place of which nobody knows is given back by its host.
        server.wait_for(lambda: sum(map(len, self.pool.claims().values())) == 3, 20, "3 claims")
        self.check()

    def test_the_placer_killed(self):
        self.hold("a")
        placer = self.pool.placer()
        self.kill(placer)
        others = "abc".replace(placer, "")
        began = time.monotonic()
        self.hold(others)
        print(f"a place {time.monotonic() - began:.1f} s after the placer's end")
        self.assertNotEqual(placer, self.pool.placer())
        self.check(killed=[placer])

    def test_a_placer_that_slept(self):
        """Stopped for longer than its lease: what it then still wants to place compares what is
        not so any more."""
        placer = self.pool.placer()
        others = "abc".replace(placer, "")
        daemon = self.pool.servers[placer].children["longwired"]
        daemon.send_signal(signal.SIGSTOP)
        try:
            for _ in range(4):
                self.hold(others)
        finally:
            daemon.send_signal(signal.SIGCONT)
        server.wait_for(lambda: set(self.pool.joined()) == set("abc"), 20, "all hosts")
        for front in "abc":
            self.hold(front)
        self.assertEqual(7, sum(map(len, self.pool.claims().values())))
        self.check()

    def test_a_host_killed_keeps_its_claims_until_it_is_back(self):
        for front in "abcabc":
            self.hold(front)
        held = self.pool.claims()["b"]
        self.assertEqual(2, len(held))
        self.kill("b")
        server.wait_for(lambda: "b" not in self.pool.joined(), 20, "the end of b's lease")
        self.assertEqual(held.keys(), self.pool.claims()["b"].keys())
        # Its workers wait for the next daemon, and its programs with them.
        self.pool.servers["b"].start_daemon()
        server.wait_for(lambda: "b" in self.pool.joined(), 20, "b")
        self.assertEqual(held.keys(), self.pool.claims()["b"].keys())
        self.assertTrue(all(one.poll() is None for one in self.programs))
        self.check(killed=["b"])
        pool_servers.end(self.programs)
        server.wait_for(self.pool.no_claims, 20, "the end of all claims")
        self.check(killed=["b"])

    def test_a_host_that_is_gone_is_forgotten(self):
        for front in "abc":
            self.hold(front)
        asked = self.pool.servers["a"]
        result = asked.cli("admin", "forget", "b", "--server", f"unix:{asked.door}")
        self.assertEqual(1, result.code, result)
        self.assertIn("the host 'b' is in the pool", result.err)
        self.pool.servers["b"].__exit__()
        server.wait_for(lambda: "b" not in self.pool.joined(), 20, "the end of b")
        before = self.pool.claims()["b"]
        result = asked.cli("admin", "forget", "b", "--server", f"unix:{asked.door}")
        self.assertEqual(0, result.code, result)
        self.assertIn(f"the host 'b' and {len(before)} claims are forgotten", result.out)
        self.assertEqual(["cap/a", "cap/c"], sorted(self.pool.etcd.keys("cap/")))
        self.check(killed=["b"], forgotten=["b"])
        result = asked.cli("admin", "forget", "nobody", "--server", f"unix:{asked.door}")
        self.assertIn("the pool knows no host 'nobody'", result.err)
        self.pool.servers.pop("b")

    def test_another_host_of_a_known_name_is_refused(self):
        self.hold("b")
        self.pool.servers["b"].__exit__()
        server.wait_for(lambda: "b" not in self.pool.joined(), 20, "the end of b")
        self.pool.servers.pop("b")
        with self.pool.make("b") as other:
            text = "the pool knows 'b' as another host"
            server.wait_for(lambda: text in other.log.read_text(), 10, "the refusal")
            self.assertNotIn("b", self.pool.joined())
            asked = self.pool.servers["a"]
            result = asked.cli("admin", "forget", "b", "--server", f"unix:{asked.door}")
            self.assertEqual(0, result.code, result)
            server.wait_for(lambda: "b" in self.pool.joined(), 10, "the new b")
        self.check(killed=["b"], forgotten=["b"])


if __name__ == "__main__":
    unittest.main()
