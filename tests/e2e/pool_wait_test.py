"""How long programs wait in a pool's queue that do not say it themselves, and from when on who has
waited long is a class higher."""
import time
import unittest

import pool_servers
import pool_tenants
import server

PATIENCE = 8  # seconds


class PoolWaitTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pool = cls.enterClassContext(pool_tenants.TenantPool(
            {"batch": {"wait": "forever"},
             "short": {"wait": "6s"},
             "none": {},
             "serving": {"priority": "latency_critical"}},
            devices=1, memory=8 << 30, pool_keys={"patience": f"{PATIENCE}s"}))

    def setUp(self):
        self.programs = []
        self.addCleanup(self.ends)
        self.hold("none", ["--memory", "5GiB"])
        self.pool.await_ready(self.programs[0])

    def ends(self):
        # Who waits goes first: else what the holder leaves is kept for who does not come any more.
        pool_servers.end(self.programs[1:])
        server.wait_for(lambda: not self.pool.etcd.keys("q/"), 20, "the end of the queue")
        pool_servers.end(self.programs[:1])
        server.wait_for(self.pool.no_claims, 20, "the end of all claims")

    def hold(self, tenant, words=()):
        self.programs.append(self.pool.hold_as(tenant, words))
        return self.programs[-1]

    def await_places(self, expected):
        server.wait_for(lambda: self.pool.places() == expected, 4 * PATIENCE, f"{expected}")

    def test_a_tenants_programs_wait_by_default(self):
        waiting = self.hold("batch", ["--memory", "5GiB"])
        self.assertRegex(waiting.stderr.readline(), "^longwire: waiting: ")
        self.await_places({"batch": [1]})
        pool_servers.end([self.programs[0]])
        self.pool.await_ready(waiting)

    def test_what_a_program_says_itself_counts(self):
        for tenant, words in (("batch", ["--wait", "0"]), ("none", [])):
            with self.subTest(tenant):
                refused = self.pool.run_as(tenant, [*words, "--memory", "5GiB"])
                self.assertEqual(1, refused.code, refused)
                self.assertIn("the pool has no room", refused.err)
                self.assertNotIn("waiting: ", refused.err)
        waiting = self.hold("none", ["--memory", "5GiB", "--wait", "forever"])
        self.await_places({"none": [1]})
        pool_servers.end([self.programs[0]])
        self.pool.await_ready(waiting)

    def test_the_default_wait_ends(self):
        refused = self.pool.run_as("short", ["--memory", "5GiB"])
        self.assertEqual(1, refused.code, refused)
        self.assertIn("waiting: ", refused.err)
        self.assertIn("of 1 in the pool's queue", refused.err)
        self.assertLess(refused.seconds, 30)

    def test_who_has_waited_for_the_patience_is_a_class_higher(self):
        self.hold("batch", ["--memory", "5GiB"])
        self.await_places({"batch": [1]})
        time.sleep(PATIENCE + 1)
        self.hold("serving", ["--memory", "5GiB", "--wait", "5m"])
        self.await_places({"batch": [1], "serving": [2]})
        self.await_places({"batch": [2], "serving": [1]})  # once it has waited so long, too


if __name__ == "__main__":
    unittest.main()
