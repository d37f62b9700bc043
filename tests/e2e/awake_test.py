"""A tenant whose sessions stay awake between messages: status says so, and what it costs; nobody
stays awake for another one."""
import subprocess
import time
import unittest

import server
import tenants

AWAKE = {"priority": "latency_critical", "awake": "200ms"}


class AwakeTest(unittest.TestCase):
    def serve(self, **options):
        self.blocks = {"operator": {"admin": True}, "serving": AWAKE, "batch": {}}
        self.longwire = self.enterContext(
            tenants.TenantServer(self.blocks, {"scheduler": {"awake_cores": 3}}, **options))

    def start(self, tenant):
        process = subprocess.Popen(
            self.longwire.command(self.longwire.program("steady.static"), "hold"),
            env=self.longwire.environment_of(tenant), stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual("READY\n", server.next_line(process), self.longwire.log_tail())

    def session(self, tenant):
        return next(one for one in self.longwire.status_as("operator")["sessions"]
                    if one["tenant"] == tenant)

    def test_the_switch_lets_nobody_stay_awake(self):
        self.serve(variables={"LONGWIRE_DISABLE": "awake"})
        self.start("serving")
        # A later answer of status comes after more than two turns of the cores.
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            session = self.session("serving")
            self.assertFalse(session.get("awake_granted"))
            self.assertFalse(session.get("awake_seconds"))
            time.sleep(0.1)

    def test_status_says_who_is_awake_and_what_it_costs(self):
        self.serve()
        self.start("serving")
        self.start("batch")
        server.wait_for(lambda: self.session("serving").get("awake_seconds", 0) > 0, 20,
                        "processor time of threads that stay awake")
        serving = self.session("serving")
        self.assertEqual(200000, serving["awake_microseconds"])
        self.assertTrue(serving["awake_granted"])
        batch = self.session("batch")
        for key in ("awake_microseconds", "awake_granted", "awake_seconds"):
            self.assertFalse(batch.get(key), key)
        status = self.longwire.status_as("operator")
        self.assertEqual(3, status["scheduler"]["awake_cores"])
        self.assertEqual(3, status["scheduler"]["awake_cores_in_use"])
        tenant = next(one for one in status["tenants"] if one["name"] == "serving")
        self.assertGreater(tenant["awake_seconds"], 0)
        text = server.run([self.longwire.dist / "bin" / "longwire", "status", "--server",
                           self.longwire.address], self.longwire.environment_of("operator")).out
        self.assertIn("awake cores: 3 of 3 in use", text)
        self.assertEqual(1, text.count("\n  awake for 200 ms after a message, "), text)


if __name__ == "__main__":
    unittest.main()
