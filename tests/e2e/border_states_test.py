"""Over the network: whoever looks on at a border of work, a thread of the program or a kernel that
runs, sees no flag before its message (tests/apps/border_litmus)."""
import re
import sys
import unittest

import programs
import server

LONG = "--long" in sys.argv
TIMES = 10 if LONG else 1
# What is exchanged, rounds, bytes of a message.
WHOLE = (("down", 1000, 64), ("down", 300, 64 << 10), ("down", 100, 1 << 20), ("up", 100, 4096),
         ("up", 30, 1 << 20), ("both", 100, 16), ("both", 60, 256 << 10), ("load", 60, 64 << 10))
TORN = {"LONGWIRE_DISABLE": "border_states"}
# Without live memory, on the server's host.
MIRRORED = {"LONGWIRE_DISABLE": "live-pinned"}
PARTS = re.compile(r"^(\d+) messages were seen in part$", re.MULTILINE)


class BorderStatesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def run_litmus(self, what, rounds, size, **options):
        return self.longwire.run("border_litmus.static", what, str(rounds), str(size), "100",
                                 **{"timeout": 200, **options})

    def test_no_flag_comes_before_its_message(self):
        for what, rounds, size in WHOLE:
            with self.subTest(what=what, bytes=size):
                result = self.run_litmus(what, TIMES * rounds, size)
                self.assertIsNone(programs.what_is_wrong("border_litmus", result),
                                  self.longwire.log_tail())

    def test_nor_on_the_servers_host_without_live_memory(self):
        for what, rounds, size in WHOLE[1:7:2]:
            with self.subTest(what=what, bytes=size):
                result = self.run_litmus(what, TIMES * rounds, size,
                                         server=f"unix:{self.longwire.door}", **MIRRORED)
                self.assertIsNone(programs.what_is_wrong("border_litmus", result),
                                  self.longwire.log_tail())

    def test_parts_are_noticed(self):
        for what, rounds, size in (("down", 100, 1 << 20), ("up", 30, 256 << 10)):
            with self.subTest(what=what):
                result = self.run_litmus(what, rounds, size, **TORN)
                self.assertEqual(3, result.code, result)
                self.assertGreater(int(PARTS.search(result.out)[1]), 0)


if __name__ == "__main__":
    if LONG:
        sys.argv.remove("--long")
    unittest.main()
