"""The queue of a pool: who fits nowhere waits, with its place and the reason, in order; who goes
away leaves nothing."""
import json
import os
import threading
import unittest

import pool_history
import pool_servers
import server


class PoolQueueTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pool = cls.enterClassContext(
            pool_servers.Pool("ab", members=1, devices=1, memory=8 << 30))

    def setUp(self):
        self.programs = []
        self.addCleanup(self.ends)
        for front in "ab":
            self.programs.append(self.pool.held(front, ["--memory", "5GiB"]))

    def ends(self):
        pool_servers.end(self.programs)
        server.wait_for(self.pool.no_claims, 20, "the end of all claims")
        server.wait_for(lambda: not self.pool.etcd.keys("q/"), 20, "the end of the queue")
        history = self.pool.etcd.history()
        self.assertEqual([], pool_history.Checker().replay(history))

    def waiter(self, front, memory="5GiB"):
        """A program that waits, once it is in the queue; what it says comes into its `said`."""
        before = len(self.pool.etcd.keys("q/"))
        program = self.pool.hold(front, ["--wait", "5m", "--memory", memory])
        self.programs.append(program)
        program.said, program.ready = [], threading.Event()
        threading.Thread(target=self.listen, args=(program,), daemon=True).start()
        threading.Thread(target=self.await_ready, args=(program,), daemon=True).start()
        server.wait_for(lambda: len(self.pool.etcd.keys("q/")) == before + 1, 10, "its request")
        return program

    @staticmethod
    def listen(program):
        with os.fdopen(os.dup(program.stderr.fileno())) as errors:
            for line in errors:
                program.said.append(line)

    @staticmethod
    def await_ready(program):
        if server.next_line(program) == "READY\n":
            program.ready.set()

    def test_the_oldest_first_with_place_and_reason(self):
        waiters = [self.waiter("aba"[i]) for i in range(3)]
        text = "waiting: place 3 of 3 in the pool's queue; the pool has no room for 1 device"
        server.wait_for(lambda: any(text in line for line in waiters[2].said), 15, "its place")
        asked = self.pool.servers["b"]
        told = json.loads(asked.cli("status", "--pool", "--json", "--server",
                                    asked.address).out)
        self.assertEqual([1, 2, 3], sorted(one["place"] for one in told["waiting"]))
        self.assertTrue(all("MiB are missing" in one["reason"] for one in told["waiting"]), told)
        for i, waiter in enumerate(waiters):
            pool_servers.end([self.programs[i]])
            server.wait_for(waiter.ready.is_set, 15, f"number {i}")
            self.assertEqual([False] * (2 - i), [one.ready.is_set() for one in waiters[i + 1:]])

    def test_who_goes_leaves_the_queue(self):
        first, second = self.waiter("a"), self.waiter("a")
        pool_servers.end([first])
        server.wait_for(lambda: len(self.pool.etcd.keys("q/")) == 1, 10, "one in the queue")
        pool_servers.end([self.programs[0]])
        server.wait_for(second.ready.is_set, 15, "the second one")

    def test_killed_waiters_leave_no_trace(self):
        """All at once, while what they wait for comes free: those that were just placed, too."""
        waiters = [self.waiter("ab"[i % 2]) for i in range(4)]
        for program in [*waiters, *self.programs[:2]]:
            program.kill()
        server.wait_for(self.pool.no_claims, 60, "the end of all claims")
        left = {"q/", "ans/", "sess/"}
        server.wait_for(lambda: not any(self.pool.etcd.keys(folder) for folder in left), 20,
                        "empty folders")
        for name, capacity in self.pool.etcd.keys("cap/").items():
            self.assertEqual((0, 0), (capacity.get("sessions", 0),
                                      int(capacity["devices"][0].get("bytes", 0))), name)
        self.programs.append(self.pool.held("a", ["--memory", "7GiB"]))

    def test_a_large_one_is_not_overtaken_for_ever(self):
        """The host that is kept for it takes small ones only where it loses nothing by them."""
        large = self.waiter("a", "7GiB")
        refused = self.pool.servers["b"].cli(
            "run", "--memory", "2GiB", "--server", self.pool.servers["b"].address, "--",
            str(self.pool.servers["b"].program("vector_add.static")))
        self.assertEqual(0, refused.code, refused)  # the other host has room
        pool_servers.end([self.programs[0], self.programs[1]])
        server.wait_for(large.ready.is_set, 15, "the large one")

    def test_explain_says_where_there_is_room(self):
        asked = self.pool.servers["a"]
        words = ["pool", "explain", "--server", asked.address]
        result = asked.cli(*words, "--memory", "1GiB")
        self.assertEqual((0, "a: has room\nb: has room\n"), (result.code, result.out))
        result = asked.cli(*words, "--memory", "6GiB")
        self.assertEqual(1, result.code)
        self.assertRegex(result.out, r"^a: not now: .* are missing\nb: not now: ")
        result = asked.cli(*words, "--devices", "2", "--label", "gpu=h200")
        self.assertRegex(result.out, "^a: never: it has no label gpu=h200\nb: never: ")


if __name__ == "__main__":
    unittest.main()
