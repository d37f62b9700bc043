"""Programs that were moved to another server, which they do not name, and suspend themselves
there."""
import json
import os
import pathlib
import signal
import tempfile
import unittest

import own_checkpoint_test
import server
from own_checkpoint_test import CHECKPOINTED, LOCKED, NOT_SUPPORTED, RUNNING, SUCCESS
from two_servers import TwoServers


class MovingOwnCheckpointTest(TwoServers):
    def serve(self, **here):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="longwire-kept-"))
        self.both, self.kept = [], []
        for name, more in (("here", here), ("there", {})):
            self.kept.append(pathlib.Path(folder) / name)
            config = {"moves_from": ["any"], "resume_grace": "20s", "checkpoint_own_sessions": 2,
                      "checkpoint_dir": str(self.kept[-1])}
            self.both.append(self.enterContext(server.Server(
                config=json.dumps({**config, **more}), software_devices=2)))
        return self.both

    def files(self):
        return [sum(one.name != ".suspended" for one in folder.iterdir()) if folder.exists() else 0
                for folder in self.kept]

    def moves(self, here, there):
        moved = self.migrate(here, self.session(here)["id"], there.address)
        self.assertEqual(0, moved.code, (moved, self.logs()))

    def suspends(self, program, files):
        program.does("lock", SUCCESS, LOCKED)
        program.does("checkpoint", SUCCESS, CHECKPOINTED)
        self.assertEqual(files, self.files())
        self.assertEqual([], [one for longwire in self.both
                              for one in longwire.status()["sessions"]])
        program.does("restore", SUCCESS, LOCKED)
        self.assertEqual([0, 0], self.files())
        program.does("unlock", SUCCESS, RUNNING)
        program.does("count", SUCCESS, RUNNING)
        program.does("join", SUCCESS, RUNNING)

    def test_there_and_back(self):
        here, there = self.serve()
        program = own_checkpoint_test.Program(self, here)
        self.moves(here, there)
        self.suspends(program, [0, 1])
        self.suspends(program, [0, 1])  # it has another number there now
        self.moves(there, here)
        self.suspends(program, [1, 0])
        program.ends()
        self.expect_empty()

    def test_by_another_link(self):
        here, there = self.serve()
        program = own_checkpoint_test.Program(self, here)
        self.moves(here, there)
        program.does("count", SUCCESS, RUNNING)
        program.does("join", SUCCESS, RUNNING)
        for link in here.processes()["longwire-link"]:
            os.kill(link, signal.SIGKILL)
        program.does("count", SUCCESS, RUNNING)
        program.does("join", SUCCESS, RUNNING)
        self.suspends(program, [0, 1])
        program.ends()
        self.expect_empty()

    def test_the_server_where_it_is_says_whether_it_may(self):
        here, there = self.serve(checkpoint_own_sessions=0)
        program = own_checkpoint_test.Program(self, there)
        self.moves(there, here)
        program.does("lock", SUCCESS, LOCKED)
        program.does("checkpoint", NOT_SUPPORTED, LOCKED)
        program.does("unlock", SUCCESS, RUNNING)
        self.assertIn("this server suspends no sessions for their programs", program.ends())
        self.expect_empty()


if __name__ == "__main__":
    unittest.main()
