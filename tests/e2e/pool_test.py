"""Three servers in a pool on three members of etcd: sessions are placed once each and within what
there is, whoever dies meanwhile. The history of etcd's keys is checked revision by revision."""
import json
import unittest

import metrics_test
import pool_history
import pool_servers
import scrape
import server

AT_ONCE = 63  # programs that open at once
SESSIONS = 25  # of each host


class PoolTest(pool_servers.PoolCase):
    @classmethod
    def setUpClass(cls):
        cls.pool = cls.enterClassContext(pool_servers.Pool(
            sessions=SESSIONS, memory=8 << 30, of_host={"b": {"labels": ["gpu=h200", "zone=b"]}}))

    def check(self, **about):
        history = self.pool.etcd.history()
        self.assertEqual([], pool_history.Checker(**about).replay(history))
        return history

    def run_at(self, front, *words, **variables):
        longwire = self.pool.servers[front]
        return server.run([longwire.dist / "bin" / "longwire", "run", *words, "--server",
                           longwire.address, "--", longwire.program("vector_add.static")],
                          longwire.environment(**variables))

    def test_many_at_once_are_placed_once_each(self):
        fronts = ["abc", "bca", "cab"]
        self.programs += [self.pool.hold(fronts[i % 3][0], LONGWIRE_WAIT="120s")
                          for i in range(AT_ONCE)]
        for program in self.programs:
            self.pool.await_ready(program)
        claims = self.pool.claims()
        self.assertEqual(AT_ONCE, sum(map(len, claims.values())), claims)
        for name, longwire in self.pool.servers.items():
            sessions = longwire.status()["sessions"]
            self.assertEqual(len(claims[name]), len(sessions))
            self.assertLessEqual(len(sessions), SESSIONS)
        self.check()

    def test_labels_memory_and_devices_choose_the_host(self):
        self.hold("a", "--label", "gpu=h200", "--label", "zone=b")
        self.hold("c", "--devices", "2", "--memory", "6GiB")
        claims = self.pool.claims()
        self.assertEqual(1, len(claims["b"]))
        wide = [one for of in claims.values() for one in of.values() if len(one["devices"]) == 2]
        self.assertEqual([str(6 << 30)], [one["bytes"] for one in wide])
        for words, text in ((["--label", "gpu=none"], "a: it has no label gpu=none"),
                            (["--devices", "3", "--same-host"],
                             "a: it has 2 such devices, and the program asks"),
                            (["--memory", "9GiB"], "a: it has 0 such devices"),
                            (["--memory", "much"], "LONGWIRE_MEMORY is 'much'")):
            result = self.run_at("a", *words)
            self.assertEqual(1, result.code, result)
            self.assertIn(text, result.err)

    def test_what_is_full_is_full(self):
        """Six devices of 8 GiB take six sessions of 5."""
        for i in range(6):
            self.hold("abc"[i % 3], "--memory", "5GiB")
        self.assertEqual([2, 2, 2], [len(of) for of in self.pool.claims().values()])
        result = self.run_at("a", "--memory", "5GiB")
        self.assertEqual(1, result.code, result)
        self.assertRegex(result.err, r"a: \d+ MiB are missing; b: \d+ MiB are missing; c: ")
        self.assertEqual(0, self.run_at("a", "--memory", "2GiB").code)
        self.check()

    def test_a_program_of_the_host_stays_there(self):
        longwire = self.pool.servers["c"]
        program = longwire.start("hold_session.static", server=f"unix:{longwire.door}")
        self.programs.append(program)
        self.assertEqual([1], [len(of) for of in self.pool.claims().values() if of])
        self.assertEqual(1, len(self.pool.claims()["c"]))

    def test_status_shows_the_pool(self):
        self.hold("a", "--label", "gpu=h200")
        for front in "abc":
            result = self.pool.servers[front].cli(
                "status", "--pool", "--json", "--server", self.pool.servers[front].address)
            self.assertEqual(0, result.code, result)
            told = server.plain(json.loads(result.out))
            self.assertEqual(["a", "b", "c"], [host["name"] for host in told["hosts"]])
            self.assertEqual([0, 1, 0], [host["sessions"] for host in told["hosts"]])
            self.assertEqual(["gpu=h200", "zone=b"], told["hosts"][1]["labels"])
            self.assertEqual(front, told["host"])
        text = self.pool.servers["a"].cli("status", "--pool", "--server",
                                          self.pool.servers["a"].address).out
        self.assertRegex(text, r"host b .*1 of 25 sessions")

    def test_metrics(self):
        self.hold("a")
        pages = {name: scrape.Scrape(address) for name, address in self.pool.metrics.items()}
        seen = {name: (family.kind, "", family.help)
                for name, family in pages["a"].families.items() if "_pool_" in name}
        self.assertEqual(seen, {row[0]: row[1:] for row in
                                metrics_test.ROW.findall(metrics_test.PAGE.read_text())
                                if "_pool_" in row[0]})
        self.assertEqual([1] * 3, [one.values["longwire_pool_joined"] for one in pages.values()])
        placer = [name for name, one in pages.items() if one.values["longwire_pool_placer"]]
        self.assertEqual([self.pool.placer()], placer)
        self.assertGreaterEqual(pages[placer[0]].values["longwire_pool_placed_total"], 1)

    def test_without_etcd_a_server_opens_nothing_and_says_why(self):
        nowhere = f"127.0.0.1:{server.free_port()}"
        self.pool.of_host["alone"] = {"etcd": [nowhere]}
        with self.pool.make("alone") as alone:
            result = alone.run("vector_add.static")
            self.assertEqual(1, result.code, result)
            self.assertIn("this host is not in the pool now: ", result.err)
            server.wait_for(lambda: f"not in the pool: etcd at {nowhere}" in alone.log.read_text(),
                            10, "the reason")
            self.assertEqual([], alone.status()["sessions"])
        self.pool.metrics.pop("alone")

    def test_a_drained_host_gets_nothing_new(self):
        b = self.pool.servers["b"]
        door = f"unix:{b.door}"
        self.assertEqual(0, b.cli("admin", "drain", "--server", door).code)
        self.addCleanup(b.cli, "admin", "drain", "--off", "--server", door)
        server.wait_for(lambda: self.pool.etcd.keys("cap/")["cap/b"]["cordoned"], 10, "the drain")
        for front in "bbb":
            self.hold(front)
        self.assertEqual(0, len(self.pool.claims()["b"]))
        result = self.run_at("b", "--label", "zone=b")
        self.assertIn("b: it takes no new sessions", result.err)
        self.assertEqual(0, b.cli("admin", "drain", "--off", "--server", door).code)
        server.wait_for(lambda: not self.pool.etcd.keys("cap/")["cap/b"]["cordoned"], 10, "its end")
        self.assertEqual(0, self.run_at("b", "--label", "zone=b").code)

    def test_a_second_daemon_of_the_same_name_stays_outside(self):
        with self.pool.make("second", host="a") as second:
            text = f"another longwired is in the pool as 'a', at {self.pool.servers['a'].address}"
            server.wait_for(lambda: text in second.log.read_text(), 10, "the refusal")
            result = second.run("vector_add.static")
            self.assertEqual(1, result.code, result)
            self.assertIn("this host is not in the pool now: " + text, result.err)
        self.pool.metrics.pop("second")
        self.assertEqual(["a", "b", "c"], self.pool.joined())

    def test_the_checker_finds_what_is_planted(self):
        self.hold("a")
        history = self.check()
        (host, number), = [(host, number) for host, of in self.pool.claims().items()
                           for number in of]
        claim = self.pool.claims()[host][number]
        other = "abc".replace(host, "")[0]
        last = history[-1][0]
        capacity = self.pool.etcd.keys("cap/")[f"cap/{other}"]
        twice = {**capacity, "sessions": capacity["sessions"] + 1}
        for device in claim["devices"]:
            of = twice["devices"][device]
            twice["devices"][device] = {**of, "sessions": of["sessions"] + 1,
                                        "bytes": str(int(of["bytes"]) + int(claim["bytes"]))}
        for plants, text in (
                ([(f"claim/{other}/{number}", claim), (f"cap/{other}", twice)],
                 f"session {number} has claims at"),
                ([(f"claim/{other}/ff", claim), ("sess/ff", {"host": other, "generation": "1"})],
                 f"{other} counts 0 sessions and has 1 claims"),
                ([(f"claim/{host}/{number}", None)], f"{host} counts 1 sessions and has 0")):
            with self.subTest(text):
                planted = [(last + 1, key, value) for key, value in plants]
                faults = pool_history.Checker().replay(history + planted)
                self.assertTrue(any(text in one for one in faults), faults)


if __name__ == "__main__":
    unittest.main()
