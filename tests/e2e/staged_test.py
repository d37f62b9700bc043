"""Large pageable copies on the server's own host: through slots that the worker has, too."""
import os
import re
import unittest

import programs
import server

UP = re.compile(r"(\d+) bytes up")
STAGED = re.compile(r"(\d+) bytes staged")
MANY = 64 << 20  # the program copies more up
SLOT, SLOTS = 512 << 10, 64  # wire/limits.h
# What copies of pageable memory have to keep to does not depend on their way.
OTHERS = ["early_uploads.static", "pinned_order.static", "upload_weights.static",
          "copies_behind.static", "batch_copies.static", "block_each_other.static",
          "illegal_address.static", "fork_child.static", "graph_capture.static"]


class StagedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def moved(self, to=None, **environment):
        """Runs large_copies; the bytes that went up in rings, and in slots."""
        result = self.longwire.run("large_copies.static", timeout=120, LONGWIRE_TRACE="summary",
                                   server=to or f"unix:{self.longwire.door}", **environment)
        wrong = programs.what_is_wrong("large_copies", result._replace(err=""))
        self.assertIsNone(wrong, result.err + self.longwire.log_tail())
        return [int(found.search(result.err)[1]) for found in (UP, STAGED)]

    def test_large_copies_take_slots(self):
        _, staged = self.moved(LONGWIRE_COPY_THREADS=3)
        self.assertGreater(staged, SLOTS * SLOT)

    def test_slots_are_waited_for_while_they_come_back(self):
        """More threads fill them than the device empties. On a machine with other work some may
        stay away for so long that the rings are taken."""
        copies, bytes = 6, 128 << 20
        rate = self.longwire.build / "bench" / "copy_rate"
        staged = []
        while len(staged) < 3 and not any(most > copies * bytes * 3 // 4 for most in staged):
            result = server.run(
                self.longwire.command(rate, str(bytes >> 20), "indices", str(copies),
                                      server=f"unix:{self.longwire.door}"),
                self.longwire.environment(LONGWIRE_TRACE="summary", LONGWIRE_COPY_THREADS="8"))
            self.assertEqual(0, result.code, result.err)
            staged.append(int(STAGED.search(result.err)[1]))
        self.assertGreater(max(staged), copies * bytes * 3 // 4, staged)

    def test_pieces_as_large_as_a_slot_and_smaller(self):
        """How many go in slots is a matter of speed: while all are taken, the rings help out. More
        than they hold at once have been given back and taken again."""
        for bytes in (65536, 1 << 20):
            with self.subTest(bytes):
                _, staged = self.moved(LONGWIRE_TRANSFER_CHUNK=bytes)
                self.assertGreater(staged, SLOTS * min(bytes, SLOT))

    def test_the_off_switches(self):
        for name in ("staged-copies", "shared-pinned", "striped-transfers"):
            with self.subTest(name):
                up, staged = self.moved(LONGWIRE_DISABLE=name)
                self.assertEqual(0, staged)
                self.assertGreater(up, MANY)

    def test_over_the_network_there_are_none(self):
        self.assertEqual(0, self.moved(to=self.longwire.address)[1])

    def test_a_segment_without_room_for_slots(self):
        config = f"""tenants:
  - name: here
    identities: ["uid:{os.geteuid()}"]
    pinned_memory: 16MiB
"""
        with server.Server(config=config) as small:
            self.assertEqual(0, self.moved(f"unix:{small.door}")[1])

    def test_other_programs_do_not_notice(self):
        for name in OTHERS:
            for off in ("", "staged-copies"):
                with self.subTest(name, off=off):
                    result = self.longwire.run(name, server=f"unix:{self.longwire.door}",
                                               timeout=60, LONGWIRE_DISABLE=off)
                    self.assertIsNone(programs.what_is_wrong(name.split(".")[0], result),
                                      self.longwire.log_tail())


if __name__ == "__main__":
    unittest.main()
