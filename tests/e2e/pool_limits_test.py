"""Tenants' limits over a whole pool: sessions are counted over all hosts; memory is held by hosts
in parts, which grow for sessions that run, come back from hosts that do not use them, and never are
more than the limit together."""
import subprocess
import unittest

import pool_history
import pool_servers
import server

MIB = pool_servers.MIB
LIMIT = 512 * MIB  # less than a step: whoever needs some takes all that is left
SESSIONS = 4
TENANT = "research"


class PoolLimitsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pool = cls.enterClassContext(pool_servers.Pool(
            members=1, devices=1, memory=2 << 30, keys={
                "tenants": [{"name": TENANT, "identities": ["loopback"], "admin": True}]},
            pool_keys={"limits": [{"tenant": TENANT, "sessions": SESSIONS, "memory": "512MiB"}]}))

    def setUp(self):
        self.programs = []
        self.addCleanup(self.ends)

    def ends(self):
        pool_servers.end(self.programs)
        server.wait_for(self.pool.no_claims, 20, "the end of all claims")
        self.assertEqual([], pool_history.Checker().replay(self.pool.etcd.history()))

    def allocator(self, host):
        """A program on that host that allocates what the test says."""
        asked = self.pool.servers[host]
        label = ["--label", f"name={host}"]
        program = subprocess.Popen(
            [asked.dist / "bin" / "longwire", "run", *label, "--server", asked.address, "--",
             asked.program("allocate.static"), "hold"],
            env=asked.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.programs.append(program)
        said = []
        while not said or said[-1] not in ("READY\n", ""):
            said.append(server.next_line(program))
        self.assertEqual("READY\n", said[-1], asked.log_tail())
        return program

    def tell(self, program, *words):
        program.stdin.write(" ".join(map(str, words)) + "\n")
        program.stdin.flush()
        said = server.next_line(program).strip()
        self.assertIn("free", server.next_line(program))
        return said

    def parts(self):
        return {key.split("/")[2]: int(one.get("bytes", 0))
                for key, one in self.pool.etcd.keys(f"ten/{TENANT}/").items()}

    def test_sessions_are_counted_over_all_hosts(self):
        for i in range(SESSIONS):
            self.programs.append(self.pool.held("abc"[i % 3]))
        refused = self.pool.servers["a"].run("vector_add.static")
        self.assertEqual(1, refused.code, refused)
        self.assertIn(f"the tenant '{TENANT}' has {SESSIONS} sessions in the pool already; its "
                      f"limit there is {SESSIONS}", refused.err)
        # One that waits gets the place of the first that ends.
        waiter = self.pool.hold("b", LONGWIRE_WAIT="60s")
        self.programs.append(waiter)
        server.wait_for(lambda: any(key.startswith("q/") for key in self.pool.etcd.keys()), 10,
                        "a waiting program")
        pool_servers.end([self.programs.pop(0)])
        self.pool.await_ready(waiter)

    def test_memory_moves_between_hosts_and_is_never_more_than_the_limit(self):
        on = {host: self.allocator(host) for host in "ab"}
        size = 320 * MIB  # a session has 64 MiB from its beginning
        self.assertEqual(f"{size} cudaSuccess", self.tell(on["a"], size))
        self.assertGreaterEqual(self.parts()["a"], size)
        # What a's session has is not there for b's.
        self.assertEqual(f"{size} cudaErrorMemoryAllocation", self.tell(on["b"], size))
        self.assertEqual(f"{48 * MIB} cudaSuccess", self.tell(on["b"], 48 * MIB))
        self.assertLessEqual(sum(self.parts().values()), LIMIT)
        # a's memory is free again, and its idle part is what b gets.
        pool_servers.end([self.programs.pop(0)])
        server.wait_for(lambda: not self.pool.claims()["a"], 10, "the end of a's session")
        self.assertGreaterEqual(self.parts()["a"], size)
        self.assertEqual(f"{size} cudaSuccess", self.tell(on["b"], size))
        self.assertLessEqual(sum(self.parts().values()), LIMIT)
        self.assertGreaterEqual(self.parts()["b"], size + 48 * MIB)

    def test_a_program_sees_what_the_pool_allows(self):
        result = self.pool.servers["c"].run("allocate.static", str(MIB))
        self.assertEqual(0, result.code, result)
        self.assertIn(f"total {LIMIT}", result.out)

    def test_the_checker_finds_planted_faults(self):
        claim = {"tenant": "t", "bytes": "1", "devices": [0]}
        room = {"sessions": 1, "sessionsLimit": 9, "incarnation": "1",
                "devices": [{"ordinal": 0, "total": "9", "bytes": "1", "sessions": 1}]}
        limit = {"sessions": "1", "memory": "8", "parts": "0"}

        def faults(*changes):
            return pool_history.Checker().replay([(1, "ten/t", limit), *changes])
        def opened(revision, host, **more):
            return [(revision, f"cap/{host}", room), (revision, f"claim/{host}/{host}",
                                                      {**claim, **more}),
                    (revision, f"sess/{host}", {"host": host, "generation": "1"})]
        def part(revision, host, size, parts):
            return [(revision, "ten/t", {**limit, "parts": str(parts)}),
                    (revision, f"ten/t/{host}", {"bytes": str(size)})]
        self.assertEqual([], faults(*opened(2, "a"), *part(3, "a", 8, 8), *part(4, "a", 2, 2),
                                    *part(5, "b", 6, 8)))
        self.assertIn("has 2 sessions of 1", str(faults(*opened(2, "a"), *opened(3, "b"))))
        self.assertIn("by itself", str(faults(*opened(2, "a", local=True))))
        self.assertIn("more than 8 bytes", str(faults(*part(2, "a", 8, 8), *part(3, "b", 1, 9))))
        self.assertIn("counts parts", str(faults(*part(2, "a", 8, 7))))
        again = [(3, "cap/b", room), (3, "claim/b/a", claim)]
        self.assertIn("session a has claims at ['a', 'b']", str(faults(*opened(2, "a"), *again)))
        self.assertIn("sess/a went from a to b", str(faults(
            *opened(2, "a"), (3, "sess/a", {"host": "b", "generation": "1"}))))
        full = {**room, "sessions": 2,
                "devices": [{**room["devices"][0], "bytes": "10", "sessions": 2}]}
        large = {**claim, "bytes": "5", "tenant": "u"}
        self.assertIn("promised 10 bytes of 9", str(faults(
            (2, "cap/a", full), (2, "claim/a/x", large), (2, "claim/a/y", large))))


if __name__ == "__main__":
    unittest.main()
