"""Policies in a running server: loaded, asked, refused, unloaded when they are slow or answer
nonsense; and tried without a server."""
import json
import pathlib
import re
import subprocess
import unittest

import server
import tenants

OBJECTS = server.build_folder() / "policy" / "objects"
TRANSCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scheduler" / "testdata"
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "policy" / "examples" / "transcripts"
ITERATIONS = 1000  # of a kernel: some 20 ms on the software device


class PoliciesTest(unittest.TestCase):
    def setUp(self):
        self.blocks = {"operator": {"admin": True}, "alpha": {}, "beta": {}}
        self.longwire = self.enterContext(tenants.TenantServer(self.blocks, software_devices=2))
        server.wait_for(lambda: "ready" in self.longwire.log_tail(), 20, "the daemon")

    def policy(self, *words, tenant="operator"):
        verb, *rest = map(str, words)
        return server.run([self.longwire.dist / "bin" / "longwire", "policy", verb, *rest,
                           "--server", self.longwire.address],
                          self.longwire.environment_of(tenant))

    def must(self, *words):
        result = self.policy(*words)
        self.assertEqual(0, result.code, f"{result}\n{self.longwire.log_tail()}")
        return result.out

    def list(self):
        return {one["name"]: one for one in map(server.plain,
                                                json.loads(self.must("list", "--json")))}

    def values(self, policy, name):
        told = server.plain(json.loads(self.must("maps", policy, name, "--json")))
        return {one.get("tenant") or str(one.get("key", 0)): int(one["value"])
                for one in told.get("values", [])}

    def work(self, tenant):
        """A program that always has two kernels queued."""
        process = subprocess.Popen(
            self.longwire.command(self.longwire.build / "bench" / "tenant_load", "batch",
                                  str(ITERATIONS), "600"),
            env=self.longwire.environment_of(tenant, LONGWIRE_DEVICES="1"),
            stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        server.wait_for(lambda: self.seats().get(tenant, {}).get("calls", 0) > 2, 30, tenant)

    def hold(self, tenant):
        process = subprocess.Popen(
            self.longwire.command(self.longwire.program("hold_session.static")),
            env=self.longwire.environment_of(tenant), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual("READY\n", server.next_line(process), self.longwire.log_tail())

    def seats(self):
        return {one["tenant"]: one["seats"][0]
                for one in self.longwire.status_as("operator")["sessions"] if one.get("seats")}

    def limited(self):
        return sorted(name for name, seat in self.seats().items() if seat.get("limited"))

    def share_a_device(self, **scheduler):
        self.longwire.configure(self.blocks, {"placement": "pack", "scheduler": scheduler})
        self.longwire.children["longwired"].send_signal(1)
        server.wait_for(lambda: "in force now" in self.longwire.log_tail(100), 20, "the reload")
        self.work("alpha")
        self.work("beta")

    def test_what_a_policy_is_not_asked_about_is_said(self):
        memory = "but its hooks of memory are not asked: no memory is swapped"
        self.assertIn(memory, self.must("load", OBJECTS / "priority_swap.o"))
        self.assertIn("'favourite' decides now\n", self.must("load", OBJECTS / "favourite.o"))
        self.must("unload", "favourite")
        self.longwire.configure(self.blocks, {"scheduler": {"enabled": False},
                                              "memory": {"swap_host_memory": "64MiB"}})
        self.longwire.children["longwired"].send_signal(1)
        server.wait_for(lambda: "in force now" in self.longwire.log_tail(100), 20, "the reload")
        self.assertIn("decides now, but its hooks of turns are not asked: the scheduler is off",
                      self.must("load", OBJECTS / "favourite.o"))
        self.must("unload", "priority_swap")
        self.assertIn("'priority_swap' decides now\n",
                      self.must("load", OBJECTS / "priority_swap.o"))

    def test_a_policy_decides_for_sessions_that_run(self):
        self.share_a_device()
        self.assertEqual([], self.limited())
        self.assertIn("'favourite' decides now\n", self.must("load", OBJECTS / "favourite.o"))
        self.assertEqual(["alpha", "beta"], self.limited())
        self.must("maps", "favourite", "ranks", "--set", "tenant:alpha=2")
        self.assertEqual({"alpha": 2}, self.values("favourite", "ranks"))
        server.wait_for(lambda: set(self.values("favourite", "turns")) == {"alpha", "beta"}, 30,
                        "turns of both: nobody starves")
        before = self.values("favourite", "turns")
        server.wait_for(lambda: self.values("favourite", "turns")["alpha"] > before["alpha"] + 3,
                        30, "turns of the favourite")
        figures = self.list()["favourite"]
        self.assertEqual("", figures.get("ended", ""))
        self.assertTrue(figures["compiled"])
        self.assertIn("turn_next", figures["hooks"])
        self.must("unload", "favourite")
        self.assertEqual([], self.limited())
        self.assertEqual({}, self.list())

    def test_a_refused_policy_changes_nothing_and_says_the_line(self):
        result = self.policy("load", OBJECTS / "refused_loop.o")
        self.assertEqual((1, ""), (result.code, result.out))
        self.assertIn("wait_for, line 6 of refused_loop.c", result.err)
        self.assertIn("loops are not allowed, so unroll it", result.err)
        self.assertEqual({}, self.list())
        result = self.policy("load", pathlib.Path(__file__))
        self.assertIn("it is no object file for BPF", result.err)
        self.assertEqual(1, result.code)

    def test_only_administrators_change_policies(self):
        result = self.policy("load", OBJECTS / "favourite.o", tenant="alpha")
        self.assertEqual(1, result.code)
        self.assertIn("only an administrator may do that", result.err)
        self.assertEqual({}, self.list())

    def test_two_cannot_decide_the_same(self):
        self.must("load", OBJECTS / "favourite.o")
        result = self.policy("load", OBJECTS / "strict_priority.o")
        self.assertEqual(1, result.code)
        self.assertIn("both have hooks of the scheduler", result.err)
        self.must("load", OBJECTS / "roomiest.o")
        self.assertEqual({"favourite", "roomiest"}, set(self.list()))

    def test_a_slow_policy_is_unloaded_and_said(self):
        self.share_a_device(policy="weighted_fair")
        self.must("load", OBJECTS / "slow.o")
        server.wait_for(lambda: self.list()["slow"].get("ended"), 60, "its end")
        self.assertRegex(self.list()["slow"]["ended"], r"its function ask takes \d+ us")
        self.assertIn("the policy 'slow' was unloaded", self.longwire.log_tail(200))
        self.assertRegex(self.must("list"), r"slow  UNLOADED")
        self.assertEqual(["alpha", "beta"], self.limited())  # by weighted_fair

    def test_nonsense_unloads_a_policy(self):
        self.hold("alpha")
        result = self.policy("load", OBJECTS / "nonsense.o")
        self.assertEqual((1, ""), (result.code, result.out))
        self.assertIn("the policy 'nonsense' was unloaded as soon as it was loaded: its function "
                      "share answered nonsense: turns is neither 0 nor 1", result.err)
        self.assertIn("share answered nonsense: turns is neither 0 nor 1",
                      self.list()["nonsense"]["ended"])
        self.assertIn("What is built in decides again", self.longwire.log_tail(200))

    def test_placement_asks_for_scores(self):
        self.longwire.configure(self.blocks, {"placement": "pack"})
        self.longwire.children["longwired"].send_signal(1)
        server.wait_for(lambda: "in force now" in self.longwire.log_tail(100), 20, "the reload")
        self.hold("alpha")
        first = self.seats()["alpha"].get("device", 0)
        self.must("load", OBJECTS / "roomiest.o")
        self.hold("beta")
        self.assertNotEqual(first, self.seats()["beta"].get("device", 0))
        room = self.values("roomiest", "room")
        self.assertLess(room[str(first)], max(room.values()))

    def test_the_configuration_loads_one_and_keeps_it(self):
        entry = {"name": "chosen", "file": str(OBJECTS / "favourite.o")}
        self.longwire.configure(self.blocks, {"policies": [entry]})
        reload = [self.longwire.dist / "bin" / "longwire", "admin", "reload", "--server",
                  self.longwire.address]
        environment = self.longwire.environment_of("operator")
        self.assertEqual(0, server.run(reload, environment).code, self.longwire.log_tail())
        self.must("maps", "chosen", "ranks", "--set", "7=9")
        self.assertEqual(0, server.run(reload, environment).code)
        self.assertEqual({"7": 9}, self.values("chosen", "ranks"))  # the same one goes on
        wrong = {"name": "chosen", "file": str(OBJECTS / "refused_outside.o")}
        self.longwire.configure(self.blocks, {"policies": [wrong]})
        result = server.run(reload, environment)
        self.assertEqual(1, result.code)
        self.assertIn("read_on, line 5 of refused_outside.c", result.err)
        self.assertEqual({"chosen"}, set(self.list()))
        self.longwire.configure(self.blocks)
        self.assertEqual(0, server.run(reload, environment).code)
        self.assertEqual({}, self.list())


class TriedPoliciesTest(unittest.TestCase):
    def try_policy(self, name, transcript, folder=TRANSCRIPTS):
        longwire = server.build_folder() / "dist" / "bin" / "longwire"
        return server.run([longwire, "policy", "test", OBJECTS / f"{name}.o",
                           folder / f"{transcript}.txt"], None)

    def test_the_examples_decide_as_what_is_built_in(self):
        for name in ("strict_priority", "weighted_fair"):
            result = self.try_policy(name, name)
            self.assertEqual(0, result.code, result.err)
            self.assertEqual((TRANSCRIPTS / f"{name}.txt").read_text(), result.out)

    def test_examples_for_memory_and_launches_decide_as_their_transcripts_say(self):
        for name in ("priority_swap", "urgent_kernels"):
            result = self.try_policy(name, name, EXAMPLES)
            self.assertEqual(0, result.code, result)
            self.assertEqual((EXAMPLES / f"{name}.txt").read_text(), result.out)
        result = self.try_policy("memory_nonsense", "priority_swap", EXAMPLES)
        self.assertEqual(1, result.code)
        self.assertIn("the policy was unloaded: its function stay_long answered", result.err)
        # What is built in has another order, and the transcript says so.
        result = self.try_policy("memory_counts", "priority_swap", EXAMPLES)
        self.assertEqual(1, result.code)
        self.assertIn("of the transcript", result.err)

    def test_another_policy_is_seen(self):
        result = self.try_policy("weighted_fair", "strict_priority")
        self.assertEqual(1, result.code)
        self.assertTrue(re.search(r"line \d+ of the transcript: .*\nwith the policy: ", result.err))


if __name__ == "__main__":
    unittest.main()
