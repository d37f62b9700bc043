"""Copies of middle sizes: the same bytes in the same order with and without what makes them faster,
also where connections break, and that it does something."""
import unittest

import programs
import server
from proxy import Proxy

MIB = 1 << 20
SWITCHES = ("batch-rates", "joined-credits", "joined-ends", "log-beside-lanes", "piece-by-piece")


class Copies(unittest.TestCase):
    def expect_pass(self, result, longwire):
        self.assertIsNone(programs.what_is_wrong("mixed_copies", result), longwire.log_tail())


class SwitchesTest(Copies):
    def run_without(self, names):
        off = {"LONGWIRE_DISABLE": names}
        with server.Server(variables=off) as longwire:
            for seed in (1, 2):
                self.expect_pass(longwire.run("mixed_copies.static", str(seed), "150", timeout=90,
                                              LONGWIRE_TRANSFER_STREAMS=3, **off), longwire)

    def test_with_all(self):
        self.run_without("")

    def test_without_each(self):
        for name in SWITCHES:
            with self.subTest(name):
                self.run_without(name)

    def test_without_any(self):
        self.run_without(",".join(SWITCHES))

    def test_one_end_without(self):
        with server.Server() as longwire:
            self.expect_pass(longwire.run("mixed_copies.static", "3", "150", timeout=90,
                                          LONGWIRE_TRANSFER_STREAMS=3,
                                          LONGWIRE_DISABLE="log-beside-lanes,piece-by-piece"),
                             longwire)


class WaysTest(Copies):
    @classmethod
    def setUpClass(cls):
        # A proxy that is gone for good may leave a session behind, which the next test waits for.
        cls.longwire = cls.enterClassContext(server.Server(config="resume_grace: 1s\n"))

    def setUp(self):
        self.proxy = Proxy(self.longwire.port)
        self.addCleanup(self.proxy.close)

    def run_copies(self, *words, **more):
        self.expect_pass(self.longwire.run("mixed_copies.static", *words, timeout=90,
                                           server=self.proxy.address, LONGWIRE_TRANSFER_STREAMS=2,
                                           LONGWIRE_COMPRESSION="none", **more), self.longwire)

    def test_connections_that_break_lose_and_repeat_nothing(self):
        with self.proxy.cut_again_and_again() as cuts:
            self.run_copies("4", "200")
        self.assertGreater(max(cuts), 2, cuts)

    def test_copies_that_the_log_can_take_need_no_lanes(self):
        one_up = ("2", "1", str(MIB))
        self.run_copies(*one_up)
        self.assertEqual(1, self.proxy.connections)
        self.run_copies(*one_up, LONGWIRE_DISABLE="log-beside-lanes")
        self.assertGreater(self.proxy.connections, 2)

    def test_larger_ones_take_both(self):
        self.run_copies("6", "12", str(6 * MIB))
        log, *lanes = self.proxy.carried[:3]
        self.assertGreater(log, 6 * MIB)
        self.assertGreater(min(lanes), MIB)


if __name__ == "__main__":
    unittest.main()
