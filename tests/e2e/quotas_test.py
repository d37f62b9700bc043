"""Tenants' limits: memory at the byte over all sessions, sessions, and who sees what."""
import subprocess
import time
import unittest

import server
import tenants

MIB = 1 << 20


class QuotaTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(tenants.TenantServer({
            "small": {"memory": "100MiB", "sessions": 2},
            "narrow": {"bytes_in_flight": "8MiB"},
            "large": {"admin": True}}))

    def allocate(self, tenant, *sizes):
        result = self.longwire.run_as(tenant, self.longwire.program("allocate.static"), *sizes)
        self.assertEqual(0, result.code, result.err + self.longwire.log_tail())
        return result.out.split("\n")

    def start(self, tenant, program, *words, **environment):
        process = subprocess.Popen(
            self.longwire.command(self.longwire.program(program), *map(str, words)),
            env=self.longwire.environment_of(tenant, **environment), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        return process

    def hold(self, tenant, *sizes):
        process = self.start(tenant, "allocate.static", *sizes, "hold")
        said = []
        while not said or said[-1] not in ("READY\n", ""):
            said.append(server.next_line(process))
        self.assertEqual("READY\n", said[-1], self.longwire.log_tail())
        return process, said

    def test_the_limit_holds_at_the_byte(self):
        self.assertIn(f"{100 * MIB} cudaSuccess", self.allocate("small", 100 * MIB))
        self.assertIn(f"{100 * MIB + 1} cudaErrorMemoryAllocation",
                      self.allocate("small", 100 * MIB + 1))

    def test_the_program_sees_its_tenants_memory(self):
        self.assertIn(f"total {100 * MIB}", self.allocate("small", MIB)[1])
        self.assertNotIn(f"total {100 * MIB}", self.allocate("large", MIB)[1])

    def test_sessions_of_a_tenant_share_the_limit_and_the_neighbour_does_not(self):
        # A session's first lease is 64 MiB, which leaves 36 for its sibling.
        holder, _ = self.hold("small", 60 * MIB)
        said = self.allocate("small", 36 * MIB + 1, 36 * MIB)
        self.assertIn(f"{36 * MIB + 1} cudaErrorMemoryAllocation", said)
        self.assertIn(f"{36 * MIB} cudaSuccess", said)
        self.assertIn(f"{400 * MIB} cudaSuccess", self.allocate("large", 400 * MIB))
        holder.communicate("\n")
        server.wait_for(lambda: not self.longwire.status_as("large")["sessions"], 5, "its end")
        self.assertIn(f"{100 * MIB} cudaSuccess", self.allocate("small", 100 * MIB))

    def offer(self, tenant):
        process = self.start(tenant, "ipc_handle.static", "offer")
        handle, ready = server.next_line(process).strip(), server.next_line(process)
        self.assertEqual("READY\n", ready, self.longwire.log_tail())
        return process, handle

    def take(self, tenant, handle):
        result = self.longwire.run_as(tenant, self.longwire.program("ipc_handle.static"), "take",
                                      handle)
        self.assertEqual(0, result.code, result.err + self.longwire.log_tail())
        return result.out.splitlines()[:-1]

    def test_memory_is_shared_within_a_tenant_and_with_nobody_else(self):
        process, handle = self.offer("large")
        self.assertEqual(["cudaSuccess", "77777777"], self.take("large", handle))
        self.assertEqual(["cudaErrorInvalidValue"], self.take("small", handle))
        process.communicate()
        server.wait_for(lambda: not self.longwire.status_as("large")["sessions"], 5, "its end")
        self.assertEqual(["cudaErrorInvalidValue"], self.take("large", handle))

    def test_one_session_too_many_is_refused_with_a_sentence(self):
        holders = [self.hold("small", MIB)[0] for _ in range(2)]
        refused = self.longwire.run_as("small", self.longwire.program("allocate.static"), MIB)
        self.assertNotEqual(0, refused.code)
        self.assertIn("'small' has 2 sessions already; its limit is 2", refused.err)
        for holder in holders:
            holder.communicate("\n")

    def test_who_waits_gets_room_when_there_is_some(self):
        holders = [self.hold("small", MIB)[0] for _ in range(2)]
        waiting = self.start("small", "allocate.static", MIB, LONGWIRE_WAIT="60s")
        self.assertEqual("longwire: waiting: the tenant 'small' has 2 sessions already; its limit "
                         "is 2\n", waiting.stderr.readline())
        time.sleep(0.5)
        self.assertIsNone(waiting.poll())
        holders[0].communicate("\n")
        out, err = waiting.communicate("\n", timeout=60)
        self.assertEqual(0, waiting.returncode, err)
        holders[1].communicate("\n")

    def test_who_waits_gives_up_in_time(self):
        holders = [self.hold("small", MIB)[0] for _ in range(2)]
        refused = self.longwire.run_as("small", self.longwire.program("allocate.static"), MIB,
                                       LONGWIRE_WAIT="2s")
        self.assertNotEqual(0, refused.code)
        self.assertEqual(2, refused.err.count("'small' has 2 sessions already; its limit is 2"),
                         refused.err)  # when it begins to wait, and as its answer
        self.assertLess(refused.seconds, 4 * 2)
        for holder in holders:
            holder.communicate("\n")

    def test_what_a_session_may_have_waiting_on_the_server(self):
        for size, kind in ((64, "pageable"), (256, "pinned")):
            with self.subTest(kind):
                program = self.start("narrow", "copies_behind.static", 64, size, kind)
                self.assertLess(self.bytes_up_at_rest(), 8 * MIB)
                out, err = program.communicate("\n")
                self.assertIn("PASS", out, err + self.longwire.log_tail())

    def bytes_up_at_rest(self):
        """Of the one session, once it is there."""
        server.wait_for(lambda: self.longwire.status_as("large")["sessions"], 30, "a session")
        before, now = -1, 0
        while before != now:
            time.sleep(0.5)
            [session] = self.longwire.status_as("large")["sessions"]
            before, now = now, session["bytes_up"]
        return now

    def test_status_shows_a_tenant_itself_and_an_administrator_all(self):
        holder, _ = self.hold("small", 10 * MIB)
        own = self.longwire.status_as("small")
        every = self.longwire.status_as("large")
        self.assertEqual(["small"], [tenant["name"] for tenant in own["tenants"]])
        self.assertEqual(["large", "narrow", "small"], sorted(t["name"] for t in every["tenants"]))
        small = own["tenants"][0]
        self.assertEqual((100 * MIB, 1), (small["memory_limit"], small["sessions"]))
        self.assertGreaterEqual(small["memory_leased"], 10 * MIB)
        stranger = self.hold("large", MIB)[0]
        self.assertEqual(1, len(self.longwire.status_as("small")["sessions"]))
        self.assertEqual(2, len(self.longwire.status_as("large")["sessions"]))
        for process in (holder, stranger):
            process.communicate("\n")


if __name__ == "__main__":
    unittest.main()
