"""A latency-critical program's requests beside four best-effort programs: nearly as quick as alone
with the scheduler, several times slower without it.

  priorities_test.py [--scheduler-off]

With --scheduler-off it is the proof that the scheduler does it: five programs then share what the
software device computes on. That is one core here, on any machine: with more, some of the five
would run beside each other, as they do not on a GPU."""
import os
import re
import statistics
import subprocess
import sys
import unittest

import server
import tenants

SCHEDULER = "--scheduler-off" not in sys.argv
ROUNDS = 3
REQUESTS = 25
REQUEST_MS, BATCH_MS = 60, 15


class PriorityTest(unittest.TestCase):
    def setUp(self):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        self.longwire = self.enterContext(tenants.TenantServer(
            {"serving": {"priority": "latency_critical", "admin": True},
             "batch": {"priority": "best_effort"}},
            {"scheduler": {"enabled": SCHEDULER}}))
        self.load = self.longwire.build / "bench" / "tenant_load"

    def figure(self, name, tenant, *words):
        result = self.longwire.run_as(tenant, self.load, *words, timeout=120)
        found = re.search(rf"^{name} ([0-9.]+) ", result.out, re.M)
        self.assertTrue(found, f"{result}\n{self.longwire.log_tail()}")
        return float(found[1])

    def iterations(self, milliseconds):
        return str(int(self.figure("iterations", "serving", "calibrate", str(milliseconds))))

    def p99(self, iterations, seed):
        return self.figure("request_p99", "serving", "request", iterations, str(REQUESTS), "10000",
                           str(seed))

    def test_requests_beside_four_best_effort_programs(self):
        request, batch = self.iterations(REQUEST_MS), self.iterations(BATCH_MS)
        alone, beside = [], []
        for seed in range(ROUNDS):
            alone.append(self.p99(request, seed))
            others = [subprocess.Popen(self.longwire.command(self.load, "batch", batch, "300"),
                                       env=self.longwire.environment_of("batch"),
                                       stdout=subprocess.DEVNULL) for _ in range(4)]
            try:
                server.wait_for(lambda: sum(bool(session.get("seats") and
                                                 session["seats"][0].get("calls"))
                                            for session in
                                            self.longwire.status_as("serving")["sessions"]) == 4,
                                30, "four programs at work")
                beside.append(self.p99(request, seed))
            finally:
                for other in others:
                    other.kill()
                    other.wait()
            server.wait_for(lambda: not self.longwire.status_as("serving")["sessions"], 20,
                            "their end")
        # Alone, what is slower than the best round is the rest of the machine's doing.
        ratio = statistics.median(beside) / min(alone)
        print(f"P99 alone {alone} ms, beside four {beside} ms: {ratio:.2f} x")
        if SCHEDULER:
            self.assertLessEqual(ratio, 2)
        else:
            # Other work of the machine slows down rounds, too: so not the best round counts here.
            self.assertGreater(statistics.median(beside), 2 * max(alone))


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--scheduler-off"])
