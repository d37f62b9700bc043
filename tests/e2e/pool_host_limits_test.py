"""A host's own limit of a tenant's sessions is known where sessions are placed: nothing is placed
there that it would refuse, and who is beyond it waits for the tenant's own sessions alone."""
import select
import unittest

import pool_servers
import pool_tenants
import server

LIMIT = 2


class PoolHostLimitsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pool = cls.enterClassContext(pool_tenants.TenantPool(
            {"research": {"sessions": LIMIT}, "others": {}}, names="ab"))

    def setUp(self):
        self.programs = []
        self.addCleanup(self.ends)

    def ends(self):
        pool_servers.end(self.programs)
        server.wait_for(self.pool.no_claims, 20, "the end of all claims")

    def running(self):
        return sum(one["state"] == "OPEN" for claims in self.pool.claims().values()
                   for one in claims.values() if "state" in one)

    def refusals(self):
        return [line for one in self.pool.servers.values()
                for line in one.log.read_text(errors="replace").splitlines() if "refused" in line]

    def test_more_programs_at_once_than_the_hosts_take(self):
        for i in range(2 * LIMIT + 5):
            self.programs.append(self.pool.hold_as("research", ["--wait", "1m"], "ab"[i % 2]))
        server.wait_for(lambda: self.running() == 2 * LIMIT, 20, "what both hosts take")
        server.wait_for(lambda: len(self.pool.places().get("research", [])) == 5, 10, "the others")
        self.assertEqual([LIMIT] * 2, [len(one) for one in self.pool.claims().values()])
        # Nothing is kept from others by them.
        self.assertEqual(0, self.pool.run_as("others").code)
        refused = self.pool.run_as("research")
        self.assertEqual(1, refused.code)
        self.assertIn(f"tenant 'research' has all of its {LIMIT} sessions there", refused.err)
        self.assertEqual([], [line for line in self.refusals() if "its limit is" in line])
        for log in self.pool.servers.values():
            self.assertNotIn("place 1 of", log.log.read_text(), "who waits is not refused")
        waiting = list(self.programs)
        while waiting:
            ready = select.select([one.stdout for one in waiting], [], [], 20)[0]
            self.assertTrue(ready, f"{len(waiting)} still wait")
            [program] = [one for one in waiting if one.stdout is ready[0]]
            self.pool.await_ready(program)
            program.kill()
            waiting.remove(program)
        self.assertEqual([], [line for line in self.refusals() if "its limit is" in line])


if __name__ == "__main__":
    unittest.main()
