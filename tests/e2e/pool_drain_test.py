"""Hosts of a pool are taken out of service and put back, through whichever server: nothing that was
not placed there before is opened there any more, and no program notices but those that a drain's
deadline ends."""
import contextlib
import threading
import time
import unittest

import pool_history
import pool_servers
import scrape
import server


class PoolDrainTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pool = cls.enterClassContext(pool_servers.Pool(sessions=30, memory=8 << 30))

    def setUp(self):
        self.programs = []
        self.addCleanup(self.ends)

    def ends(self):
        for host in "abc":
            self.admin("a", "uncordon", host)
            self.assertFalse(self.cordoned(host))
        pool_servers.end(self.programs)
        server.wait_for(self.pool.no_claims, 20, "the end of all claims")

    def admin(self, front, *words):
        """By root at that server's own socket."""
        longwire = self.pool.servers[front]
        return longwire.cli("admin", *words, "--server", f"unix:{longwire.door}")

    def done(self, front, *words):
        result = self.admin(front, *words)
        self.assertEqual(0, result.code, result)
        return result.out

    def cordoned(self, host):
        return self.pool.etcd.keys("cap/")[f"cap/{host}"]["cordoned"]

    def hold(self, front, *words, **variables):
        self.programs.append(self.pool.held(front, words, **variables))
        return self.programs[-1]

    def status(self, front):
        longwire = self.pool.servers[front]
        return longwire.cli("status", "--pool", "--server", longwire.address).out

    def says_drained(self, host):
        """Whether the host says so of itself, over the network and at its own socket."""
        longwire = self.pool.servers[host]
        return ["\ndrained in the pool by " in longwire.cli("status", "--server", server).out
                for server in (longwire.address, f"unix:{longwire.door}")]

    def sessions(self, host):
        return len(self.pool.servers[host].status()["sessions"])

    def revision(self):
        return max(revision for revision, _, _ in self.pool.etcd.history())

    def placed_at(self, host, since):
        return [key for revision, key, value in self.pool.etcd.history(since + 1)
                if key.startswith(f"claim/{host}/") and value and value["state"] == "RESERVED"]

    @contextlib.contextmanager
    def load(self):
        """Programs that come and go all the time; gives the results of those that have ended."""
        over, results = threading.Event(), []

        def come_and_go(front, **variables):
            while not over.is_set():
                results.append(self.pool.servers[front[0]].run(
                    "vector_add.static", server=",".join(
                        self.pool.servers[name].address for name in front), **variables))

        threads = [threading.Thread(target=come_and_go, args=(front,), kwargs=variables)
                   for front, variables in (("abc", {}), ("bca", {"LONGWIRE_WAIT": "60s"}),
                                            ("cab", {}))]
        for thread in threads:
            thread.start()
        try:
            yield results
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def test_a_host_drained_under_load_and_none_fails(self):
        held = [self.hold(front) for front in "abcabc"]
        with self.load() as results:
            server.wait_for(lambda: any(self.placed_at("b", 1)) and len(results) > 3, 30, "load")
            said = self.done("a", "drain", "b")
            self.assertRegex(said, r"the host 'b' gets no new sessions any more; it has \d+ sess")
            since, ended = self.revision(), len(results)
            server.wait_for(lambda: len(results) > ended + 12, 60, "more programs")
        self.assertEqual([], [one for one in results if one.code != 0])
        self.assertEqual([], self.placed_at("b", since))
        # What ran there goes on until it ends by itself.
        self.assertTrue(all(one.poll() is None for one in held))
        server.wait_for(lambda: "its sessions move away or end by" in self.status("c"), 10,
                        "the host's word")
        for name, drained in (("a", False), ("b", True)):
            with self.subTest(name):
                self.assertEqual([drained, drained], self.says_drained(name))
                page = scrape.Scrape(self.pool.metrics[name])
                self.assertEqual(int(drained), page.values["longwire_pool_withdrawn"])
        self.assertRegex(self.status("c"), r"host b .* takes no new ones\n  drained by .*; longwire"
                                           r" admin uncordon b takes it back; its sessions "
                                           r"move away or end by")
        pool_servers.end(held)
        server.wait_for(lambda: self.sessions("b") == 0, 20, "an empty host")
        server.wait_for(lambda: "nothing runs there any more" in self.status("a"), 10, "the news")
        self.assertEqual([], pool_history.Checker().replay(self.pool.etcd.history()))
        self.assertIn("gets new sessions again", self.done("c", "uncordon", "b"))
        self.hold("a", "--label", "name=b")
        server.wait_for(lambda: not any(self.says_drained("b")), 10, "its own word")

    def test_it_outlasts_restarts_of_the_host_and_of_the_placer(self):
        self.done("c", "cordon", "b")
        for name in {"b", self.pool.placer()}:
            self.pool.servers[name].end_daemon()
            self.pool.servers[name].start_daemon()
        server.wait_for(lambda: set(self.pool.joined()) == set("abc"), 20, "all hosts")
        server.wait_for(self.pool.placer, 20, "a placer")
        server.wait_for(lambda: "host b" in self.status("a"), 10, "etcd")
        self.assertTrue(self.cordoned("b"))
        for front in "bbb":
            self.hold(front, LONGWIRE_WAIT="60s")
        self.assertEqual({}, self.pool.claims()["b"])
        self.assertRegex(self.status("b"), r"host b .*\n  cordoned by ")
        self.assertIn("taken out of service in the pool, too", self.done("b", "drain", "--off"))

    def test_what_runs_at_the_deadline_is_ended_and_a_restart_does_not_put_it_off(self):
        longwire = self.pool.servers["b"]
        copies = [longwire.dist / "bin" / "longwire", "run", "--label", "name=b", "--server",
                  longwire.address, "--", longwire.program("keep_copying.static")]
        program = server.start_session(copies, longwire.environment())
        self.assertEqual("READY\n", server.next_line(program))
        other = self.hold("a", "--label", "name=a")
        began = time.monotonic()
        said = self.done("a", "drain", "b", "--deadline", "16s")
        self.assertIn("it has 1 session; what still runs after 16 s is ended", said)
        server.wait_for(lambda: "what runs is ended in " in self.status("c"), 5, "the deadline")
        time.sleep(max(0, began + 9 - time.monotonic()))
        longwire.end_daemon()
        longwire.start_daemon()
        self.assertIsNone(program.poll())
        result = server.finish(program, 60)
        took = time.monotonic() - began
        self.assertGreaterEqual(took, 15)
        self.assertLess(took, 24)  # counted anew it would be at 25 s at the earliest
        self.assertEqual(3, result.code, result)
        self.assertIn("the host 'b' was drained by an administrator, and the time that its "
                      "sessions had is over", result.err)
        self.assertIsNone(other.poll())

    def test_a_host_that_is_away_keeps_to_it_once_it_is_back(self):
        self.pool.servers["c"].end_daemon()
        server.wait_for(lambda: self.pool.joined() == ["a", "b"], 20, "its end")
        self.assertIn("it is not in the pool now, and keeps to it once it is back",
                      self.done("a", "drain", "c"))
        self.pool.servers["c"].start_daemon()
        server.wait_for(lambda: "c" in self.pool.joined(), 20, "its return")
        self.assertTrue(self.cordoned("c"))
        for front in "ccc":
            self.hold(front)
        self.assertEqual({}, self.pool.claims()["c"])

    def test_what_cannot_be_done_says_why(self):
        for words in (["drain", "d"], ["cordon", "d"], ["uncordon", "d"],
                      ["drain", "d", "--deadline", "1h"]):
            result = self.admin("a", *words)
            self.assertEqual((1, "longwire admin: not done\nthe pool knows no host 'd'; it has "
                                 "a, b, c\n"), (result.code, result.err), words)
        self.assertIn("was not taken out of service through the pool; nothing has changed",
                      self.done("a", "uncordon", "b"))
        self.done("b", "drain")
        server.wait_for(lambda: self.cordoned("b"), 10, "the drain")
        result = self.admin("a", "uncordon", "b")
        self.done("b", "drain", "--off")
        self.assertEqual(1, result.code, result)
        self.assertIn("longwired there was drained by itself", result.err)
        # Both, and one of them taken back.
        self.done("b", "drain")
        self.done("a", "cordon", "b")
        server.wait_for(lambda: self.pool.etcd.keys("cap/")["cap/b"]["drainedHere"], 10, "both")
        self.assertIn("but longwired there was drained by itself", self.done("a", "uncordon", "b"))
        self.assertTrue(self.cordoned("b"))
        self.done("b", "drain", "--off")
        server.wait_for(lambda: not self.cordoned("b"), 10, "the end of both")
        for words, text in ((["drain", "b", "--deadline", "soon"], "--deadline expects a duration"),
                            (["drain", "--deadline", "1h"], "--deadline goes with the name of a"),
                            (["uncordon"], "HOST")):
            result = self.admin("a", *words)
            self.assertEqual(2, result.code, result)
            self.assertIn(text, result.err)
        with server.Server(warm_workers=0) as alone:
            result = alone.cli("admin", "drain", "b", "--server", f"unix:{alone.door}")
            self.assertEqual(1, result.code, result)
            self.assertIn("this server is not in a pool, so it knows no host 'b'", result.err)
            self.assertEqual(0, alone.run("vector_add.static").code)

    def test_a_device_is_uncordoned_as_before(self):
        self.assertIn("device 1 gets no new sessions", self.done("a", "cordon", "1"))
        self.assertIn("device 1 gets new sessions again", self.done("a", "uncordon", "1"))


if __name__ == "__main__":
    unittest.main()
