"""A session with a time limit is ended when it is over, with a sentence on both sides."""
import contextlib
import re
import subprocess
import tempfile
import time
import unittest

import server


class TimeLimitTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(server.Server(software_devices=1))

    def copies(self, limit):
        return self.server.cli("run", "--time-limit", limit, "--server", self.server.address, "--",
                               str(self.server.program("keep_copying.static")))

    def test_the_session_ends_with_a_sentence_on_both_sides(self):
        begun = time.monotonic()
        result = self.copies("2s")
        self.assertEqual((3, "READY\ncudaErrorLaunchFailure\n"), (result.code, result.out), result)
        self.assertGreaterEqual(time.monotonic() - begun, 2)
        sentence = "its time limit of 2 s is over"
        self.assertIn("the session has ended: " + sentence, result.err)
        server.wait_for(lambda: sentence in self.server.log_tail(), 5, "the server's sentence")

    def test_a_session_that_moves_takes_the_rest_along(self):
        """And one that is suspended: its limit stands still until it is restored."""
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="longwire-kept-"))
            longwire = stack.enter_context(server.Server(
                software_devices=2, config=f"checkpoint_dir: {folder}/sessions\n"))
            begun = time.monotonic()
            program = subprocess.Popen(
                [longwire.dist / "bin" / "longwire", "run", "--time-limit", "9s", "--server",
                 longwire.address, "--", longwire.program("counted_training.static"), "stdin"],
                env=longwire.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True)
            self.assertEqual("READY", server.next_line(program).strip(), longwire.log_tail())

            def admin(*words):
                done = longwire.cli("admin", *map(str, words))
                self.assertEqual(0, done.code, (done, longwire.log_tail()))

            def session():
                (found,) = longwire.status()["sessions"]
                return found
            time.sleep(2)
            here = session()["seats"][0].get("device", 0)
            admin("migrate", session()["id"], 1 - here)
            time.sleep(2)
            admin("checkpoint", session()["id"], "one")
            suspended = time.monotonic()
            time.sleep(6)
            admin("restore", "one")
            away = time.monotonic() - suspended
            self.assertNotEqual([], longwire.status()["sessions"], longwire.log_tail())
            self.assertEqual(3, program.wait(60))  # its standard input stays open
            out, err = program.communicate()
            left = re.search(r"its time limit is over; when it moved, (\d) s of it were left", err)
            self.assertIsNotNone(left, (out, err))
            self.assertIn(int(left[1]), range(1, 6), err)
            self.assertGreaterEqual(time.monotonic() - begun, 9 + away - 1)

    def test_a_program_that_ends_before_its_limit_hears_nothing(self):
        result = self.server.cli("run", "--time-limit", "1h", "--server", self.server.address,
                                 "--", str(self.server.program("vector_add.static")))
        self.assertEqual(0, result.code, result)
        self.assertNotIn("time limit", result.err)

    def test_what_is_no_duration_is_refused(self):
        result = self.copies("soon")
        self.assertEqual(2, result.code)
        self.assertIn("--time-limit expects a duration", result.err)


if __name__ == "__main__":
    unittest.main()
