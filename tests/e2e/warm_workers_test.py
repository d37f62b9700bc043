"""Warm workers beside a latency-critical session: the driver makes a context for each, for which
all that runs on the device stands still, so they come one after the other, some time apart. Who is
latency critical the configuration says, or a policy."""
import os
import pathlib
import unittest

import classes
import server

WARM = 3
APART = 1.9  # seconds
ROUNDS = 8   # one at least in which this machine starts two workers within APART


def started(pid):
    """Seconds since the host began."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


class WarmWorkersTest(unittest.TestCase):
    def serve(self, **serving):
        self.longwire = self.enterContext(classes.PolicyServer(
            {"operator": {"admin": True}, "serving": serving, "batch": {}}, warm_workers=WARM))
        server.wait_for(lambda: len(self.workers()) == WARM, 20, "warm workers")

    def workers(self):
        return self.longwire.processes().get("longwire-worker", [])

    def gaps(self, *tenants):
        """Seconds between the new warm workers, as many as there are tenants, one session each."""
        before = set(self.workers())
        for tenant in tenants:
            self.longwire.hold(self, tenant)
        server.wait_for(lambda: len(self.workers()) == len(before) + len(tenants), 60,
                        "new warm workers")
        times = sorted(started(pid) for pid in self.workers() if pid not in before)
        self.assertEqual(len(tenants), len(times))
        return [later - earlier for earlier, later in zip(times, times[1:])]

    def expect_apart(self, *tenants):
        self.assertGreater(min(self.gaps(*tenants)), APART)

    def expect_at_once(self, tenant):
        for _ in range(ROUNDS):
            if min(self.gaps(*[tenant] * WARM)) < APART:
                return
        self.fail(f"no two warm workers came within {APART} s")

    def test_beside_latency_critical_sessions_they_come_apart(self):
        self.serve(priority="latency_critical")
        self.expect_apart(*["serving"] * WARM)

    def test_beside_sessions_that_a_policy_opens_as_latency_critical_too(self):
        self.serve()
        self.longwire.load()
        self.longwire.policy("maps", classes.TOLD, "critical", "--set", "tenant:serving=1")
        self.expect_apart(*["serving"] * WARM)

    def test_and_beside_those_that_become_so_until_the_policy_is_unloaded(self):
        self.serve()
        self.longwire.hold(self, "serving")
        server.wait_for(lambda: len(self.workers()) == WARM + 1, 20, "a new warm worker")
        self.longwire.load()
        self.longwire.say("serving", True)
        self.expect_apart(*["batch"] * WARM)
        self.longwire.unload()
        self.expect_at_once("batch")


if __name__ == "__main__":
    unittest.main()
