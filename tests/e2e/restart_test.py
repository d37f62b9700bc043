"""Programs that begin when the server has just come back, on a host whose link still has
connections to the one before."""
import unittest

import programs
import server


class RestartTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(server.Server())
        # Leaves nine connections behind, more than times that a session is asked for.
        self.expect_pass("large_copies", LONGWIRE_TRANSFER_STREAMS=8)

    def expect_pass(self, name, **environment):
        result = self.longwire.run(f"{name}.static", **environment)
        self.assertIsNone(programs.what_is_wrong(name, result), self.longwire.log_tail())

    def test_after_a_crash(self):
        daemon = self.longwire.children.pop("longwired")
        daemon.kill()
        daemon.wait()
        self.longwire.start_daemon()
        self.expect_pass("vector_add")

    def test_after_a_stop(self):
        self.longwire.end_daemon()
        self.longwire.start_daemon()
        self.expect_pass("vector_add")


if __name__ == "__main__":
    unittest.main()
