"""Pinned memory on the server's own host: kernels reach it itself, also while they run."""
import os
import re
import sys
import unittest

import programs
import server

# Programs that wait for what the other side writes meanwhile, with their arguments.
LIVE = (("live_flags", ()), ("mailbox", ("1000", "100")),
        ("live_litmus", ("50000", "ordered", "60", "1")))
# Programs that use pinned memory in other ways: what they do must not depend on where it lies.
OTHERS = ("mapped_memory", "mapped_flags", "mapped_turns", "mapped_bursts", "exposed_beside",
          "pinned_order", "pinned_graphs", "host_functions", "pool_kinds")
STANDS_STILL = re.compile(r"STANDS STILL at [\w ]+ \d+\n")
OFF = {"LONGWIRE_DISABLE": "live-pinned"}
WORDS = {"LONGWIRE_DISABLE": "live-pinned,whole-states"}


class LiveTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server(software_devices=2))

    def run_here(self, name, *arguments, longwire=None, **options):
        longwire = longwire or self.longwire
        return longwire.run(f"{name}.static", *arguments, server=f"unix:{longwire.door}",
                            **{"timeout": 120, "LONGWIRE_DEVICES": "2", **options})

    def expect_pass(self, name, *arguments, **options):
        result = self.run_here(name, *arguments, **options)
        self.assertIsNone(programs.what_is_wrong(name, result), self.longwire.log_tail())
        return result

    def test_running_kernels_and_programs_see_each_other(self):
        for name, arguments in LIVE:
            with self.subTest(name):
                self.expect_pass(name, *arguments)

    def test_other_programs_do_not_notice(self):
        for name in OTHERS:
            for environment in ({}, OFF):
                with self.subTest(name, **environment):
                    self.expect_pass(name, **environment)

    def test_nothing_is_mirrored(self):
        def mirrors(**environment):
            result = self.run_here("mapped_memory", LONGWIRE_TRACE="calls", **environment)
            self.assertEqual(0, result.code, result.err)
            return result.err.count("lwMirrorAdd")
        self.assertGreater(mirrors(**OFF), mirrors())
        mailbox = self.run_here("mailbox", "20", LONGWIRE_TRACE="calls")
        self.assertEqual((0, 0), (mailbox.code, mailbox.err.count("lwMirror")), mailbox.err)

    def expect_still(self, result):
        """The program waits for what it never sees, and gives up."""
        self.assertEqual(2, result.code, result)
        self.assertRegex(result.out, STANDS_STILL)

    def test_words_alone_do_not_do(self):
        self.expect_still(self.run_here("mailbox", "1000", "2", **WORDS))

    def test_beyond_the_limit_memory_is_copied(self):
        config = f"""tenants:
  - name: here
    identities: ["uid:{os.geteuid()}"]
    pinned_memory: 2MiB
"""
        with server.Server(config=config) as longwire:
            self.expect_pass("mapped_memory", longwire=longwire, LONGWIRE_DEVICES="1")
            self.expect_pass("mailbox", "20", longwire=longwire, LONGWIRE_DEVICES="1")
            # Its boxes have no room there.
            self.expect_still(self.run_here("live_litmus", "1000", "ordered", "2",
                                            longwire=longwire, LONGWIRE_DEVICES="1",
                                            LONGWIRE_DISABLE="whole-states"))

    def test_another_order_is_noticed(self):
        result = self.run_here("live_litmus", "20000", "reordered", "60", "1")
        self.assertEqual(3, result.code, result)
        for direction in ("to the device", "to the program"):
            seen = re.findall(rf"{direction}, \d+ bytes: \d+ rounds, (\d+) forbidden", result.out)
            self.assertTrue(any(map(int, seen)), result.out)


class ManyRounds(unittest.TestCase):
    def test_ten_million_rounds(self):
        with server.Server() as longwire:
            # A minute for each size and direction; without it the large ones take hours.
            result = longwire.run("live_litmus.static", "10000000", "ordered", "600", "60",
                                  server=f"unix:{longwire.door}", timeout=1800)
            self.assertIsNone(programs.what_is_wrong("live_litmus", result), longwire.log_tail())
        rounds = int(re.search(r"^(\d+) rounds, 0 forbidden$", result.out, re.MULTILINE)[1])
        self.assertGreater(rounds, 10_000_000)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if "--long" in arguments:
        arguments[arguments.index("--long")] = "ManyRounds"
    unittest.main(argv=[sys.argv[0], *(arguments or ["LiveTest"])])
