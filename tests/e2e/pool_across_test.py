"""Programs that ask a pool for more devices than one host has: three servers with two devices each.
The history of etcd's keys is checked revision by revision."""
import json
import unittest

import pool_history
import pool_servers
import programs
import server

FREE = "on several hosts: {} devices that nobody uses"


class PoolAcrossTest(pool_servers.PoolCase):
    keys, pool_keys, of_host = {}, {}, {}

    @classmethod
    def setUpClass(cls):
        cls.pool = cls.enterClassContext(pool_servers.Pool(
            members=1, keys=cls.keys, pool_keys=cls.pool_keys, of_host=cls.of_host))

    def check(self):
        history = self.pool.etcd.history()
        checker = pool_history.Checker()
        self.assertEqual([], checker.replay(history))
        return checker

    def run_at(self, front, name, *words, **variables):
        one = self.pool.servers[front]
        return server.run([one.dist / "bin" / "longwire", "run", *words, "--server", one.address,
                           "--", one.program(name)], one.environment(**variables))

    def cli(self, *words):
        return self.pool.servers["a"].cli(*words, "--server", self.pool.servers["a"].address)

    def claims(self):
        return [(host, claim) for host, of in sorted(self.pool.claims().items())
                for claim in of.values()]

    def logs(self):
        return "\n".join(one.log_tail() for one in self.pool.servers.values())


class PlacesTest(PoolAcrossTest):
    def test_four_devices_are_of_two_hosts(self):
        result = self.run_at("c", "across_order.static", "--devices", "4")
        self.assertIsNone(programs.what_is_wrong("across_order", result),
                          f"{result}\n{self.logs()}")
        server.wait_for(self.pool.no_claims, 20, "the end of its claims")
        self.hold("c", "--devices", "4")
        claims = self.claims()
        self.assertEqual(["a", "b"], [host for host, _ in claims])
        for _, claim in claims:
            self.assertEqual([0, 1], claim["devices"])
            self.assertTrue(claim["alone"])
            self.assertEqual(["a", "b"], [place["host"] for place in claim["places"]])
        sessions = [self.pool.servers[host].status()["sessions"] for host in "abc"]
        self.assertEqual([1, 1, 0], list(map(len, sessions)))
        self.assertEqual(sessions[0][0]["program_id"], sessions[1][0]["program_id"])
        self.assertIn("of one program alone", self.cli("status", "--pool").out)
        checker = self.check()
        (_, first), (_, second) = claims
        other = {**first, "alone": False, "places": []}
        faults = checker.with_planted(("claim/a/77", other), ("sess/77", {"host": "a"}))
        self.assertTrue(any("alone and has 2 claims" in one for one in faults), faults)
        lone = {**second, "places": [{"host": "a", "number": "99", "devices": 2}]}
        faults = checker.with_planted(("claim/b/98", lone), ("sess/98", {"host": "b"}))
        self.assertTrue(any("without its place at a" in one for one in faults), faults)

    def test_five_devices_are_of_three(self):
        self.hold("a", "--devices", "5", "--memory", "100MiB")
        self.assertEqual([2, 2, 1], sorted((len(claim["devices"]) for _, claim in self.claims()),
                                           reverse=True))
        self.hold("a")  # the sixth device
        result = self.run_at("b", "vector_add.static")
        self.assertEqual(0, result.code, f"that one may be shared: {result}")
        self.check()

    def test_nobody_else_gets_its_devices(self):
        self.hold("b", "--devices", "4")
        for _ in range(3):
            self.hold("a")
        self.assertEqual(3, sum(host == "c" for host, _ in self.claims()), self.claims())
        result = self.run_at("a", "vector_add.static", "--label", "name=a")
        self.assertEqual(1, result.code, result)
        self.assertIn("a: 64 MiB are missing", result.err)
        self.check()

    def test_what_others_use_is_no_part_of_it(self):
        for host in "abc":
            self.hold("a", "--label", f"name={host}")
        result = self.run_at("a", "vector_add.static", "--devices", "4")
        self.assertEqual(1, result.code, result)
        self.assertIn(FREE.format(3), result.err)
        explained = self.cli("pool", "explain", "--devices", "4")
        self.assertIn(FREE.format(3).replace(":", ": not now:"), explained.out)
        waits = self.pool.hold("a", ["--devices", "4"], LONGWIRE_WAIT="60s")
        self.programs.append(waits)
        server.wait_for(lambda: self.pool.etcd.keys("q/"), 10, "one that waits")
        pool_servers.end([self.programs.pop(0)])
        self.pool.await_ready(waits)
        self.assertEqual([1, 1, 2], sorted(len(claim["devices"]) for _, claim in self.claims()
                                           if claim.get("alone")))
        self.check()

    def test_same_host_keeps_it_on_one(self):
        self.hold("a", "--devices", "2", "--same-host")
        result = self.run_at("a", "vector_add.static", "--devices", "4", "--same-host")
        self.assertEqual(1, result.code, result)
        self.assertIn("a: it has 2 such devices, and the program asks for 4", result.err)
        self.assertNotIn("several hosts", result.err)
        explained = self.cli("pool", "explain", "--devices", "4", "--same-host")
        self.assertEqual(1, explained.code)
        self.assertNotIn("several hosts", explained.out)

    def test_one_host_is_better_than_several(self):
        self.hold("a", "--devices", "2")
        (_, claim), = self.claims()
        self.assertFalse(claim.get("alone"), claim)

    def test_explained(self):
        explained = self.cli("pool", "explain", "--devices", "3")
        self.assertEqual(0, explained.code, explained)
        self.assertIn("on several hosts: has room: 2 of a, 1 of b", explained.out)
        told = json.loads(self.cli("pool", "explain", "--devices", "7", "--json").out)
        self.assertFalse(told["room"])
        self.assertEqual("not now: 6 devices that nobody uses", told["several_hosts"])

    def test_a_daemon_that_is_restarted_knows_that_they_are_alone(self):
        self.hold("c", "--devices", "4")
        one = self.pool.servers["a"]
        one.end_daemon()
        one.start_daemon()
        server.wait_for(lambda: "a" in self.pool.joined(), 20, "the host")
        self.assertTrue(all(claim["alone"] for _, claim in self.claims()))
        self.assertTrue(all(device["alone"]
                            for device in self.pool.etcd.keys()["cap/a"]["devices"]))
        self.check()


