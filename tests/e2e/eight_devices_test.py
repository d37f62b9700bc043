"""A server with eight devices, pretended ones: programs that need all of them at once take turns
and never stand still; what one loses, the others keep; nothing of the server grows faster than the
number of its devices."""
import os
import pathlib
import signal
import subprocess
import sys
import unittest

import server
import tenants

DEVICES = 8
LONG = "--long" in sys.argv
TURNS = 1000 if LONG else 20


class EightDevicesCase(unittest.TestCase):
    policy = "weighted_fair"
    blocks = {"one": {"weight": 1, "devices": DEVICES}, "other": {"weight": 3, "devices": DEVICES},
              "serving": {"priority": "latency_critical", "devices": DEVICES},
              "operator": {"admin": True}}

    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(tenants.TenantServer(
            cls.blocks, {"scheduler": {"policy": cls.policy, "turn": "5ms"},
                         "software_device": {"count": DEVICES, "memory": "512MiB"}},
            software_devices=DEVICES, software_memory=512 << 20, warm_workers=0))

    def start(self, tenant, *arguments, devices=DEVICES, program="all_devices.static"):
        process = subprocess.Popen(
            self.longwire.command(self.longwire.program(program), *map(str, arguments)),
            env=self.longwire.environment_of(tenant, LONGWIRE_DEVICES=devices),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertTrue(process.stdout.readline().startswith("READY"), self.longwire.log_tail())
        return process

    def expect_end(self, process):
        """Its kernels met, and each ran once: they are counted on the devices."""
        out, err = process.communicate(timeout=60)
        self.assertEqual((0, ""), (process.returncode, err), out)
        self.assertIn("PASS all_devices", out)
        self.assertRegex(out, r"ROUNDS \d+\n")

    def status(self):
        return self.longwire.status_as("operator")

    def meet(self, *programs):
        """They go on until there were enough turns, which end if they stand still."""
        def turns():
            return self.status()["scheduler"]["turns"]
        before = turns()
        server.wait_for(lambda: turns() - before >= TURNS, 900 if LONG else 30, "turns")
        for program in programs:
            self.expect_end(program)


class FairTest(EightDevicesCase):
    def test_two_over_all_devices(self):
        self.meet(self.start("one"), self.start("other"))

    def test_two_of_four_beside_one_of_eight(self):
        self.meet(self.start("one", devices=4), self.start("one", devices=4), self.start("other"))


class StrictTest(EightDevicesCase):
    policy = "strict_priority"

    def test_two_over_all_devices_beside_one_that_may_not_wait(self):
        self.start("serving")
        self.meet(self.start("one"), self.start("other"))


class LossesTest(EightDevicesCase):
    def test_a_worker_that_is_killed_and_a_fault_take_nobody_along(self):
        wide, narrow = self.start("one"), self.start("other", devices=1)
        victim, faulty = self.start("other", devices=4), self.start("other", 3, devices=2)
        sessions = {one["client_pid"]: one for one in self.status()["sessions"]}
        os.kill(sessions[victim.pid]["worker_pid"], signal.SIGKILL)
        for program, code in ((victim, "719"), (faulty, "700")):
            self.assertNotEqual(0, program.wait(60))
            self.assertIn(f"gave {code}", program.stdout.read())
        for program in (wide, narrow):
            self.expect_end(program)
        server.wait_for(lambda: not self.status()["sessions"], 10, "the end of all sessions")
        for device in self.status()["devices"]:
            self.assertEqual((0, 0), (device["sessions"], device["leased"]), device)
        self.expect_end(self.start("other"))

    def test_cordoned_devices_get_nothing_and_a_drained_server_none(self):
        def admin(*words):
            result = server.run([self.longwire.dist / "bin" / "longwire", "admin", *words,
                                 "--server", self.longwire.address],
                                self.longwire.environment_of("operator"))
            self.assertEqual(0, result.code, result.err)
        for device in range(DEVICES - 1):
            admin("cordon", str(device))
        program = self.start("one", devices=1)
        [session] = self.status()["sessions"]
        self.assertEqual([DEVICES - 1], [seat["device"] for seat in session["seats"]])
        refused = self.longwire.run_as("other", self.longwire.program("all_devices.static"),
                                       LONGWIRE_DEVICES=2)
        self.assertIn("the server has 1. Ask for no more than that. The server's administrator "
                      "lets no new sessions onto device 0, 1, 2, 3, 4, 5, 6.\n", refused.err)
        admin("drain")
        refused = self.longwire.run_as("other", self.longwire.program("all_devices.static"))
        self.assertIn("its administrator lets it run empty", refused.err)
        self.expect_end(program)
        admin("drain", "--off")
        for device in range(DEVICES - 1):
            admin("cordon", str(device), "--off")
        self.expect_end(self.start("other"))


class GrowthTest(unittest.TestCase):
    @staticmethod
    def figures(devices):
        """Threads, descriptors and memory of an idle server's processes, with warm workers."""
        with server.Server(software_devices=devices, software_memory=512 << 20) as longwire:
            server.wait_for(lambda: "longwire-worker" in longwire.processes(), 20, "warm workers")
            threads = descriptors = memory = 0
            for pids in longwire.processes().values():
                for pid in pids:
                    folder = pathlib.Path(f"/proc/{pid}")
                    threads += len(list((folder / "task").iterdir()))
                    descriptors += len(list((folder / "fd").iterdir()))
                    [line] = [line for line in (folder / "smaps_rollup").read_text().splitlines()
                              if line.startswith("Pss:")]
                    memory += int(line.split()[1])
            return threads, descriptors, memory

    def test_no_figure_grows_faster_than_the_number_of_devices(self):
        two, four, eight = (self.figures(devices) for devices in (2, 4, 8))
        for name, slack, figures in zip(("threads", "descriptors", "KiB"), (4, 8, 8 << 10),
                                        zip(two, four, eight)):
            with self.subTest(name):
                of_two, of_four, of_eight = figures
                self.assertLessEqual(of_eight - of_four, 2 * (of_four - of_two) + slack, figures)


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--long"])
