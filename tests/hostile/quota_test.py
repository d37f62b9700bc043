#!/usr/bin/env python3
"""A tenant's memory limit counts all that a program can ask the device for, whatever the kind."""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import hostile_client  # noqa: E402
import server  # noqa: E402
import tenants  # noqa: E402

MIB = 1 << 20
LIMIT = 256 * MIB
# Kind → MiB asked for at a time, how often that fits into the limit. Graphs take memory in steps
# of 32 MiB, and a chain of levels takes a third more than its first.
KINDS = {
    "linear": (50, 5), "array": (50, 5), "array3d": (50, 5), "mipmapped": (36, 5), "pool": (50, 5),
    "physical": (50, 5), "managed": (50, 5), "graph": (60, 4), "captured": (60, 4),
    "module": (50, 5), "library": (50, 5), "heap": (50, 5), "printing": (50, 5), "stack": (50, 5),
}
# What the driver allocates itself; the others are leases.
CHARGED = ["array", "array3d", "mipmapped", "graph", "captured", "module", "library", "heap",
           "printing", "stack"]
CAPTURING = 1  # wire::kCapturing


class QuotaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(tenants.TenantServer({
            "small": {"memory": "256MiB"}, "other": {"memory": "256MiB"}, "free": {"admin": True},
            "hostile": {"memory": "256MiB", "identities": [f"uid:{os.getuid()}"]}}))

    def kinds(self, tenant, *words):
        result = self.longwire.run_as(tenant, self.longwire.program("driver_memory_kinds.driver"),
                                      *words)
        self.assertEqual(0, result.code, result.out + result.err + self.longwire.log_tail())
        return result.out.splitlines()

    def hold(self, tenant, *words):
        process = subprocess.Popen(
            self.longwire.command(self.longwire.program("driver_memory_kinds.driver"),
                                  *map(str, words), "hold"),
            env=self.longwire.environment_of(tenant), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        said = []
        while not said or said[-1] not in ("READY\n", ""):
            said.append(server.next_line(process))
        self.assertEqual("READY\n", said[-1], self.longwire.log_tail())
        return process

    def figures(self, tenant):
        [found] = [each for each in self.longwire.status_as("free")["tenants"]
                   if each["name"] == tenant]
        return found

    def test_no_kind_goes_beyond_and_what_is_freed_is_there_again(self):
        for kind, (mib, fits) in KINDS.items():
            with self.subTest(kind):
                said = self.kinds("small", kind, mib, 40)
                self.assertEqual(f"{fits} then CUDA_ERROR_OUT_OF_MEMORY", said[0],
                                 self.longwire.log_tail())
                if kind in CHARGED:  # what is leased comes back when the worker gets to it
                    self.assertEqual(said[0], said[1], self.longwire.log_tail())
                self.assertEqual("PASS", said[-1])

    def test_without_a_limit_all_are_given(self):
        for kind, (mib, _) in KINDS.items():
            with self.subTest(kind):
                expected = ["10 then CUDA_SUCCESS"] * 2 + ["PASS"]
                self.assertEqual(expected, self.kinds("free", kind, mib, 10))

    def test_a_neighbour_gets_its_own_and_a_sibling_what_is_left(self):
        for kind in CHARGED:
            with self.subTest(kind):
                mib, fits = KINDS[kind]
                holder = self.hold("small", kind, mib, 40)
                self.assertEqual(f"{fits} then CUDA_ERROR_OUT_OF_MEMORY",
                                 self.kinds("other", kind, mib, 40)[0])
                self.assertEqual("0 then CUDA_ERROR_OUT_OF_MEMORY",
                                 self.kinds("small", "linear", 100, 1)[0])
                # Of the first bytes of a limit a context has some anyway.
                server.wait_for(lambda least=mib * fits * MIB * 8 // 10:
                                self.figures("small")["memory_charged"] >= least, 5, "status")
                self.assertLessEqual(self.figures("small")["memory_leased"], LIMIT)
                holder.communicate("\n")
                server.wait_for(lambda: self.figures("small")["memory_leased"] == 0, 10,
                                "the end of its charges")
                self.assertEqual("2 then CUDA_SUCCESS",
                                 self.kinds("small", "linear", 100, 2)[0])

    def test_status_shows_what_a_session_has(self):
        holder = self.hold("small", "array", 50, 3)
        self.addCleanup(holder.communicate)
        server.wait_for(lambda: self.figures("small")["memory_charged"] == 150 * MIB, 5, "status")
        [session] = [each for each in self.longwire.status_as("small")["sessions"]]
        [memory] = session["memory"]
        self.assertEqual(150 * MIB, memory["charged"])
        holder.communicate("\n")

    def test_memory_of_its_own_that_is_free_makes_room(self):
        """What a program has freed stays with its session, but arrays need it."""
        result = self.longwire.run_as("small", self.longwire.program("driver_memory_kinds.driver"),
                                      "array_after_linear", 200, 1)
        self.assertEqual(["1 then CUDA_SUCCESS"] * 2 + ["PASS"], result.out.splitlines(),
                         result.err + self.longwire.log_tail())

    def test_allocations_from_the_drivers_pools(self):
        """Which no program of ours makes outside of captures, whatever a client says of that."""
        for flags in (0, CAPTURING):
            with self.subTest(flags=flags):
                client = self.enterContext(hostile_client.Client(self.longwire.door,
                                                                 self.longwire.build))
                self.assertEqual(0, client.code, client.sentence)
                client.create_context()
                got = [client.ask("lwAllocAsync", hostile_client.u64(50 * MIB), stream=5,
                                  flags=flags) for _ in range(8)]
                codes = [code for code, _ in got]
                given = codes.count(0)
                self.assertLessEqual(given * 50 * MIB, LIMIT)
                self.assertGreaterEqual(given, 1)
                self.assertEqual([2] * (8 - given), codes[given:])
                for code, payload in got[:given]:
                    client.send("lwFreeAsync", payload[:8], stream=5)
                # The first lease of 64 MiB stays with a client that does not answer.
                server.wait_for(lambda: client.ask("lwAllocAsync",
                                                   hostile_client.u64(150 * MIB),
                                                   stream=5)[0] == 0, 10, "what was freed")
                client.close()
                server.wait_for(lambda: self.figures("hostile")["memory_leased"] == 0, 10,
                                "the end of its charges")


if __name__ == "__main__":
    unittest.main()
