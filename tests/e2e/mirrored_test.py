"""Memory that both sides touch: with its optimisation off, and what programs without it pay."""
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

    def test_without_turns(self):
        for name in ("managed_memory", "managed_streams", "managed_files"):
            with self.subTest(name):
                self.expect_pass(name, LONGWIRE_DISABLE="managed-turns")

    def test_through_the_door(self):
        for name in ("managed_memory", "mapped_memory", "mapped_flags"):
            with self.subTest(name):
                self.expect_pass(name, server=f"unix:{self.longwire.door}")

    def test_others_pay_nothing(self):
        for name, mirrors in (("pinned_order", False), ("mapped_memory", True)):
            result = self.longwire.run(f"{name}.static", LONGWIRE_TRACE="calls")
            self.assertEqual(0, result.code, result.err)
            self.assertEqual(mirrors, "lwMirrorAdd" in result.err, name)
            self.assertEqual(mirrors, "lwMirrorPull" in result.err, name)


if __name__ == "__main__":
    unittest.main()
