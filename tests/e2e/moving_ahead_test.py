"""A session that moves is rebuilt while its program runs: its calls have run again before it stands
still, and what came meanwhile is right there, too."""
import json
import os
import re
import signal
import tempfile
import time
import unittest

import server
from two_servers import Step, TwoServers

OBJECTS = 60
LEAST_CALLS = 1000  # of these objects
CALLS = re.compile(r"of its calls (\d+) ran again before that and (\d+) meanwhile")
OFF = {"LONGWIRE_DISABLE": "rebuilt-ahead"}
SAYS_VOID = "what was rebuilt while it ran is void"


class MovingAheadTest(TwoServers):
    def serve(self, **variables):
        """Two servers, the first with two devices."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        config = json.dumps({"moves_from": ["any"], "resume_grace": "60s",
                             "checkpoint_dir": f"{folder}/sessions"})
        self.both = [self.enterContext(server.Server(config=config, software_devices=devices,
                                                     variables=variables)) for devices in (2, 1)]
        return self.both

    def start_objects(self, longwire, *more):
        return self.start_ready(longwire, longwire.program("driver_many_objects.driver"),
                                str(OBJECTS), *more)

    def expect_pass(self, program):
        out, err = program.communicate(timeout=120)
        self.assertEqual(0, program.returncode, (out, err, self.logs()))
        self.assertIn("PASS driver_many_objects", out)

    def make_more(self, program, count=3):
        program.stdin.write(f"{count}\n")
        program.stdin.flush()
        self.assertRegex(server.next_line(program), r"MADE \d+", self.logs())

    def away(self, longwire, session):
        """Where the session is not: another device of its server."""
        return 1 - session["seats"][0].get("device", 0)

    def calls(self, moved):
        self.assertEqual(0, moved.code, (moved, self.logs()))
        found = CALLS.search(moved.out)
        self.assertTrue(found, moved.out)
        return int(found[1]), int(found[2])

    def move_three_times(self, program):
        """To the other device and back, and to the other server: calls before and meanwhile."""
        here, there = self.both
        moves = []
        for _ in range(2):
            session = self.session(here)
            moves.append(self.calls(self.migrate(here, session["id"], self.away(here, session))))
            self.make_more(program)
        moves.append(self.calls(self.migrate(here, self.session(here)["id"], there.address)))
        self.make_more(program)
        return moves

    def test_calls_run_again_before_it_stands_still(self):
        self.serve()
        program = self.start_objects(self.both[0])
        for before, meanwhile in self.move_three_times(program):
            self.assertGreater(before, LEAST_CALLS)
            self.assertEqual(0, meanwhile)  # it waits for its input
        self.expect_pass(program)
        self.expect_empty()

    def test_switched_off_all_of_them_run_again_meanwhile(self):
        self.serve(**OFF)
        program = self.start_objects(self.both[0])
        for before, meanwhile in self.move_three_times(program):
            self.assertEqual(0, before)
            self.assertGreater(meanwhile, LEAST_CALLS)
        self.expect_pass(program)

    def test_a_program_that_makes_objects_all_the_time(self):
        """Some of what it makes comes after the last round, and memory comes and goes meanwhile."""
        here, there = self.serve()
        program = self.start_objects(here, "busy")
        meanwhile = 0
        for turn in range(8):
            owner = self.owner()
            session = self.session(owner)
            if turn % 3 == 2:
                to = there.address if owner is here else here.address
            else:
                to = self.away(owner, session) if owner is here else here.address
            moved = self.migrate(owner, session["id"], to)
            if "is captured just now" in moved.err:
                continue
            before, still = self.calls(moved)
            self.assertGreater(before, still)
            meanwhile += still
            time.sleep(0.3)
        self.assertGreater(meanwhile, 0)
        self.expect_pass(program)
        self.expect_empty()

    def test_suspended_and_restored_it_moves_ahead_as_before(self):
        here, _ = self.serve()
        program = self.start_objects(here)
        for name in ("one", "two"):
            done = here.cli("admin", "checkpoint", str(self.session(here)["id"]), name)
            self.assertEqual(0, done.code, (done, self.logs()))
            done = here.cli("admin", "restore", name)
            self.assertEqual(0, done.code, (done, self.logs()))
            self.make_more(program)
            session = self.session(here)
            before, _ = self.calls(self.migrate(here, session["id"], self.away(here, session)))
            self.assertGreater(before, LEAST_CALLS)
            self.make_more(program)
        self.expect_pass(program)

    def test_what_is_void_is_rebuilt_while_it_stands_still(self):
        """The worker that was rebuilt ahead is killed before the session is held: another one takes
        its place, and the log says so."""
        here, there = self.serve()
        for to in ("device", "server"):
            with self.subTest(to):
                program = self.start_objects(here)
                session = self.session(here)
                owner, place = (here, str(self.away(here, session))) if to == "device" else \
                    (there, there.address)
                with Step(here, "ahead") as stop:
                    move = self.begin(here, session["id"], place)
                    self.assertTrue(stop.reached(move), self.logs())
                    # A warm worker may have become the new one.
                    taken = [pid for pid in owner.processes()["longwire-worker"]
                             if pid != session["worker_pid"]]
                    for pid in taken:
                        os.kill(pid, signal.SIGKILL)
                    self.assertTrue(taken)
                    self.make_more(program)  # it runs
                out, err = move.communicate(timeout=60)
                self.assertEqual(0, move.returncode, (out, err, self.logs()))
                before, meanwhile = map(int, CALLS.search(out).groups())
                self.assertEqual(0, before)
                self.assertGreater(meanwhile, LEAST_CALLS)
                here.must_log(SAYS_VOID)
                self.make_more(program)
                self.expect_pass(program)
                self.expect_empty()

    def test_a_daemon_that_is_killed_in_the_midst_of_it(self):
        """The session goes on where it is."""
        here, there = self.serve()
        for victim, step, to in ((here, "ahead", "device"), (here, "ahead", "server"),
                                 (there, "there-ahead", "server")):
            with self.subTest(step=step, to=to):
                program = self.start_objects(here)
                session = self.session(here)
                place = str(self.away(here, session)) if to == "device" else there.address
                with Step(victim, step) as stop:
                    move = self.begin(here, session["id"], place)
                    self.assertTrue(stop.reached(move), self.logs())
                    self.restart(victim, stop)
                out, err = move.communicate(timeout=90)
                self.assertEqual(1, move.returncode, (out, err))
                self.assertEqual(session["worker_pid"], self.session(here)["worker_pid"])
                self.make_more(program)
                self.expect_pass(program)
                self.expect_empty(30)

    def test_what_is_refused_is_refused_before_it_stands_still(self):
        """Another kind of device: its program is never held for it."""
        here, _ = self.serve()
        other = self.enterContext(server.Server(config=json.dumps({"moves_from": ["any"]}),
                                                software_memory=1 << 30))
        program = self.start_objects(here)
        with Step(here, "held") as stop:
            move = self.begin(here, self.session(here)["id"], other.address)
            self.assertFalse(stop.reached(move), self.logs())
        self.assertIn("it has another amount of memory", move.communicate()[1])
        self.make_more(program)
        self.expect_pass(program)


if __name__ == "__main__":
    unittest.main()
