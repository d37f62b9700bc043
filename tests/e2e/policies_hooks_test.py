"""Policies outside of longwired: for memory, in the keepers, on the maps of longwired; for
launches, about which workers ask."""
import json
import os
import pathlib
import resource
import signal
import subprocess
import time
import unittest

import server
import tenants
from swap_test import MIB, PIECE, Player

OBJECTS = server.build_folder() / "policy" / "objects"
MEMORY = 512 * MIB
EACH = 150 * MIB  # in chunks of 64 MiB: two of these have room, three have not
ADD = "kernel:_Z3AddPii"


class Hooks(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(tenants.TenantServer(
            {"operator": {"admin": True}, "research": {}, "batch": {}},
            {"memory": {"swap_host_memory": "512MiB"}}, software_memory=MEMORY, warm_workers=2))
        server.wait_for(lambda: self.device().get("swap_host_memory", 0) >= MEMORY, 20,
                        "the host's memory")

    def device(self):
        return self.longwire.status_as("operator")["devices"][0]

    def try_policy(self, *words):
        verb, *rest = map(str, words)
        return server.run([self.longwire.dist / "bin" / "longwire", "policy", verb, *rest,
                           "--server", self.longwire.address],
                          self.longwire.environment_of("operator"))

    def policy(self, *words):
        result = self.try_policy(*words)
        self.assertEqual(0, result.code, f"{result}\n{self.longwire.log_tail()}")
        return result.out

    def figures(self, name):
        found = [server.plain(one) for one in json.loads(self.policy("list", "--json"))]
        return next(one for one in found if one["name"] == name)

    def values(self, policy, name):
        told = server.plain(json.loads(self.policy("maps", policy, name, "--json")))
        return {one.get("tenant") or str(one.get("key", 0)): int(one["value"])
                for one in told.get("values", [])}

    def enter(self, tenant):
        player = Player(self.longwire, tenant, memory=EACH, piece=PIECE)
        self.addCleanup(player.end)
        self.assertEqual("READY", player.hear(), self.longwire.log_tail())
        return player

    def swapped(self, player):
        [session] = [one for one in self.longwire.status_as("operator")["sessions"]
                     if one["client_pid"] == player.process.pid]
        return sum(memory.get("swapped", 0) for memory in session.get("memory", []))

    def turn(self, player, number):
        self.assertEqual(f"turn {number} of {EACH // MIB} nodes", player.tell("turn"),
                         self.longwire.log_tail())


class MemoryHooks(Hooks):
    def enter_all(self):
        """The first one's last use is longest ago."""
        players = [self.enter("research"), self.enter("batch"), self.enter("batch")]
        server.wait_for(lambda: any(map(self.swapped, players)), 20, "memory that has left")
        return players

    def prefer_research(self):
        self.policy("load", OBJECTS / "priority_swap.o")
        self.policy("maps", "priority_swap", "priorities", "--set", "tenant:research=300")

    def test_the_built_in_order_takes_whose_use_is_longest_ago(self):
        research, batch, _ = self.enter_all()
        self.assertGreater(self.swapped(research), 0)
        self.assertEqual(0, self.swapped(batch))

    def test_a_policy_takes_whose_priority_is_lowest(self):
        self.prefer_research()
        research, first, second = self.enter_all()
        self.assertEqual(0, self.swapped(research))
        self.assertGreater(self.swapped(first), 0)
        for player in (first, second, research):  # and everything is as it was
            self.turn(player, 1)
        for player in (first, second, research):
            self.turn(player, 2)
        figures = self.figures("priority_swap")
        self.assertEqual("", figures.get("ended", ""))
        self.assertIn("evict_next", figures["hooks"])
        self.assertGreater(int(figures["runs"]), 0)
        # Counted in the keeper, in the map that longwired shows.
        self.assertGreater(self.values("priority_swap", "came_back")["batch"], 0)
        self.policy("unload", "priority_swap")
        self.assertEqual("no policy is loaded; what is built in decides\n", self.policy("list"))

    def test_a_keepers_successor_has_the_policy(self):
        self.prefer_research()
        keeper = self.device()["keeper_pid"]
        os.kill(keeper, signal.SIGKILL)
        server.wait_for(lambda: self.device().get("keeper_pid", 0) not in (0, keeper), 30,
                        "the next keeper")
        server.wait_for(lambda: self.device().get("swap_host_memory", 0) >= MEMORY, 30,
                        "its host memory")
        research, first, _ = self.enter_all()
        self.assertEqual(0, self.swapped(research))
        self.assertGreater(self.swapped(first), 0)

    def refuse(self, why):
        """A keeper that cannot run the policy: the command says so, and nothing else."""
        result = self.try_policy("load", OBJECTS / "priority_swap.o")
        self.assertEqual((1, ""), (result.code, result.out))
        self.assertIn("the policy 'priority_swap' was unloaded as soon as it was loaded: "
                      "the keeper of device 0 " + why, result.err)
        self.assertIn("the keeper of device 0 " + why, self.figures("priority_swap")["ended"])
        return result

    def test_a_keeper_that_cannot_load_the_engine_is_named_by_the_command(self):
        keeper = self.device()["keeper_pid"]
        # Not room for the engine's libraries.
        pages = pathlib.Path(f"/proc/{keeper}/statm").read_text().split()[0]
        size = os.sysconf("SC_PAGE_SIZE") * int(pages)
        before = resource.prlimit(keeper, resource.RLIMIT_AS, (size + MIB, resource.RLIM_INFINITY))
        self.refuse("cannot run it: the engine of policies cannot be loaded")
        resource.prlimit(keeper, resource.RLIMIT_AS, before)
        self.assertIn("'priority_swap' decides now",
                      self.policy("load", OBJECTS / "priority_swap.o"))

    def test_a_keeper_that_stands_still_is_named_by_the_command(self):
        keeper = self.device()["keeper_pid"]
        os.kill(keeper, signal.SIGSTOP)
        self.addCleanup(os.kill, keeper, signal.SIGCONT)
        result = self.refuse("has not taken it within 5 s")
        self.assertGreater(result.seconds, 4)
        os.kill(keeper, signal.SIGCONT)
        # It finds a policy that has ended, and the next one counts.
        self.prefer_research()
        research, first, _ = self.enter_all()
        self.assertEqual(0, self.swapped(research))
        self.assertGreater(self.swapped(first), 0)

    def test_a_policy_hears_of_memory_and_of_work(self):
        self.policy("load", OBJECTS / "memory_counts.o")
        research, _, _ = self.enter_all()
        sizes = self.values("memory_counts", "bytes")
        self.assertGreaterEqual(sizes["research"], EACH)
        self.assertGreaterEqual(sizes["batch"], 2 * EACH)
        self.turn(research, 1)
        runs = self.values("memory_counts", "runs")
        self.assertGreater(runs["0"], 0, "what was away")
        self.assertGreaterEqual(runs["3"], 1, "how often")
        self.assertIn("research", self.values("memory_counts", "accessed"))

    def test_nonsense_in_a_keeper_unloads_it(self):
        self.policy("load", OBJECTS / "memory_nonsense.o")
        research, _, _ = self.enter_all()
        self.turn(research, 1)
        self.assertIn("stay_long answered nonsense: a stay of 2000000000 ns",
                      self.figures("memory_nonsense")["ended"])
        self.assertRegex(self.policy("list"), "memory_nonsense  UNLOADED")


class LaunchHooks(Hooks):
    def launch(self):
        """A hundred launches of one kernel, and one of another."""
        result = self.longwire.run_as("batch", self.longwire.program("under_rules.static"), "add",
                                      "shape")
        self.assertIn("add cudaSuccess 5050\nshape cudaSuccess 4 64\n", result.out,
                      (result, self.longwire.log_tail()))

    def test_a_function_is_asked_about_once(self):
        self.policy("load", OBJECTS / "urgent_kernels.o")
        self.policy("maps", "urgent_kernels", "urgent", "--set", f"{ADD}=5")
        self.launch()
        self.assertEqual([1, 1], list(self.values("urgent_kernels", "asked").values()))
        self.launch()  # another session
        self.assertEqual([2, 2], list(self.values("urgent_kernels", "asked").values()))
        self.assertEqual("", self.figures("urgent_kernels").get("ended", ""))
        self.policy("unload", "urgent_kernels")
        self.launch()

    def test_a_policy_that_comes_later_is_asked_by_sessions_that_run(self):
        process = subprocess.Popen(
            self.longwire.command(self.longwire.program("under_rules.static"), "add", "ready",
                                  "add", "shape"),
            env=self.longwire.environment_of("batch"), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        while server.next_line(process) not in ("READY\n", ""):
            pass
        self.assertIn("'urgent_kernels' decides now\n",
                      self.policy("load", OBJECTS / "urgent_kernels.o"))
        out, _ = process.communicate("\n", timeout=60)
        self.assertIn("add cudaSuccess 5050\nshape cudaSuccess 4 64\n", out)
        self.assertEqual([1, 1], list(self.values("urgent_kernels", "asked").values()))

    def test_a_worker_that_stands_still_is_named_by_the_command(self):
        process = subprocess.Popen(
            self.longwire.command(self.longwire.program("under_rules.static"),
                                  *("add", "ready") * 500),
            env=self.longwire.environment_of("batch"), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)

        def launch():
            self.assertEqual(["add cudaSuccess 5050\n", "READY\n"],
                             [server.next_line(process), server.next_line(process)])

        def asked():
            """It takes the policy some time after it goes on; any launch may be the first."""
            process.stdin.write("\n")
            process.stdin.flush()
            launch()
            return self.values("urgent_kernels", "asked")

        launch()
        [session] = self.longwire.status_as("operator")["sessions"]
        os.kill(session["worker_pid"], signal.SIGSTOP)
        began = time.monotonic()
        said = self.policy("load", OBJECTS / "urgent_kernels.o")
        self.assertIn(f"decides now, but not yet about launches of the sessions {session['id']}:",
                      said)
        self.assertGreater(time.monotonic() - began, 4)
        os.kill(session["worker_pid"], signal.SIGCONT)
        server.wait_for(asked, 30, "a launch about which the policy was asked")
        self.assertEqual([1], list(self.values("urgent_kernels", "asked").values()))

    def test_nonsense_unloads_it_and_launches_go_as_the_program_says(self):
        self.policy("load", OBJECTS / "launch_nonsense.o")
        self.launch()
        self.assertIn("launch_fast answered nonsense: a priority of 500",
                      self.figures("launch_nonsense")["ended"])

    def test_one_policy_for_each_who_asks(self):
        for name in ("urgent_kernels", "priority_swap", "favourite", "roomiest"):
            self.policy("load", OBJECTS / f"{name}.o")
        result = server.run([self.longwire.dist / "bin" / "longwire", "policy", "load",
                             OBJECTS / "launch_each.o", "--server", self.longwire.address],
                            self.longwire.environment_of("operator"))
        self.assertEqual(1, result.code)
        self.assertIn("both have hooks of launches", result.err)


if __name__ == "__main__":
    unittest.main()
