"""As moving_sweep_test.py, with its arguments, moved from server to server: each test program says
what it says unmoved, or its session is refused with a reason and goes on where it is."""
import json
import random
import sys
import unittest

import moving_sweep_test
import server

CONFIG = json.dumps({"moves_from": ["any"], "resume_grace": "30s"})


class MovingHostsSweepTest(moving_sweep_test.MovingSweepTest):
    def setUp(self):
        self.random = random.Random(moving_sweep_test.SEED)
        print(f"LONGWIRE_SEED={moving_sweep_test.SEED}", file=sys.stderr)
        self.both = [self.enterContext(server.Server(config=CONFIG)) for _ in range(2)]
        self.longwire = self.both[0]

    def sessions(self):
        """Of both, each with where it is."""
        return [{**session, "at": number} for number, one in enumerate(self.both)
                for session in one.status()["sessions"]]

    def is_unused(self):
        return all(one.is_unused() for one in self.both)

    def move(self, session):
        here, there = self.both[session["at"]], self.both[1 - session["at"]]
        done = here.cli("admin", "migrate", str(session["id"]), there.address, timeout=120)
        return None if done.code == 0 else done.err


del moving_sweep_test.MovingSweepTest  # unittest would find it here, too

if __name__ == "__main__":
    sys.argv[1:] = []
    unittest.main()
