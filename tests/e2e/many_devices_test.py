"""A server with many devices, eight pretended ones or those of a host (tests/gpu/devices.py):
programs that need all of them at once take turns and never stand still; what one loses, the others
keep; idle memory leaves every device; nothing of the server grows faster than the number of its
devices."""
import os
import pathlib
import signal
import subprocess
import sys
import unittest

import server
import swap_test
import tenants

LONG = "--long" in sys.argv
MIB = 1 << 20


class Host:
    """The devices that are there: tests on real ones say so."""
    driver = "software"
    devices = 8
    turns = 1000 if LONG else 20
    memory = 512 * MIB  # of each device; others hold the rest
    swap = "512MiB"     # of host memory
    ranks = 2  # processes of a job


class ManyDevicesCase(unittest.TestCase):
    policy = "weighted_fair"

    @classmethod
    def setUpClass(cls):
        every = {"devices": Host.devices}
        blocks = {"one": {"weight": 1, **every}, "other": {"weight": 3, **every},
                  "serving": {"priority": "latency_critical", **every},
                  "operator": {"admin": True}}
        cls.longwire = cls.enterClassContext(tenants.TenantServer(
            blocks, {"scheduler": {"policy": cls.policy, "turn": "5ms",
                                   "longest_wait": "10ms"}, "placement": "spread",
                     "memory": {"swap_host_memory": Host.swap},
                     "software_device": {"count": Host.devices, "memory": "512MiB"}},
            driver=Host.driver, software_devices=Host.devices, software_memory=512 * MIB,
            warm_workers=0))

    def start(self, tenant, *arguments, devices=None, program="all_devices.static"):
        devices = devices or Host.devices
        process = subprocess.Popen(
            self.longwire.command(self.longwire.program(program), *map(str, arguments)),
            env=self.longwire.environment_of(tenant, LONGWIRE_DEVICES=devices),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertTrue(server.next_line(process).startswith("READY"), self.longwire.log_tail())
        return process

    def expect_end(self, process):
        """Its kernels met, and each ran once: they are counted on the devices."""
        out, err = process.communicate(timeout=60)
        self.assertEqual((0, ""), (process.returncode, err), out)
        self.assertIn("PASS ", out)
        self.assertRegex(out, r"ROUNDS \d+\n")

    def status(self):
        return self.longwire.status_as("operator")

    def meet(self, *programs):
        """They go on until there were enough turns, which end if they stand still. A turn that ends
        between kernels that wait for each other is no turn that does not drain."""
        def counters():
            scheduler = self.status()["scheduler"]
            return scheduler["turns"], scheduler["overruns"]
        turns, overruns = counters()
        server.wait_for(lambda: counters()[0] - turns >= Host.turns, 900 if LONG else 30, "turns")
        after, more_overruns = counters()
        self.assertLessEqual(more_overruns - overruns, (after - turns) // 2)
        for program in programs:
            self.expect_end(program)


class FairTest(ManyDevicesCase):
    def test_two_over_all_devices(self):
        self.meet(self.start("one"), self.start("other"))

    def test_two_of_half_of_them_beside_one_of_all(self):
        half = Host.devices // 2
        self.meet(self.start("one", devices=half), self.start("one", devices=half),
                  self.start("other"))


class RanksTest(ManyDevicesCase):
    def test_two_jobs_of_a_process_for_each_device(self):
        """Processes that share memory take their turns together."""
        jobs = [self.start(tenant, Host.ranks, program="meeting_ranks.static")
                for tenant in ("one", "other")]
        self.assertEqual(2 * Host.ranks, len(self.status()["sessions"]))
        self.meet(*jobs)


class StrictTest(ManyDevicesCase):
    policy = "strict_priority"

    def test_two_over_all_devices_beside_one_that_may_not_wait(self):
        self.start("serving")
        self.meet(self.start("one"), self.start("other"))


class LossesTest(ManyDevicesCase):
    def test_a_worker_that_is_killed_and_a_fault_take_nobody_along(self):
        wide, narrow = self.start("one"), self.start("other", devices=1)
        victim, faulty = self.start("other", devices=Host.devices // 2), \
            self.start("other", 3, devices=2)
        sessions = {one["client_pid"]: one for one in self.status()["sessions"]}
        os.kill(sessions[victim.pid]["worker_pid"], signal.SIGKILL)
        for program, code in ((victim, "719"), (faulty, "700")):
            self.assertNotEqual(0, program.wait(60))
            self.assertIn(f"gave {code}", program.stdout.read())
        for program in (wide, narrow):
            self.expect_end(program)
        server.wait_for(lambda: not self.status()["sessions"], 10, "the end of all sessions")
        # A GPU is given back the memory of a worker that was killed a moment after its end.
        server.wait_for(lambda: not any(device["sessions"] or device["leased"]
                                        for device in self.status()["devices"]),
                        10, "the return of all memory")
        self.expect_end(self.start("other"))

    def test_cordoned_devices_get_nothing_and_a_drained_server_none(self):
        def admin(*words):
            result = server.run([self.longwire.dist / "bin" / "longwire", "admin", *words,
                                 "--server", self.longwire.address],
                                self.longwire.environment_of("operator"))
            self.assertEqual(0, result.code, result.err)
        for device in range(Host.devices - 1):
            admin("cordon", str(device))
        program = self.start("one", devices=1)
        [session] = self.status()["sessions"]
        self.assertEqual([Host.devices - 1], [seat["device"] for seat in session["seats"]])
        refused = self.longwire.run_as("other", self.longwire.program("all_devices.static"),
                                       LONGWIRE_DEVICES=2)
        cordoned = ", ".join(map(str, range(Host.devices - 1)))
        self.assertIn("the server has 1. Ask for no more than that. The server's administrator "
                      f"lets no new sessions onto device {cordoned}.\n", refused.err)
        admin("drain")
        refused = self.longwire.run_as("other", self.longwire.program("all_devices.static"))
        self.assertIn("its administrator lets it run empty", refused.err)
        self.expect_end(program)
        admin("drain", "--off")
        for device in range(Host.devices - 1):
            admin("cordon", str(device), "--off")
        self.expect_end(self.start("other"))


PIECES = 6  # of each program's memory


class SwapTest(ManyDevicesCase):
    def enter(self, tenant, memory):
        player = swap_test.Player(self.longwire, tenant, memory, memory // PIECES,
                                  LONGWIRE_DEVICES=1)
        self.addCleanup(player.end)
        self.assertEqual("READY", player.hear(), self.longwire.log_tail())
        return player

    def test_idle_memory_leaves_every_device(self):
        """Two programs on each device, with more memory together than it has."""
        server.wait_for(lambda: all(device.get("swap_host_memory", 0) > 0
                                    for device in self.status()["devices"]), 20,
                        "the host's memory")
        free = min(Host.memory, *(device["lendable"] for device in self.status()["devices"]))
        each = PIECES * (int(free * 0.58) // (PIECES * MIB) * MIB)
        players = [self.enter("one", each) for _ in range(2 * Host.devices)]
        seats = [session["seats"][0]["device"] for session in self.status()["sessions"]]
        self.assertEqual(sorted(2 * list(range(Host.devices))), sorted(seats))
        for number in (1, 2):
            for player in players:
                player.begin("turn")
            for player in players:
                self.assertEqual(f"turn {number} of {each // MIB} nodes", player.hear(),
                                 self.longwire.log_tail())
        for device in self.status()["devices"]:
            self.assertGreater(device["swapped_out"], 0, device)
        for player in players:
            self.assertEqual(f"checked {each} bytes", player.tell("check"))
            self.assertIn("PASS take_turns", player.end()[0])


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
