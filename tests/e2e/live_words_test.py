"""Over the network: words that a running kernel and its program exchange, while all that is more
than one word waits for the next border of work."""
import os
import pathlib
import re
import signal
import sys
import time
import unittest

import programs
import server

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import relays  # noqa: E402

OFF = {"LONGWIRE_DISABLE": "live-exchange"}
PLANTED = {"LONGWIRE_DISABLE": "one_word"}
SECONDS = "60"
STANDS_STILL = re.compile(r"STANDS STILL at [\w ]+ \d+\n")
FORBIDDEN = re.compile(r"^(to the \w+): \d+ changes, (\d+) forbidden$", re.MULTILINE)


class LiveWordsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def words(self, *arguments, longwire=None, **options):
        longwire = longwire or self.longwire
        return longwire.run("live_words.static", *arguments, **{"timeout": 150, **options})

    def expect_pass(self, *arguments, **options):
        result = self.words(*arguments, **options)
        self.assertIsNone(programs.what_is_wrong("live_words", result),
                          (result, self.longwire.log_tail()))
        return result

    def test_flags_and_counters(self):
        for what in ("flags", "counters"):
            with self.subTest(what):
                self.expect_pass(what, SECONDS)

    def test_over_a_longer_wire(self):
        with relays.RelayTo(self.longwire.build, self.longwire.port, rtt_ms=2) as wire:
            self.expect_pass("flags", SECONDS, "40", server=wire.address)
            self.expect_pass("ordered", SECONDS, server=wire.address)

    def test_without_the_exchange_a_kernel_waits(self):
        result = self.words("flags", "3", **OFF)
        self.assertEqual(2, result.code, result)
        self.assertRegex(result.out, STANDS_STILL)

    def test_no_word_comes_before_what_was_written_before_it(self):
        self.expect_pass("ordered", SECONDS)

    def expect_forbidden(self, where, result):
        self.assertEqual(3, result.code, result)
        self.assertGreater(int(dict(FORBIDDEN.findall(result.out))[where]), 0, result)

    def test_another_order_to_the_device_is_noticed(self):
        self.expect_forbidden("to the device", self.words("ordered", SECONDS, **PLANTED))

    def test_another_order_to_the_program_is_noticed(self):
        with server.Server(variables=PLANTED) as longwire:
            self.expect_forbidden("to the program",
                                  self.words("ordered", SECONDS, longwire=longwire))

    def test_what_was_copied_before_a_word_is_there_first(self):
        self.expect_pass("copies", SECONDS)

    def test_a_word_that_both_change_is_an_error(self):
        result = self.words("conflict", SECONDS)
        self.assertEqual((0, "PASS live_words"), (result.code, result.out.splitlines()[-1]), result)
        self.assertRegex(result.err, r"\Alongwire: .*both changed the byte at 0x[0-9a-f]+ of "
                                     r"pinned memory.*host-memory\.md\)\n\Z")

    def test_who_has_no_such_memory_is_not_looked_at(self):
        for name, looks in (("pinned_order", False), ("managed_streams", False),
                            ("live_words", True)):
            words = ("flags", SECONDS, "20") if looks else ()
            result = self.longwire.run(f"{name}.static", *words, LONGWIRE_TRACE="calls")
            self.assertEqual((0, looks), (result.code, "lwMirrorLook" in result.err), name)

    def latch(self, *arguments, **options):
        return self.longwire.run("latch_beside_much.static", *arguments, timeout=100, **options)

    def test_a_flag_is_sent_also_beside_much_memory(self):
        for kind in ("managed", "pinned"):
            with self.subTest(kind):
                result = self.latch("24", kind, SECONDS)
                self.assertIsNone(programs.what_is_wrong("latch_beside_much", result), result)
        result = self.latch("24", "managed", "4", **OFF)
        self.assertEqual(2, result.code, result)

    def test_a_flag_is_sent_wherever_it_lies(self):
        for kind, where in (("pinned", "argument"), ("managed", "stored"), ("managed", "managed"),
                            ("managed", "variable")):
            with self.subTest(where):
                result = self.latch("1", kind, SECONDS, where)
                self.assertIsNone(programs.what_is_wrong("latch_beside_much", result), result)

    def start(self):
        return self.longwire.start("live_words.static", "flags", SECONDS, "400")

    def test_a_link_that_ends_meanwhile_is_replaced(self):
        program = self.start()
        for _ in range(3):
            time.sleep(0.15)
            for pid in self.longwire.processes()["longwire-link"]:
                os.kill(pid, signal.SIGKILL)
        out, err = program.communicate(timeout=120)
        self.assertEqual((0, ""), (program.returncode, err), (out, self.longwire.log_tail()))
        self.assertIn("PASS live_words", out)

    def test_a_program_that_is_killed_leaves_nothing(self):
        program = self.start()
        time.sleep(0.2)
        program.kill()
        program.communicate()
        server.wait_for(self.longwire.is_unused, 20, "the session's end")


if __name__ == "__main__":
    unittest.main()
