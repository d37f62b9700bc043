"""Warm workers beside a latency-critical session: the driver makes a context for each, for which
all that runs on the device stands still, so they come one after the other, some time apart."""
import os
import pathlib
import subprocess
import unittest

import server
import tenants

WARM = 3
APART = 1.9  # seconds


def started(pid):
    """Seconds since the host began."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


class WarmWorkersTest(unittest.TestCase):
    def workers(self):
        return self.longwire.processes().get("longwire-worker", [])

    def open_session(self):
        process = subprocess.Popen(
            self.longwire.command(self.longwire.program("hold_session.static")),
            env=self.longwire.environment_of("serving"), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual("READY\n", server.next_line(process), self.longwire.log_tail())

    def test_beside_latency_critical_sessions_they_come_apart(self):
        self.longwire = self.enterContext(tenants.TenantServer(
            {"serving": {"priority": "latency_critical"}}, warm_workers=WARM))
        server.wait_for(lambda: len(self.workers()) == WARM, 20, "warm workers")
        for _ in range(WARM):
            self.open_session()
        server.wait_for(lambda: len(self.workers()) == 2 * WARM, 60, "new warm workers")
        times = sorted(map(started, self.workers()))[WARM:]
        for earlier, later in zip(times, times[1:]):
            self.assertGreater(later - earlier, APART, times)


if __name__ == "__main__":
    unittest.main()
