"""A buffer that grows takes its memory along: no byte is copied where nobody can tell, and every
byte where somebody could."""
import pathlib
import re
import sys
import unittest

import server

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import record_traces  # noqa: E402

MIB = 1 << 20
OLD = 64 * MIB
# Ways of tests/apps/grow_buffer.cu: copies made by mapping, and their bytes.
MAPPED = {"plain": (1, OLD), "kind": (1, OLD), "queries": (1, OLD), "unfinished": (1, OLD),
          "growing": (4, (64 + 80 + 96 + 112) * MIB), "thread": (1, OLD), "free_async": (1, OLD),
          "pooled": (1, OLD), "cleared": (1, OLD), "odd": (1, OLD + 12345)}
COPIED = ["odd_cleared", "launch", "memset", "copy", "host_function", "event", "partial", "offset",
          "exported", "small", "same_size", "beside", "elsewhere", "captured", "graph", "new_freed"]


class GrowthTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server(warm_workers=2))

    def grow(self, way, variant="static", **environment):
        """(copies made by mapping, their bytes, copies queued); the contents are right."""
        result = self.longwire.run(f"grow_buffer.{variant}", way, timeout=60,
                                   LONGWIRE_TRACE="calls,summary", **environment)
        self.assertEqual("PASS grow_buffer\n", result.out, result.err[-500:])
        mapped = re.search(r"(\d+) copies of (\d+) bytes made by mapping", result.err)
        copied = re.findall(r"queued in stream \w+: lwCopyDevice\(", result.err)
        return int(mapped[1]), int(mapped[2]), len(copied)

    def test_what_nobody_can_tell_is_mapped(self):
        for way, (count, size) in MAPPED.items():
            for variant in ("static", "per-thread"):
                with self.subTest(way, variant=variant):
                    self.assertEqual((count, size, 0), self.grow(way, variant))

    def test_everything_else_is_copied(self):
        for way in COPIED:
            with self.subTest(way):
                self.assertEqual((0, 0, 1), self.grow(way))

    def test_two_freed_blocks_become_a_larger_one(self):
        result = self.longwire.run("grow_buffer.static", "joined", timeout=60,
                                   LONGWIRE_TRACE="calls")
        self.assertEqual("PASS grow_buffer\n", result.out, result.err[-500:])
        self.assertEqual(2, len(re.findall(r"lwLease\(", result.err)))

    def test_a_reservation_grows_where_it_is(self):
        for variant in ("static", "per-thread"):
            result = self.longwire.run(f"grow_reservation.{variant}", "in_place", timeout=60)
            self.assertEqual("PASS grow_reservation\n", result.out, result.err[-500:])

    def test_the_server_counts_them(self):
        def device():
            return self.longwire.status()["devices"][0]
        server.wait_for(self.longwire.is_unused, 20, "the end of earlier sessions")
        before = device()
        self.grow("growing")
        server.wait_for(lambda: device()["remaps"] >= before.get("remaps", 0) + 4, 20,
                        "four remappings")
        count, size = MAPPED["growing"]
        after = device()
        self.assertEqual(count, after["remaps"] - before.get("remaps", 0))
        self.assertEqual(size, after["remapped"] - before.get("remapped", 0))
        shown = self.longwire.cli("memory", "--server", self.longwire.address)
        self.assertIn(f"{after['remaps']} copies of ", shown.out)

    def test_it_can_be_recorded(self):
        result = self.longwire.run("grow_buffer.static", "growing", timeout=60,
                                   LONGWIRE_TRACE="allocations")
        text, most, faults = record_traces.converted(result.err.splitlines(), "of ours")
        self.assertEqual([], faults)
        self.assertLess((112 + 128) * MIB, most)
        sizes = re.findall(r"^take \w+ 1 (\d+)m$", text, re.MULTILINE)
        self.assertEqual(["64", "80", "96", "112", "128"], sizes, text)
        self.assertEqual(text.count("\ntake "), text.count("\ngive "))

    def test_the_switch(self):
        for way in ("plain", "growing", "free_async", "odd"):
            with self.subTest(way):
                count, _ = MAPPED[way]
                self.assertEqual((0, 0, count), self.grow(way, LONGWIRE_DISABLE="remap"))


if __name__ == "__main__":
    unittest.main()
