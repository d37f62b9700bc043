"""Several programs at once on one server: all right, and nothing left of them afterwards."""
import concurrent.futures
import unittest

import programs
import server

EIGHT = ["vector_add.static", "matmul.shared", "histogram.per-thread", "streams_events.static",
         "graph_capture.static", "threads_launching.per-thread", "exactly_once.shared",
         "pinned_order.static"]


class TogetherTest(unittest.TestCase):
    def test_eight_programs_at_once(self):
        with server.Server(warm_workers=2) as longwire:
            before = longwire.status()["sessions"]
            self.assertEqual([], before)
            with concurrent.futures.ThreadPoolExecutor(len(EIGHT)) as pool:
                results = list(pool.map(lambda name: longwire.run(name, timeout=90), EIGHT))
            wrong = [f"{name}: {sentence}" for name, result in zip(EIGHT, results)
                     if (sentence := programs.what_is_wrong(name.split(".")[0], result))]
            self.assertEqual([], wrong, longwire.log_tail())
            server.wait_for(lambda: longwire.status()["sessions"] == [], 2, "the sessions' end")

    def test_the_same_program_many_times(self):
        with server.Server() as longwire:
            for _ in range(10):
                result = longwire.run("vector_add.static")
                self.assertIsNone(programs.what_is_wrong("vector_add", result), longwire.log_tail())
            server.wait_for(lambda: longwire.status()["sessions"] == [], 2, "the sessions' end")


if __name__ == "__main__":
    unittest.main()
