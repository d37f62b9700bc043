"""Over the network: messages of many words behind flags, between kernels and their program."""
import re
import sys
import unittest

import programs
import server

LONG = "--long" in sys.argv
ROUNDS = "2000" if LONG else "600"
OFF = {"LONGWIRE_DISABLE": "whole-states"}
TORN = {"LONGWIRE_DISABLE": "held_pages"}
BESIDE = "8"  # MiB that kernels reach as well: more than is copied
# Without live memory; and then without memory that the worker has, too.
MIRRORED = ({"LONGWIRE_DISABLE": "live-pinned"}, {"LONGWIRE_DISABLE": "live-pinned,shared-pinned"})
STANDS_STILL = re.compile(r"STANDS STILL at [\w ]+ \d+\n")
FORBIDDEN = re.compile(r"^(to the \w+), \d+ bytes: (\d+) rounds, (\d+) forbidden$", re.MULTILINE)


class LiveStatesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def expect_pass(self, name, *arguments, **options):
        result = self.longwire.run(f"{name}.static", *arguments, **{"timeout": 300, **options})
        self.assertIsNone(programs.what_is_wrong(name, result), self.longwire.log_tail())
        return result

    def test_messages_are_answered_in_all_kinds_of_memory(self):
        for memory in ("allocated", "registered", "managed"):
            with self.subTest(memory):
                self.expect_pass("mailbox", "40", "120", "-", "3", memory)

    def test_messages_are_answered_on_the_servers_host_too(self):
        for environment in MIRRORED:
            with self.subTest(**environment):
                self.expect_pass("mailbox", "40", "120", server=f"unix:{self.longwire.door}",
                                 **environment)

    def test_no_flag_comes_before_its_message(self):
        result = self.expect_pass("live_litmus", ROUNDS, "messages", "120", "3")
        rows = FORBIDDEN.findall(result.out)
        self.assertEqual(10, len(rows), result)

    def test_nor_beside_much_memory(self):
        result = self.expect_pass("live_litmus", ROUNDS, "messages", "120", "2", BESIDE)
        self.assertEqual(10, len(FORBIDDEN.findall(result.out)), result)

    def test_channels_pass_chunks_through_many_megabytes(self):
        self.expect_pass("channels", "16", "10", str(128 << 10), "120")
        self.expect_pass("channels", "16", "9", str(512 << 10), "120", "down")

    def test_without_states_channels_stand_still(self):
        result = self.longwire.run("channels.static", "2", "9", str(128 << 10), "9", timeout=60,
                                   **OFF)
        self.assertEqual(2, result.code, result)
        self.assertRegex(result.out, STANDS_STILL)

    def test_chunks_in_part_are_noticed(self):
        result = self.longwire.run("channels.static", "16", "10", str(128 << 10), "120",
                                   timeout=300, **TORN)
        self.assertEqual(3, result.code, result)

    def forbidden(self, result):
        self.assertEqual(3, result.code, result)
        seen = {"to the device": 0, "to the program": 0}
        for where, _, wrong in FORBIDDEN.findall(result.out):
            seen[where] += int(wrong)
        return seen

    def test_another_order_is_noticed(self):
        for beside in ((), (BESIDE,)):
            with self.subTest(beside=beside):
                result = self.longwire.run("live_litmus.static", "2000", "reordered", "120", "3",
                                           *beside, timeout=300)
                seen = self.forbidden(result)
                self.assertTrue(all(seen.values()), result)

    def test_states_in_part_are_noticed(self):
        result = self.longwire.run("live_litmus.static", "2000", "messages", "120", "3",
                                   timeout=300, **TORN)
        self.assertGreater(sum(self.forbidden(result).values()), 0, result)

    def test_without_states_messages_stand_still(self):
        result = self.longwire.run("mailbox.static", "1000", "9", timeout=60, **OFF)
        self.assertEqual(2, result.code, result)
        self.assertRegex(result.out, STANDS_STILL)
        # Which is said once, with the remedy.
        self.assertRegex(result.err, r"\Alongwire: .* 5 s.*unix:.*host-memory\.md.*\n\Z")


if __name__ == "__main__":
    if LONG:
        sys.argv.remove("--long")
    unittest.main()
