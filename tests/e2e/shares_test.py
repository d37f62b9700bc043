"""GPU time by weight, whatever the lengths of the kernels: a program that waits after each short
kernel beside one whose long kernels are always queued."""
import os
import re
import subprocess
import time
import unittest

import server
import tenants

LONG_MS, SHORT_MS = 400, 2
SECONDS = 12
# Gaps up to a turn's length keep a tenant's claim. It is longer than the stalls of a virtual
# machine whose core another one has for a moment: with 10 ms those decided, not the order.
TURN = "100ms"


class SharesTest(unittest.TestCase):
    def setUp(self):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        self.longwire = self.enterContext(tenants.TenantServer(
            {"long": {}, "short": {}, "twice": {"weight": 2}, "operator": {"admin": True}},
            {"scheduler": {"policy": "weighted_fair", "turn": TURN}}, warm_workers=2))
        self.load = self.longwire.build / "bench" / "tenant_load"

    def iterations(self):
        """Of the long kernel. The short one's come from them: measured on its own it is mostly the
        round trip to the server, and a slow moment would make it a hundredth as long."""
        result = self.longwire.run_as("operator", self.load, "calibrate", LONG_MS)
        return int(re.search(r"^iterations (\d+)", result.out, re.M)[1])

    def start(self, tenant, *words):
        process = subprocess.Popen(self.longwire.command(self.load, *words),
                                   env=self.longwire.environment_of(tenant),
                                   stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def tenant(self, name):
        return next(tenant for tenant in self.longwire.status_as("operator")["tenants"]
                    if tenant["name"] == name)

    def seconds_of(self, *names):
        return [self.tenant(name)["gpu_seconds"] for name in names]

    def expect_shares(self, waiting, due):
        long_kernel = self.iterations()
        short_kernel = long_kernel * SHORT_MS // LONG_MS
        self.start("long", "batch", str(long_kernel), "600")
        self.start(waiting, "request", str(short_kernel), "1000000", "0", "1")
        # The first long kernels were queued when nobody else was there: made up for by then.
        server.wait_for(lambda: min(self.seconds_of("long", waiting)) > 1, 30, "both at work")
        before = self.seconds_of("long", waiting)
        time.sleep(SECONDS)
        used = [after - begun for after, begun in zip(self.seconds_of("long", waiting), before)]
        # 5 %, or two of the longest kernels if that is more.
        allowed = max(0.05 * sum(used), 2 * LONG_MS / 1000)
        self.assertAlmostEqual(due * sum(used), used[1], delta=allowed, msg=f"{used}")
        self.assertAlmostEqual(due, self.tenant(waiting)["share_due"], places=5)

    def test_equal_weights(self):
        self.expect_shares("short", 1 / 2)

    def test_twice_the_weight(self):
        self.expect_shares("twice", 2 / 3)


if __name__ == "__main__":
    unittest.main()
