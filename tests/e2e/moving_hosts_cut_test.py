"""Servers and a program on machines of their own; the cable between the servers is cut at steps of
a move. A move ends in time whatever happens, one server has the session then, and the program goes
on, or has an error where the session was lost. --long: at every step, for longer and shorter than
the other server waits."""
import json
import sys
import time
import unittest

import namespaces
import pool_network
import server
from two_servers import HERE, THERE, Step, TwoServers

LONG = "--long" in sys.argv
CONFIG = {"insecure_listen_anywhere": True, "resume_grace": "20s", "moves_from": ["any"]}
LONGEST = 75  # seconds that a move may take to end, whatever is cut
AT = HERE + THERE if LONG else ("noted", "there-begun")


class MovingHostsCutTest(TwoServers):
    def setUp(self):
        self.network = self.enterContext(namespaces.Network(("a", "b")))
        self.both = [self.enterContext(pool_network.Host(self.network, name, 0,
                                                         config=json.dumps(CONFIG)))
                     for name in ("a", "b")]

    def cut(self):
        self.network.cut(["a"], "b")
        self.network.cut(["b"], "a")

    def mend(self):
        self.network.mend(["a"], "b")
        self.network.mend(["b"], "a")

    def move_and_cut(self, step, seconds):
        """Cut at the step, for so long. Returns the exit codes of the move and of the program."""
        here, there = self.both
        program = self.start(here)
        with Step(there if step in THERE else here, step) as stop:
            move = self.begin(here, self.session(here)["id"], there.address)
            self.assertTrue(stop.reached(move), (step, self.logs()))
            self.cut()
        began = time.monotonic()
        time.sleep(seconds)
        if seconds < LONGEST:
            self.mend()
        try:
            move.communicate(timeout=LONGEST)
        finally:
            if seconds >= LONGEST:
                self.mend()
        took = time.monotonic() - began
        self.assertLess(took, max(LONGEST, seconds + 5), step)
        server.wait_for(lambda: program.poll() is not None or
                        sum(len(one.status()["sessions"]) for one in self.both) == 1,
                        60, f"one owner after {step}: {self.logs()}")
        if program.poll() is None:
            self.expect_steps(program, self.owner())
        out, err = program.communicate(timeout=120)
        self.assertIn(program.returncode, (0, 3), (step, out, err, self.logs()))
        if program.returncode == 0:
            self.assertIn("PASS counted_training", out)
        self.expect_empty(60)
        print(f"cut at {step} for {seconds} s: the move gave {move.returncode} after {took:.1f} s, "
              f"the program {program.returncode}", file=sys.stderr)
        return move.returncode, program.returncode

    def test_a_short_cut(self):
        """Nothing is lost."""
        for step in AT:
            with self.subTest(step):
                self.assertEqual(0, self.move_and_cut(step, 5)[1])

    def test_a_long_cut(self):
        """Longer than the other server waits: lost is what was prepared there and had gone."""
        for step in (HERE + THERE if LONG else ("there-begun",)):
            with self.subTest(step):
                code = self.move_and_cut(step, 40)[1]
                if step not in ("prepared", "noted", "ended", "there-prepared"):
                    self.assertEqual(0, code)

    def test_the_other_server_stands_still(self):
        """Its daemon is stopped, and answers nothing."""
        here, there = self.both
        program = self.start(here)
        there.children["longwired"].send_signal(server.signal.SIGSTOP)
        began = time.monotonic()
        refused = self.migrate(here, self.session(here)["id"], there.address)
        there.children["longwired"].send_signal(server.signal.SIGCONT)
        self.assertEqual(1, refused.code, refused)
        self.assertLess(time.monotonic() - began, LONGEST)
        self.expect_steps(program, here)
        self.expect_right(program)

    def test_the_program_does_not_reach_the_other_server(self):
        """It waits for resume_grace, and then has an error with the other server's address; with
        a way there in time it goes on."""
        here, there = self.both
        for comes_back in ((True, False) if LONG else (True,)):
            program = self.start(here)
            self.network.cut([namespaces.CLIENT], "b")
            moved = self.migrate(here, self.session(here)["id"], there.address)
            self.assertEqual(0, moved.code, (moved, self.logs()))
            time.sleep(3)
            if comes_back:
                self.network.mend([namespaces.CLIENT], "b")
                self.expect_right(program)
            else:
                out, err = program.communicate(timeout=150)
                self.network.mend([namespaces.CLIENT], "b")
                self.assertEqual(3, program.returncode, (out, err))
                self.assertIn(f"has moved to {there.address}", err)


if __name__ == "__main__":
    if LONG:
        sys.argv.remove("--long")
    unittest.main()
