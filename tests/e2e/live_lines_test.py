"""Over the network, with LONGWIRE_LIVE_WORDS=independent: rows of words, each with a flag of its
own, that running kernels and their program exchange."""
import re
import time
import unittest

import programs
import server

INDEPENDENT = {"LONGWIRE_LIVE_WORDS": "independent"}
SECONDS = "150"


class LiveLinesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def lines(self, *arguments, **options):
        return self.longwire.run("line_ring.static", *arguments, **{"timeout": 300, **options})

    def expect_pass(self, name, result):
        self.assertIsNone(programs.what_is_wrong(name, result), (result, self.longwire.log_tail()))

    def test_a_thousand_messages_each_way_within_one_launch(self):
        self.expect_pass("line_ring", self.lines(SECONDS, "1000", **INDEPENDENT))

    def test_on_the_servers_own_host_without_live_memory(self):
        result = self.lines(SECONDS, "100", server=f"unix:{self.longwire.door}", **INDEPENDENT,
                            LONGWIRE_DISABLE="live-pinned")
        self.expect_pass("line_ring", result)

    def test_without_the_setting_they_are_messages(self):
        self.expect_pass("line_ring", self.lines(SECONDS, "10"))

    def test_without_either_they_stand_still_and_are_told_so(self):
        result = self.lines("9", "10", LONGWIRE_DISABLE="whole-states")
        self.assertEqual(2, result.code, result)
        self.assertRegex(result.out, r"STANDS STILL at [\w ]+ \d+\n")
        self.assertIn("more than a word to pinned memory", result.err)
        self.assertIn("LONGWIRE_LIVE_WORDS", result.err)

    def test_a_look_is_one_message_for_all_words(self):
        result = self.lines(SECONDS, "16", **INDEPENDENT, LONGWIRE_TRACE="calls")
        self.assertEqual(0, result.code, result.out)
        pushes = len(re.findall(r"\blwMirrorPush\(", result.err))
        # 16 messages of 20,470 words at least, and no more than a few pushes for each.
        self.assertLess(pushes, 20 * 16, "pushes")
        self.assertGreater(pushes, 2)

    def test_words_that_are_exchanged_one_at_a_time_are_as_well_so(self):
        for what in ("flags", "counters"):
            self.expect_pass("live_words",
                             self.longwire.run("live_words.static", what, "60", timeout=150,
                                               **INDEPENDENT))

    def test_a_word_that_both_change_is_an_error(self):
        result = self.longwire.run("live_words.static", "conflict", "60", timeout=150,
                                   **INDEPENDENT)
        self.assertEqual((0, "PASS live_words"), (result.code, result.out.splitlines()[-1]), result)
        self.assertRegex(result.err, r"\Alongwire: .*both changed the byte at 0x[0-9a-f]+ of "
                                     r"pinned memory")

    def test_a_border_keeps_words_whole(self):
        result = self.longwire.run("line_ring.static", SECONDS, "1000", "borders", timeout=300,
                                   **INDEPENDENT)
        self.expect_pass("line_ring", result)

    def test_much_more_memory_that_kernels_reach(self):
        result = self.lines(SECONDS, "200", "beside", **INDEPENDENT)
        self.expect_pass("line_ring", result)

    def test_another_value_is_named(self):
        result = self.longwire.run("vector_add.static", LONGWIRE_LIVE_WORDS="all")
        self.assertEqual(0, result.code)
        self.assertEqual("longwire: LONGWIRE_LIVE_WORDS=all is not ordered or independent; ordered "
                         "is used instead\n", result.err)

    def test_a_program_that_is_killed_leaves_nothing(self):
        program = self.longwire.start("line_ring.static", SECONDS, "1000", **INDEPENDENT)
        time.sleep(1)
        program.kill()
        program.communicate()
        server.wait_for(self.longwire.is_unused, 20, "the session's end")


if __name__ == "__main__":
    unittest.main()
