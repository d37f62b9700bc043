"""longwire top --pool and the page: hosts with their devices, memory and sessions, and who waits
there, for how long, for what and why."""
import json
import re
import unittest

import pool_servers
import server
import terminal
import web_test


class PoolTopTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pool = cls.enterClassContext(
            pool_servers.Pool("ab", members=1, devices=2, memory=8 << 30))

    def setUp(self):
        self.programs = []
        self.addCleanup(self.ends)

    def ends(self):
        # Who waits first: else it is placed when the others end.
        while self.programs:
            pool_servers.end([self.programs.pop()])
            server.wait_for(lambda: not self.pool.etcd.keys("q/"), 20, "the end of the queue")
        server.wait_for(self.pool.no_claims, 20, "the end of all claims")

    def fill(self):
        """Each device has a session, and one program more waits."""
        for front in "ab":
            self.programs.append(self.pool.held(front, ["--devices", "2", "--memory", "5GiB"]))
        self.programs.append(self.pool.hold("b", ["--wait", "5m", "--memory", "6GiB",
                                                  "--label", "name=a"]))
        server.wait_for(lambda: self.once()["waiting"], 20, "a waiting program")
        server.wait_for(lambda: self.once()["waiting"][0]["place"], 20, "its place")

    def words(self, front, *words):
        return ["top", "--pool", "--once", *words, "--server", self.pool.servers[front].address]

    def once(self, front="a"):
        result = self.pool.servers[front].cli(*self.words(front, "--json"))
        self.assertEqual(0, result.code, result)
        return json.loads(result.out)

    def test_json(self):
        self.fill()
        told = self.once()
        self.assertEqual(("a", True, None), (told["host"], told["in_pool"], told["problem"]))
        self.assertEqual(self.pool.placer(), told["placer"])
        self.assertEqual([("a", 1, 30, ["name=a"]), ("b", 1, 30, ["name=b"])], [
            (one["host"], one["sessions"], one["sessions_limit"], one["labels"])
            for one in told["hosts"]])
        for device in (device for host in told["hosts"] for device in host["devices"]):
            self.assertEqual((5 << 30, 1), (device["memory_promised"], device["sessions"]))
            self.assertGreater(device["memory_total"], 7 << 30)
        waiter, = told["waiting"]
        self.assertEqual((1, 1, 6 << 30, ["name=a"], "b", "default"), tuple(
            waiter[name] for name in ("place", "devices", "memory", "labels", "asked_at",
                                      "tenant")))
        self.assertTrue(waiter["program"].endswith("/hold_session.static"))
        self.assertRegex(waiter["reason"], r"a: \d+ MiB are missing")
        self.assertLess(waiter["waited_seconds"], 60)
        server.wait_for(lambda: self.once("b")["waiting"][0]["waited_seconds"] >
                        waiter["waited_seconds"], 10, "time that goes by")

    def test_text(self):
        self.fill()
        result = self.pool.servers["b"].cli(*self.words("b"))
        self.assertEqual(0, result.code, result)
        self.assertRegex(result.out, r"^pool of 2 hosts as b sees it, placed by [ab], 2 sessions, "
                                     r"1 waiting\n")
        self.assertRegex(result.out, r"\na +all 2 .* 10\.0 GiB of \d+\.\d GiB +1/30 in service ")
        self.assertRegex(result.out, r"\n +0 .* 5\.0 GiB of ")
        self.assertRegex(result.out, r"\n +1 +\d+\.\d s default +\S+ +hold_session\.static +1 "
                                     r"+6\.0 GiB +b +the pool has no room for 1 device")
        pool_servers.end([self.programs.pop()])
        server.wait_for(lambda: not self.once()["waiting"], 20, "an empty queue")
        self.assertIn("\nnobody waits\n", self.pool.servers["b"].cli(*self.words("b")).out)

    def test_a_drained_host(self):
        a = self.pool.servers["a"]
        door = ["--server", f"unix:{a.door}"]
        self.assertEqual(0, a.cli("admin", "drain", "b", "--deadline", "1h", *door).code)
        self.addCleanup(a.cli, "admin", "uncordon", "b", *door)
        def host():
            return self.once()["hosts"][1]
        self.assertEqual((True, True, False), (host()["in_pool"], host()["drained"],
                                               host()["takes_sessions"]))
        self.assertEqual("drained, empty", host()["state"])
        server.wait_for(lambda: 3400 < (host()["drain_seconds_left"] or 0) <= 3600, 10,
                        "the deadline, once its host knows of it")
        self.assertIsNotNone(host()["withdrawn_by"])

    def test_live(self):
        self.fill()
        a = self.pool.servers["a"]
        environment = {**a.environment(), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        screen = terminal.Terminal([a.dist / "bin" / "longwire", "top", "--pool", "--server",
                                    a.address], environment, 120, 24)
        self.addCleanup(screen.close)
        screen.wait_for("pool of 2 hosts as a sees it", "the first page")
        screen.wait_for("hold_session", "the queue")
        pool_servers.end([self.programs.pop()])
        screen.wait_for("nobody waits", "the next page")
        screen.press("q")
        self.assertEqual(0, screen.end())

    def test_a_server_without_a_pool_says_so(self):
        with server.Server(warm_workers=0) as alone:
            for words in (["--once"], ["--once", "--json"]):
                result = alone.cli("top", "--pool", *words, "--server", alone.address)
                self.assertEqual((1, ""), (result.code, result.out))
                self.assertRegex(result.err, "^longwire top: the server at .* is not in a pool: "
                                             "its configuration has no pool:. Ask a server that ")

    def test_the_page(self):
        self.fill()
        web = web_test.Web(self, self.pool.servers["b"])
        server.wait_for(lambda: (web.now()["pool"] or {}).get("waiting"), 10, "the queue")
        told = web.now()["pool"]
        self.assertEqual("b", told["host"])
        self.assertEqual([1, 1], [one["sessions"] for one in told["hosts"]])
        self.assertTrue(re.search(r"/hold_session\.static$", told["waiting"][0]["program"]))

    def test_the_page_goes_on_when_etcd_hangs(self):
        a = self.pool.servers["a"]
        web = web_test.Web(self, a)
        server.wait_for(lambda: web.now()["pool"], 10, "the pool")
        member, = self.pool.etcd.members
        member.process.send_signal(19)  # SIGSTOP
        try:
            server.wait_for(lambda: "etcd" in (web.now()["pool"]["problem"] or ""), 20, "a problem")
            begin = web.now()["answered"]
            server.wait_for(lambda: web.now()["answered"] > begin + 5, 20, "further answers")
            self.assertIsNone(web.now()["problem"])
            self.assertEqual(0, a.cli("status").code)
        finally:
            member.process.send_signal(18)  # SIGCONT
        server.wait_for(lambda: len(web.now()["pool"]["hosts"]) == 2, 30, "the pool again")
        server.wait_for(lambda: set(self.pool.joined()) == set("ab"), 30, "the hosts")


if __name__ == "__main__":
    unittest.main()
