"""Pinned memory of programs on the server's own host: the worker has it, too."""
import os
import pathlib
import re
import signal
import unittest

import programs
import server

MOVED = re.compile(r"(\d+) bytes up, (\d+) bytes down")
# Programs that use pinned memory in many ways; what they print must not depend on where it lies.
OTHERS = ["pinned_graphs.static", "pinned_order.static", "mapped_memory.static",
          "mapped_flags.static", "large_copies.static", "batch_copies.static", "copy_2d.static",
          "host_functions.static", "graph_runtime_nodes.static", "fork_child.static",
          "streams_events.static", "driver_graph_copies.driver", "async_allocation.static"]


class PinnedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def moved(self, longwire=None, to=None, **environment):
        """Runs the program; the bytes that went up and down through rings, as its client counts."""
        longwire = longwire or self.longwire
        result = longwire.run("pinned_copies.static", server=to or f"unix:{longwire.door}",
                              timeout=60, LONGWIRE_TRACE="summary", **environment)
        wrong = programs.what_is_wrong("pinned_copies", result._replace(err=""))
        self.assertIsNone(wrong, result.err + longwire.log_tail())
        return tuple(map(int, MOVED.search(result.err).groups()))

    def test_no_byte_goes_another_way(self):
        up, down = self.moved()
        self.assertEqual(0, down)
        self.assertLess(up, 20_000)  # the program's kernels

    def test_the_off_switch(self):
        up, down = self.moved(LONGWIRE_DISABLE="shared-pinned")
        self.assertGreater(min(up, down), 10 << 20)

    def test_over_the_network_they_go_through_the_rings(self):
        up, down = self.moved(to=self.longwire.address)
        self.assertGreater(min(up, down), 10 << 20)

    def of_tenant(self, pinned_memory):
        config = f"""tenants:
  - name: here
    identities: ["uid:{os.geteuid()}"]
    pinned_memory: {pinned_memory}
"""
        return server.Server(config=config)

    def test_what_is_beyond_the_limit_goes_through_the_rings(self):
        with self.of_tenant("4MiB") as longwire:
            some = self.moved(longwire)
        with self.of_tenant("0") as longwire:
            everything = self.moved(longwire)
        self.assertGreater(min(some), 5 << 20)
        self.assertGreater(everything, some)

    def test_other_programs_do_not_notice(self):
        for name in OTHERS:
            with self.subTest(name):
                result = self.longwire.run(name, server=f"unix:{self.longwire.door}", timeout=60)
                self.assertIsNone(programs.what_is_wrong(name.split(".")[0], result),
                                  self.longwire.log_tail())

    def start_copying(self):
        process = self.longwire.start("keep_pinned.static", server=f"unix:{self.longwire.door}")
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def expect_nothing_left(self):
        """No session, and nobody who still has the segment mapped."""
        server.wait_for(lambda: not self.longwire.status()["sessions"], 10, "the session's end")
        server.wait_for(lambda: not self.holders(), 10, "the segment's end")

    def holders(self):
        pids = [pid for found in self.longwire.processes().values() for pid in found]
        return [pid for pid in pids if "longwire-pinned" in self.maps(pid)]

    @staticmethod
    def maps(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            return ""

    def test_a_program_killed_in_the_middle_of_a_copy(self):
        process = self.start_copying()
        self.assertGreaterEqual(len(self.holders()), 2, "the program and its worker")
        process.kill()
        process.communicate()
        self.expect_nothing_left()

    def test_a_worker_killed_in_the_middle_of_a_copy(self):
        process = self.start_copying()
        session, = self.longwire.status()["sessions"]
        os.kill(session["worker_pid"], signal.SIGKILL)
        out, err = process.communicate(timeout=15)
        # The memory is the program's as before.
        self.assertEqual((3, "cudaErrorLaunchFailure, 7\n"), (process.returncode, out), err)
        self.expect_nothing_left()


if __name__ == "__main__":
    unittest.main()
