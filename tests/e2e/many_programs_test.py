"""One ordinary user who starts many short programs: at once, as test runners do, and in loops
beside each other. Each gets its session: those beyond the rate wait in turn."""
import concurrent.futures
import unittest

import programs
import server

AT_ONCE = 32
LOOPS, PROGRAMS = 6, 8


class ManyProgramsTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(server.Server())

    def expect_good(self, results):
        wrong = [text for result in results
                 if (text := programs.what_is_wrong("vector_add", result))]
        self.assertEqual([], wrong, self.longwire.log_tail())
        figures = self.longwire.status()["admission"]
        refused = {name: count for name, count in figures.items()
                   if name.startswith("refused_") and count}
        self.assertEqual({}, refused)

    def start(self, *_):
        return self.longwire.run("vector_add.static")

    def test_at_once_and_in_loops(self):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            self.expect_good(list(pool.map(self.start, range(AT_ONCE))))
        with concurrent.futures.ThreadPoolExecutor(LOOPS) as pool:
            self.expect_good(list(pool.map(self.start, range(LOOPS * PROGRAMS))))


if __name__ == "__main__":
    unittest.main()
