"""What hangs on the class of a session follows the class that it has, also where a policy says it,
says another one later, or is unloaded: what status shows, whose memory stays on the device, who
stays awake, and the worker's weight. (warm_workers_test.py has the supply of workers.)"""
import os
import pathlib
import re
import unittest

import classes
import server
from swap_test import EACH, MEMORY, Player

SHARE_ERROR = 0.001


class ClassesTest(unittest.TestCase):
    def serve(self, blocks, settings=None, **options):
        self.longwire = self.enterContext(classes.PolicyServer(
            {"operator": {"admin": True}, **blocks}, settings, **options))
        server.wait_for(lambda: "ready" in self.longwire.log_tail(), 20, "the daemon")

    def expect_critical(self, tenant, critical):
        self.assertEqual(critical, self.longwire.tenant(tenant).get("latency_critical", False))

    def test_status_shows_class_weight_and_share_in_force(self):
        self.serve({"alpha": {}, "beta": {"weight": 3}, "gamma": {}})
        self.longwire.policy("load", classes.OBJECTS / "terms.o")
        self.longwire.policy("maps", "terms", "terms", "--set", "tenant:alpha=1")
        self.longwire.policy("maps", "terms", "terms", "--set", "tenant:beta=40")
        self.expect_critical("alpha", False)  # it has no session
        for tenant in ("alpha", "beta", "gamma"):
            self.longwire.hold(self, tenant)
        self.expect_critical("alpha", True)
        self.expect_critical("beta", False)
        for weight, load in ((40, None), (3, "unload")):
            if load:
                self.longwire.policy(load, "terms")
            beta = self.longwire.tenant("beta")
            self.assertEqual(weight, beta["weight"])
            others = 1 if weight == 40 else 2  # gamma, then alpha, too
            self.assertAlmostEqual(weight / (weight + others), beta["share_due"],
                                   delta=SHARE_ERROR)
        self.expect_critical("alpha", False)

    def test_without_the_scheduler_the_configuration_counts(self):
        self.serve({"alpha": {}})
        self.longwire.load()
        self.longwire.hold(self, "alpha")
        self.longwire.say("alpha", True)
        self.expect_critical("alpha", True)
        for enabled in (False, True):
            self.longwire.configure(self.longwire.tenants, {"scheduler": {"enabled": enabled}})
            self.longwire.reload()
            self.expect_critical("alpha", enabled)

    def play(self, tenant):
        player = Player(self.longwire, tenant)
        self.addCleanup(player.end)
        return player

    def moved(self):
        return self.longwire.status_as("operator")["devices"][0].get("swapped_out", 0)

    def test_memory_stays_of_whom_a_policy_makes_latency_critical(self):
        self.serve({"first": {}, "urgent": {}}, {"memory": {"swap_host_memory": "512MiB"}},
                   software_memory=MEMORY, warm_workers=2)
        server.wait_for(lambda: self.longwire.status_as("operator")["devices"][0].get(
            "swap_host_memory", 0) >= MEMORY, 20, "the host's memory")
        urgent = self.play("urgent")
        self.assertEqual("READY", urgent.hear(), self.longwire.log_tail())
        self.longwire.load()
        self.longwire.say("urgent", True)
        self.assertIn("out of memory", self.play("first").end()[0])
        self.assertEqual(0, self.moved())
        self.longwire.unload()
        self.assertEqual("READY", self.play("first").hear(), self.longwire.log_tail())
        self.assertGreater(self.moved(), 0)
        self.assertEqual(f"checked {EACH} bytes", urgent.tell("check"))

    def test_whom_a_policy_makes_best_effort_does_not_stay_awake(self):
        self.serve({"serving": {"priority": "latency_critical", "awake": "200ms"}},
                   {"scheduler": {"awake_cores": 3}})

        def granted():
            session = next(one for one in self.longwire.status_as("operator")["sessions"]
                           if one["tenant"] == "serving")
            microseconds = session.get("awake_microseconds", 0)
            self.assertEqual(microseconds,
                             self.longwire.tenant("serving").get("awake_microseconds", 0))
            return bool(session.get("awake_granted")) and microseconds == 200000

        self.longwire.hold(self, "serving", "steady.static", "hold")
        server.wait_for(granted, 20, "its cores")
        self.longwire.load()
        server.wait_for(lambda: not granted(), 20, "the policy's class")
        self.longwire.say("serving", True)
        server.wait_for(granted, 20, "its cores, by the policy's word")
        self.longwire.say("serving", False)
        server.wait_for(lambda: not granted(), 20, "the policy's other word")
        self.longwire.unload()
        server.wait_for(granted, 20, "its cores, without the policy")


class WalledServer(classes.PolicyServer):
    def _start(self, name, *arguments):
        more = ("--walls", "separate", "--worker-cgroups", "own")
        super()._start(name, *arguments, *(more if name == "longwire-warden" else ()))


class WeightTest(unittest.TestCase):
    def weight(self):
        """Of the worker's control group; None where this host gives none."""
        status = self.longwire.status_as("operator")
        if "own control groups (" in status.get("walls_missing", ""):
            return None
        groups = pathlib.Path(f"/proc/{status['sessions'][0]['worker_pid']}/cgroup").read_text()
        controller, path = re.search(r"^\d+:(|cpu):/(.*worker-\d+-\d+)$", groups, re.M).groups()
        file = "cpu.shares" if controller else "cpu.weight"
        told = int(pathlib.Path("/sys/fs/cgroup", controller, path, file).read_text())
        return told / (1024 if controller else 100)

    @unittest.skipIf(os.geteuid() != 0, "only root can give workers control groups")
    def test_a_worker_weighs_what_the_class_says(self):
        self.longwire = self.enterContext(WalledServer({"operator": {"admin": True}, "alpha": {}}))
        self.longwire.hold(self, "alpha")
        if self.weight() is None:
            self.skipTest("this host gives no control groups")
        self.assertEqual(1, self.weight())
        self.longwire.load()
        self.longwire.say("alpha", True)
        server.wait_for(lambda: self.weight() == 10, 20, "the policy's class")
        self.longwire.unload()
        server.wait_for(lambda: self.weight() == 1, 20, "the configured class")


if __name__ == "__main__":
    unittest.main()
