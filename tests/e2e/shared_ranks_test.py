"""Registered memory that several processes map: each has a mirror of its own, and the memory itself
stands between them."""
import re
import unittest

import programs
import server

INDEPENDENT = {"LONGWIRE_LIVE_WORDS": "independent"}
STATES = re.compile(r"^states: \d+ changes, (\d+) forbidden$", re.MULTILINE)


class SharedRanksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server(software_devices=2))

    def ranks(self, *arguments, **options):
        return self.longwire.run("shared_ranks.static", *arguments,
                                 **{"timeout": 200, "LONGWIRE_DEVICES": 1, **options})

    def expect_pass(self, *arguments, **options):
        result = self.ranks(*arguments, **options)
        self.assertIsNone(programs.what_is_wrong("shared_ranks", result),
                          (result, self.longwire.log_tail()))
        return result

    def doors(self):
        return self.longwire.address, f"unix:{self.longwire.door}"

    def test_what_kernels_and_programs_leave_the_other_process_finds(self):
        for what in ("turns", "anonymous"):
            for door in self.doors():
                with self.subTest(what, door=door):
                    self.expect_pass(what, "60", server=door)

    def test_kernels_of_two_processes_answer_each_other(self):
        for door in self.doors():
            with self.subTest(door):
                self.expect_pass("words", "60", server=door)

    def test_a_program_and_kernels_of_two_processes_need_independent_words(self):
        self.expect_pass("three", "60", **INDEPENDENT)

    def test_lines_from_the_kernel_of_one_to_that_of_the_other(self):
        self.expect_pass("lines", "150", "100", **INDEPENDENT)

    def test_a_launch_sees_what_another_process_writes_in_its_order(self):
        self.assertEqual("0", STATES.search(self.expect_pass("states", "60").out)[1])

    def test_a_file_that_is_shortened_is_an_error_and_no_signal(self):
        for door in self.doors():
            with self.subTest(door):
                result = self.ranks("shortened", "60", server=door)
                self.assertEqual((0, "PASS shared_ranks\n"), result[:2], result)
                said = ["its file was shortened" in line for line in result.err.splitlines()]
                self.assertEqual([True, True], said, result.err)  # for each range, once

    def test_what_workers_load_is_copied(self):
        for door in self.doors():
            with self.subTest(door):
                self.expect_pass("loader", "60", server=door)

    def test_it_can_be_refused(self):
        result = self.longwire.run("shared_mapping.static", "refused", LONGWIRE_DEVICES=1,
                                   LONGWIRE_DISABLE="shared-registered")
        self.assertEqual((0, "PASS shared_mapping\n"), result[:2], result.err)
        self.assertIn("LONGWIRE_DISABLE has shared-registered", result.err)


if __name__ == "__main__":
    unittest.main()
