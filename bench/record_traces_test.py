"""Recordings of allocations become texts that can be repeated."""
import unittest

import record_traces

MIB = 1 << 20


def line(sign, bytes, place):
    return f"longwire: {sign} {bytes} bytes at {place:#x} on device 0: 1 bytes in 1 pieces"


class RecordTracesTest(unittest.TestCase):
    def text(self, lines, heading="of ours"):
        """Lines without comments, the most in use, and what is not as it should be."""
        text, most, faults = record_traces.converted(lines, heading)
        self.assertTrue(text.startswith(f"# {heading}\n"))
        return [line for line in text.splitlines() if line[0] != "#"], most, faults

    def test_the_last_body_is_taken_and_what_it_found(self):
        step = ["mark step", line("+", 1536, 0x20), line("-", 1536, 0x20), "a warning of others"]
        lines = [line("+", 4 * MIB, 0x10), line("+", 9, 0x18), line("-", 9, 0x18), "mark body",
                 line("+", 5, 0x90), line("-", 5, 0x90), "mark end 9.99", "mark body", *step,
                 "mark end 2.50", line("-", 4 * MIB, 0x10)]
        lines, most, faults = self.text(lines)
        self.assertEqual(["take stays 1 4m", "repeat DAY 2.50", "take t0 1 1536", "give t0", "end"],
                         lines)
        self.assertEqual((4 * MIB + 1536, []), (most, faults))

    def test_names_are_used_again_when_they_are_free(self):
        lines = [line("+", 1024, 0x10), line("+", 2048, 0x20), line("-", 1024, 0x10),
                 line("+", 3072, 0x10), line("-", 2048, 0x20), line("-", 3072, 0x10)]
        self.assertEqual(["repeat DAY 1.00", "take t0 1 1k", "take t1 1 2k", "give t0",
                          "take t0 1 3k", "give t1", "give t0", "end"], self.text(lines)[0])

    def test_a_buffer_that_grows_keeps_its_name(self):
        lines = [line("+", 64 * MIB, 0x10), "mark grow", line("+", 128 * MIB, 0x20),
                 line("-", 64 * MIB, 0x10), "mark grown", line("-", 128 * MIB, 0x20)]
        lines, most, faults = self.text(lines)
        self.assertEqual(["repeat DAY 1.00", "take t0 1 64m", "grow t0 128m", "give t0", "end"],
                         lines)
        self.assertEqual((192 * MIB, []), (most, faults))

    def test_a_growth_with_other_allocations_is_none(self):
        lines = [line("+", 64, 0x10), "mark grow", line("+", 128, 0x20), line("+", 9, 0x30),
                 line("-", 64, 0x10), "mark grown", line("-", 128, 0x20), line("-", 9, 0x30)]
        self.assertNotIn("grow", "".join(self.text(lines)[0]))

    def test_one_that_stays_takes_the_place_of_its_like(self):
        lines = [line("+", 700, 0x10), "mark body", line("-", 700, 0x10), line("+", 9, 0x20),
                 line("+", 700, 0x30), line("-", 9, 0x20), "mark end 1"]
        lines, _, faults = self.text(lines)
        self.assertEqual(["take b0 1 700", "repeat DAY 1.00", "give b0", "take t0 1 9",
                          "take b0 1 700", "give t0", "end"], lines)
        self.assertEqual([], faults)

    def test_a_body_that_ends_otherwise_is_told_and_made_to_fit(self):
        lines = [line("+", 700, 0x10), line("+", 64, 0x20), "mark body", line("-", 700, 0x10),
                 line("+", 5, 0x30), "mark grow", line("+", 80, 0x40), line("-", 64, 0x20),
                 "mark grown", "mark end 1"]
        lines, _, faults = self.text(lines)
        self.assertEqual(["give t0", "give b1", "take b0 1 700", "take b1 1 64", "end"],
                         lines[lines.index("grow b1 80") + 1:])
        self.assertEqual(["NOT THE SAME at the body's end as at its start: 2 buffers of 85 bytes "
                          "instead of 2 of 764; the last lines make it so"], faults)

    def test_what_cannot_be_is_refused(self):
        for lines in ([line("-", 5, 0x10)], ["mark body"], ["mark end 1", "mark body"]):
            with self.subTest(lines), self.assertRaises(ValueError):
                record_traces.converted(lines, "")


if __name__ == "__main__":
    unittest.main()
