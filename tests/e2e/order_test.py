#!/usr/bin/env python3
"""Random programs over memory of host and device, held against a model: over the network and
through the local socket.

    order_test.py          the same programs each time, some seconds
    order_test.py --long   other ones each time; what it prints repeats the one that failed
"""
import sys
import time
import unittest

import programs
import server

LONG = "--long" in sys.argv
# Where copies take other ways than shorter ones: inline, in the log, by lanes.
SIZES = ((120_000, 40), (400_000, 40), (3_000_000, 6))


class OrderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def play(self, seed, count, size, **environment):
        doors = {"network": self.longwire.address, "door": f"unix:{self.longwire.door}"}
        for name, door in doors.items():
            with self.subTest(door=name, seed=seed, count=count, bytes=size, **environment):
                result = self.longwire.run("host_order.static", str(seed), str(count), str(size),
                                           server=door, timeout=300, **environment)
                self.assertIsNone(programs.what_is_wrong("host_order", result),
                                  self.longwire.log_tail())

    def test_random_programs(self):
        for size, count in SIZES:
            self.play(1, count, size)

    def test_without_optimisations(self):
        off = "early-copies,pulls-with-waits,late-comparisons,shared-pinned,striped-transfers"
        self.play(1000, 10, 400_000, LONGWIRE_DISABLE=off)

    @unittest.skipUnless(LONG, "takes minutes")
    def test_many_programs(self):
        seed = int(time.time()) % 1_000_000 * 1000
        for size, count in SIZES:
            for part in range(10):
                self.play(seed + part * count, count, size)


if __name__ == "__main__":
    if LONG:
        sys.argv.remove("--long")
    unittest.main()
