"""Memory that both sides touch: with its optimisation off, and what programs without it pay."""
import re
import unittest

import programs
import server


class MirroredTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def expect_pass(self, name, **options):
        result = self.longwire.run(f"{name}.static", **options)
        self.assertIsNone(programs.what_is_wrong(name, result), self.longwire.log_tail())

    def test_through_the_door(self):
        for name in ("managed_memory", "mapped_memory", "mapped_flags", "mapped_turns",
                     "mapped_bursts"):
            with self.subTest(name):
                self.expect_pass(name, server=f"unix:{self.longwire.door}")

    def waits(self, way, **environment):
        """Of a thread that takes 120 turns with its kernels."""
        result = self.longwire.run("mapped_turns.static", way, LONGWIRE_TRACE="summary",
                                   **environment)
        self.assertEqual(0, result.code, result)
        return int(re.search(r"(\d+) waits for progress", result.err)[1])

    def test_what_the_device_wrote_comes_with_the_end(self):
        for way in ("stream", "everything"):
            self.assertLess(self.waits(way), 140)
            self.assertGreater(self.waits(way, LONGWIRE_DISABLE="pulls-with-waits"), 180)

    def test_who_changes_what_the_other_one_changed_hears_of_it(self):
        for door in (self.longwire.address, f"unix:{self.longwire.door}"):
            result = self.longwire.run("managed_counts.static", server=door)
            self.assertEqual((0, "PASS managed_counts"), (result.code, result.out.splitlines()[-1]),
                             result)
            first = int(re.search(r"counting at (0x[0-9a-f]+)", result.out)[1], 16)
            told = [int(address, 16) for address in
                    re.findall(r"both changed the byte at (0x[0-9a-f]+)", result.err)]
            self.assertTrue(told and set(told) <= set(range(first, first + 4)), result)
            self.assertEqual(len(told), len(result.err.splitlines()), result.err)

    def test_copies_of_exposed_memory_end_with_their_calls(self):
        for door in (self.longwire.address, f"unix:{self.longwire.door}"):
            with self.subTest(door):
                result = self.longwire.run("pinned_order.static", "exposed", server=door)
                self.assertEqual((0, "PASS pinned_order\n"), result[:2], result)

    def test_without_that(self):
        self.expect_pass("mapped_turns", LONGWIRE_DISABLE="pulls-with-waits")

    def test_one_comparison_serves_many_launches(self):
        def passes(**environment):
            result = self.longwire.run("mapped_bursts.static", "alone", LONGWIRE_TRACE="calls",
                                       **environment)
            self.assertEqual(0, result.code, result)
            return result.err.count("lwEventPass(") + result.err.count("lwMirrorPush(")
        self.assertGreater(passes(), 5)
        late, early = passes(), passes(LONGWIRE_DISABLE="late-comparisons")
        self.assertLess(late, 0.9 * early)  # of 600 launches, each with something to send

    def test_each_launch_with_its_own_comparison(self):
        self.expect_pass("mapped_bursts", LONGWIRE_DISABLE="late-comparisons")

    def test_others_pay_nothing(self):
        for name, mirrors in (("pinned_order", False), ("mapped_memory", True)):
            result = self.longwire.run(f"{name}.static", LONGWIRE_TRACE="calls")
            self.assertEqual(0, result.code, result.err)
            self.assertEqual(mirrors, "lwMirrorAdd" in result.err, name)
            self.assertEqual(mirrors, "lwMirrorPull" in result.err, name)


if __name__ == "__main__":
    unittest.main()
