"""A session with a time limit is ended when it is over, with a sentence on both sides."""
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
