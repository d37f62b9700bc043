"""A pool whose servers are of several versions: programs go where their protocol is spoken, records
keep what a version does not know, and what it would have to know it does not place. Versions are
those of wire/versions.h, by its variable for tests."""
import json
import threading
import unittest

import pool_history
import pool_servers
import server

BEFORE, NOW, LATER = "13", "13-14", "15-16"


class Pool(pool_servers.Pool):
    """versions: by host; the others are of this one."""

    def __init__(self, versions, **options):
        super().__init__(**options)
        self.versions = versions

    def make_server(self, name, config):
        made = super().make_server(name, config)
        self.set_version(made, self.versions.get(name))
        return made

    @staticmethod
    def set_version(longwire, version):
        longwire.variables.pop("LONGWIRE_TEST_VERSIONS", None)
        if version:
            longwire.variables["LONGWIRE_TEST_VERSIONS"] = version


class PoolVersionsTest(pool_servers.PoolCase):
    @classmethod
    def setUpClass(cls):
        cls.pool = cls.enterClassContext(Pool({"b": BEFORE, "c": LATER}, sessions=30,
                                              memory=8 << 30))

    def admin(self, front, *words):
        longwire = self.pool.servers[front]
        result = longwire.cli("admin", *words, "--server", f"unix:{longwire.door}")
        self.assertEqual(0, result.code, result)

    def status(self):
        longwire = self.pool.servers["a"]
        return longwire.cli("status", "--pool", "--server", longwire.address).out

    def restart(self, name, version, warden=False):
        """As an upgrade does; the warden stays until its sessions have ended."""
        longwire = self.pool.servers[name]
        longwire.end_daemon()
        self.pool.set_version(longwire, version)
        if warden:
            longwire._end(longwire.children.pop("longwire-warden"))
            longwire.start_warden()
        longwire.start_daemon()
        server.wait_for(lambda: name in self.pool.joined(), 20, "its return")

    def test_programs_go_where_their_version_is_spoken(self):
        said = {name: (host["oldestProtocol"], host["newestProtocol"], host["format"])
                for name, host in self.pool.etcd.keys("host/").items()}
        self.assertEqual({"host/a": (13, 14, 1), "host/b": (13, 13, 1), "host/c": (15, 16, 1)},
                         said)
        for _ in range(4):  # spread: two each at a and b, had c not been left out one or two there
            self.hold("a")
        self.assertEqual([2, 2, 0], [len(of) for of in self.pool.claims().values()])
        a = self.pool.servers["a"]
        result = server.run([a.dist / "bin" / "longwire", "run", "--label", "name=c", "--server",
                             a.address, "--", a.program("vector_add.static")], a.environment())
        self.assertEqual(1, result.code, result)
        self.assertIn("c: it speaks protocol 15 to 16, the program protocol 13 to 14", result.err)
        words = ["pool", "explain", "--server", a.address]
        self.assertIn("c: never: it speaks protocol 15 to 16", a.cli(*words).out)
        # One that speaks both is placed at either.
        self.addCleanup(self.restart, "c", LATER, warden=True)
        self.restart("c", "14-15", warden=True)
        self.hold("a", "--label", "name=c")

    def test_a_pool_is_upgraded_host_by_host_and_none_fails(self):
        over, results = threading.Event(), []

        def come_and_go(front):
            asked = ",".join(self.pool.servers[name].address for name in front)
            while not over.is_set():
                results.append(self.pool.servers["a"].run("vector_add.static", server=asked,
                                                          LONGWIRE_WAIT="60s"))

        threads = [threading.Thread(target=come_and_go, args=(front,)) for front in ("ab", "ba")]
        for thread in threads:
            thread.start()
        try:
            server.wait_for(lambda: len(results) > 2, 60, "programs")
            self.admin("a", "drain", "b")
            server.wait_for(lambda: not self.pool.claims()["b"], 30, "an empty host")
            self.restart("b", NOW)
            before = len(self.pool.etcd.history())
            self.assertTrue(self.pool.etcd.keys("cap/")["cap/b"]["cordoned"])
            self.admin("b", "uncordon", "b")
            server.wait_for(lambda: any(key.startswith("claim/b/") for _, key, _ in
                                        self.pool.etcd.history()[before:]), 60, "new sessions")
        finally:
            over.set()
            for thread in threads:
                thread.join()
            self.restart("b", BEFORE)
        self.assertEqual([], [one for one in results if one.code != 0])
        self.assertEqual([], pool_history.Checker().replay(self.pool.etcd.history()))

    def plant(self, key, **members):
        """Members that this version does not know, as one that does writes them."""
        record = self.pool.etcd.keys(key)[key]
        self.pool.etcd.put(key, {**record, **members})

    def test_what_a_version_does_not_know_stays(self):
        self.hold("a", "--label", "name=a")
        number, = self.pool.claims()["a"]
        devices = self.pool.etcd.keys("cap/")["cap/a"]["devices"]
        self.plant("cap/a", colour="red", devices=[{**one, "slices": 7} for one in devices])
        self.plant(f"claim/a/{number}", reach={"deep": [1, "two"]})
        self.hold("b", "--label", "name=a")  # the placer writes cap/a
        pool_servers.end([self.programs.pop()])
        server.wait_for(lambda: len(self.pool.claims()["a"]) == 1, 20, "its end")  # a writes it
        capacity = self.pool.etcd.keys("cap/")["cap/a"]
        self.assertEqual(("red", [7, 7], 1), (capacity["colour"], [
            one["slices"] for one in capacity["devices"]], capacity["sessions"]))
        self.restart("a", None)  # which joins anew, and writes its claims
        self.assertEqual({"deep": [1, "two"]}, self.pool.claims()["a"][number]["reach"])
        self.assertNotIn("unknownMembers", json.dumps(self.pool.etcd.keys()))

    def test_a_host_whose_records_are_too_new_gets_nothing(self):
        self.addCleanup(lambda: [self.pool.etcd.delete(f"{key}/z") for key in ("host", "cap")])
        capacity = self.pool.etcd.keys("cap/")["cap/a"]
        self.pool.etcd.put("cap/z", {**capacity, "format": 3, "sessions": 0})
        self.pool.etcd.put("host/z", {"address": "127.0.0.1:1", "version": "99",
                                      "incarnation": capacity["incarnation"],
                                      "labels": {"name": "z"}, "format": 1})
        a = self.pool.servers["a"]
        result = server.run([a.dist / "bin" / "longwire", "run", "--label", "name=z", "--server",
                             a.address, "--", a.program("vector_add.static")], a.environment())
        self.assertEqual(1, result.code, result)
        text = "longwire/cap/z in etcd is of a newer version (format 3; the placer reads 2)"
        self.assertIn("z: its " + text, result.err)
        self.assertIn("its " + text, self.status())
        for _ in range(3):
            self.hold("a")
        self.assertFalse(self.pool.claims().get("z"))

    def test_a_request_that_is_too_new_is_refused(self):
        self.pool.etcd.put("q/a/ee", {"tenant": "default", "identity": "x", "devices": 1,
                                      "format": 3, "colour": "red"})
        self.addCleanup(lambda: self.pool.etcd.delete("ans/a/ee"))
        server.wait_for(lambda: "ans/a/ee" in self.pool.etcd.keys("ans/"), 10, "an answer")
        answer = self.pool.etcd.keys("ans/")["ans/a/ee"]
        self.assertIn("does not know all that is asked for: its longwire/q/a/ee in etcd is of a "
                      "newer version (format 3", answer["refusal"])
        self.assertEqual({}, self.pool.etcd.keys("q/"))
        self.assertNotIn("sess/ee", self.pool.etcd.keys())

    def test_a_host_does_not_join_over_its_own_newer_records(self):
        longwire = self.pool.servers["b"]
        longwire.end_daemon()
        server.wait_for(lambda: "b" not in self.pool.joined(), 20, "its end")
        record = self.pool.etcd.keys("cap/")["cap/b"]
        self.pool.etcd.put("cap/b", {**record, "format": 3})
        longwire.start_daemon()
        text = "not in the pool: longwire/cap/b in etcd is of a newer version (format 3"
        server.wait_for(lambda: text in longwire.log.read_text(), 20, "the reason")
        self.assertNotIn("b", self.pool.joined())
        self.pool.etcd.put("cap/b", record)
        server.wait_for(lambda: "b" in self.pool.joined(), 20, "its return")


if __name__ == "__main__":
    unittest.main()