class RefusedPlacesTest(PoolAcrossTest):
    """Nobody listens where host b says that it is reached."""
    of_host = {"b": {"address": "127.0.0.1:9"}}

    def test_another_host_takes_the_place_of_one_that_does_not_open(self):
        self.hold("a", "--devices", "4")
        def opened():
            return [host for host, claim in self.claims() if claim.get("state") == "OPEN"]
        server.wait_for(lambda: opened() == ["a", "c"], 10, "sessions at a and c")
        self.check()

    def test_all_or_nothing(self):
        result = self.run_at("a", "vector_add.static", "--devices", "6", "--wait", "0")
        self.assertEqual(1, result.code, result)
        self.assertRegex(result.err, "b: it has refused this program")
        server.wait_for(lambda: not self.pool.servers["a"].status()["sessions"], 10, "the end")
        self.check()


class LimitTest(PoolAcrossTest):
    """Each of its sessions counts."""
    keys = {"software_device": {"count": 2},
            "tenants": [{"name": "research", "identities": ["loopback"], "devices": 2,
                         "admin": True}]}
    pool_keys = {"limits": [{"tenant": "research", "sessions": 4}]}

    def test_sessions_of_the_tenant(self):
        for host in "abc":
            self.hold("a", "--devices", "1", "--memory", "400MiB", "--label", f"name={host}")
        wide = ["--devices", "2", "--memory", "300MiB"]
        self.assertIn("on several hosts: has room: 1 of a, 1 of b",
                      self.cli("pool", "explain", *wide).out)
        result = self.run_at("a", "vector_add.static", *wide)
        self.assertEqual(1, result.code, result)
        self.assertIn("MiB are missing", result.err)
        self.check()


if __name__ == "__main__":
    unittest.main()
