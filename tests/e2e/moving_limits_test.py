"""A session that moves is one session: its tenant's limits and what is counted of it see it once,
also while the worker that it leaves and the one that it goes to are both there."""
import re
import subprocess
import time
import unittest

import scrape
import server
from two_servers import Step
from usage_test import UsageServer, utc

MIB = 1 << 20
LIMIT, HELD = 320, 60  # MiB
FIRST = 64  # MiB, which a session leases first


class LimitsServer(UsageServer):
    def configure(self, blocks, settings=None):
        folder = {"checkpoint_dir": str(self.runtime / "sessions")}
        super().configure(blocks, {**(settings or {}), **folder})


class MovingLimitsTest(unittest.TestCase):
    def serve(self, **research):
        self.page = f"127.0.0.1:{server.free_port()}"
        blocks = {"operator": {"admin": True}, "research": research}
        self.longwire = self.enterContext(
            LimitsServer(blocks, {"metrics": self.page}, software_devices=2))

    def hold(self, mib, **environment):
        """A program of the tenant that has so much memory; its session."""
        before = {session["id"] for session in self.sessions()}
        process = subprocess.Popen(
            self.longwire.command(self.longwire.program("allocate.static"), str(mib * MIB), "hold"),
            env=self.longwire.environment_of("research", **environment), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        said = [server.next_line(process)]
        while said[-1] not in ("READY\n", ""):
            said.append(server.next_line(process))
        self.assertIn(f"{mib * MIB} cudaSuccess\n", said, self.longwire.log_tail())
        (session,) = [one for one in self.sessions() if one["id"] not in before]
        return process, session

    def sessions(self):
        return self.longwire.status_as("operator")["sessions"]

    def expect_end(self, process):
        out, err = process.communicate("\n", timeout=60)
        self.assertEqual(0, process.returncode, (out, err, self.longwire.log_tail()))

    def allocates(self, mib):
        done = self.longwire.run_as("research", self.longwire.program("allocate.static"), mib * MIB)
        self.assertEqual(0, done.code, (done, self.longwire.log_tail()))
        return f"{mib * MIB} cudaSuccess" in done.out

    def expect_older_ends_first(self, younger):
        server.wait_for(lambda: len(self.sessions()) < 2, 60, "the end of one")
        left = [one["id"] for one in self.sessions()]
        self.assertEqual([younger["id"]], left, self.longwire.log_tail())

    def words_of_move(self, session):
        device = session["seats"][0].get("device", 0)
        return ["admin", "migrate", str(session["id"]), str(1 - device)]

    def move(self, session):
        """The session after it."""
        done = self.longwire.cli(*self.words_of_move(session))
        self.assertEqual(0, done.code, (done, self.longwire.log_tail()))
        number = re.search(r"is session (\d+) there", done.out)[1]
        return next(one for one in self.sessions() if one["id"] == int(number))

    def begin(self, session):
        move = subprocess.Popen(
            [self.longwire.dist / "bin" / "longwire", *self.words_of_move(session)],
            env=self.longwire.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True)
        self.addCleanup(move.communicate)
        self.addCleanup(move.kill)
        return move

    def test_a_tenant_at_its_limit_moves(self):
        self.serve(memory=f"{LIMIT}MiB")
        process, session = self.hold(LIMIT)
        for _ in range(4):
            session = self.move(session)
        self.expect_end(process)
        server.wait_for(lambda: not self.sessions(), 20, "its end")
        self.assertTrue(self.allocates(LIMIT))

    def test_so_does_one_that_has_declared_all_of_it(self):
        self.serve(memory=f"{LIMIT}MiB")
        process, session = self.hold(HELD, LONGWIRE_MEMORY=f"{LIMIT}MiB")
        for _ in range(2):
            session = self.move(session)
        self.assertFalse(self.allocates(FIRST))
        self.expect_end(process)

    def test_others_have_the_rest_meanwhile_and_no_more(self):
        self.serve(memory=f"{LIMIT}MiB")
        process, session = self.hold(HELD)
        with Step(self.longwire, "ahead") as stop:
            move = self.begin(session)
            self.assertTrue(stop.reached(move), self.longwire.log_tail())
            leased = [one["leased"] for one in self.longwire.status_as("operator")["devices"]]
            self.assertGreaterEqual(min(leased), HELD * MIB, "both devices have it")
            self.assertTrue(self.allocates(LIMIT - FIRST), self.longwire.log_tail())
            self.assertFalse(self.allocates(LIMIT - FIRST + 1))
        self.assertEqual(0, move.wait(60), self.longwire.log_tail())
        self.assertTrue(self.allocates(LIMIT - FIRST))
        self.assertFalse(self.allocates(LIMIT - FIRST + 1))
        self.expect_end(process)

    def test_what_is_used_counts_once(self):
        """Time, memory, bytes and sessions: in the records of usage and in metrics."""
        self.serve()
        begun = time.time()
        process, session = self.hold(HELD)
        leased = session["leased"]
        before = self.counters()
        with Step(self.longwire, "ahead") as stop:
            move = self.begin(session)
            self.assertTrue(stop.reached(move), self.longwire.log_tail())
            self.assertEqual(1, len(self.sessions()))
            time.sleep(3)
            self.assertEqual(1, self.counters()["sessions"])
        self.assertEqual(0, move.wait(60), self.longwire.log_tail())
        after = self.counters()
        for name, value in before.items():
            self.assertGreaterEqual(after[name], value, name)
        (session,) = self.sessions()
        status = self.sessions()[0]
        self.expect_end(process)
        ended = time.time()
        server.wait_for(lambda: len(self.longwire.records()) == 2, 20, "two records")
        one, two = self.longwire.records()
        self.assertLessEqual(utc(one["ended"]), utc(two["opened"]) + 1e-3, (one, two))
        hours = (one["memory_byte_hours"] + two["memory_byte_hours"]) * 3600 / leased
        self.assertLessEqual(hours, ended - begun, (one, two))
        self.assertGreater(hours, 3)
        self.assertLess(two["bytes_up"], one["bytes_up"], (one, two, status))
        server.wait_for(lambda: not self.sessions(), 20, "its end")
        sums = self.counters()
        self.assertLessEqual(sums["seconds"], ended - begun + 1)
        self.assertAlmostEqual(sums["bytes"], sum(record[way] for record in (one, two)
                                                  for way in ("bytes_up", "bytes_down")), delta=1)

    def counters(self):
        seen = scrape.Scrape(self.page)

        def total(family):
            return sum(value for own, value in seen.families[family].samples
                       if own.get("identity") == "research")
        return {"sessions": total("longwire_identity_sessions"),
                "bytes": total("longwire_identity_bytes_total"),
                "seconds": total("longwire_identity_session_seconds_total")}

    def test_a_session_does_not_grow_younger(self):
        """Of two that may last as long, the older one ends first, though it has moved since."""
        self.serve(longest_session="12s")
        _, session = self.hold(64)
        time.sleep(5)
        _, younger = self.hold(64)
        session = self.move(session)
        self.move(session)
        self.expect_older_ends_first(younger)

    def test_nor_does_one_that_was_suspended(self):
        self.serve(longest_session="15s")
        _, session = self.hold(64)
        time.sleep(8)
        _, younger = self.hold(64)
        for words in (("checkpoint", str(session["id"]), "one"), ("restore", "one")):
            done = self.longwire.cli("admin", *words)
            self.assertEqual(0, done.code, (done, self.longwire.log_tail()))
        self.expect_older_ends_first(younger)


if __name__ == "__main__":
    unittest.main()
