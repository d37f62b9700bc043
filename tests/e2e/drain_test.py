"""Memory that a session keeps free is another one's when it is needed: nobody runs out of memory
while some lies idle, nobody is held up by who does not answer, nobody sees another's bytes."""
import os
import re
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree

import server
import tenants

MIB = 1 << 20
MEMORY = 512 * MIB
LENDABLE = MEMORY - MEMORY // 32  # the rest is for contexts


class Holder:
    """A program that holds a session; it executes commands, a word at a time."""

    def __init__(self, longwire, tenant, *words):
        self.process = subprocess.Popen(
            longwire.command(longwire.program("allocate.static"), *map(str, words), "hold"),
            env=longwire.environment_of(tenant), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.said = []
        while not self.said or self.said[-1] not in ("READY\n", ""):
            self.said.append(server.next_line(self.process))

    def tell(self, word):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        said = [] if word in ("free", "zeros") else [server.next_line(self.process).strip()]
        return said + [server.next_line(self.process).strip()]

    def end(self):
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.communicate("\n", timeout=60)


class Sessions(unittest.TestCase):
    settings = {}

    def setUp(self):
        self.longwire = self.enterContext(tenants.TenantServer(
            {"first": {}, "second": {"admin": True}, "small": {"memory": "200MiB"},
             "safe": {"memory_reserved": "64MiB"}},
            self.settings, software_memory=MEMORY, warm_workers=2))

    def hold(self, tenant, *words):
        holder = Holder(self.longwire, tenant, *words)
        self.assertEqual("READY\n", holder.said[-1], self.longwire.log_tail())
        self.addCleanup(holder.end)
        return holder

    def device(self):
        return self.longwire.status_as("second")["devices"][0]


class DrainTest(Sessions):
    def test_what_one_has_freed_another_gets(self):
        first = self.hold("first", 300 * MIB, "free")
        before = self.device()
        self.assertGreaterEqual(before["leased"], 300 * MIB)
        second = self.hold("second", "zeros", 300 * MIB)
        self.assertIn(f"{300 * MIB} cudaSuccess\n", second.said)
        after = self.device()
        self.assertGreater(after["drained"], before["drained"])
        self.assertGreater(after["asked"], before["asked"])
        self.assertEqual(0, after["refused"])
        # The first has room again once the second has freed.
        second.tell("free")
        self.assertIn(f"{300 * MIB} cudaSuccess", first.tell(300 * MIB))

    def test_what_is_in_use_nobody_gets(self):
        first = self.hold("first", 300 * MIB)
        second = self.hold("second", 300 * MIB)
        self.assertIn(f"{300 * MIB} cudaErrorMemoryAllocation\n", second.said)
        self.assertLess(self.device()["drained"], 100 * MIB)
        first.tell("free")
        self.assertIn(f"{300 * MIB} cudaSuccess", second.tell(300 * MIB))

    def test_free_as_told_can_be_had(self):
        self.hold("first", 300 * MIB, "free")
        second = self.hold("second", MIB)
        free = int(re.search(r"free (\d+)", "".join(second.said))[1])
        self.assertGreater(free, 300 * MIB)
        # Parts of the session's first chunk count as free, too, but are not in one piece.
        whole = (free - 64 * MIB) // (2 * MIB) * 2 * MIB
        self.assertIn(f"{whole} cudaSuccess", second.tell(whole))

    def test_one_that_does_not_answer_holds_nobody_up_for_long(self):
        first = self.hold("first", 300 * MIB, "free")
        second = self.hold("second", MIB)
        os.kill(first.process.pid, signal.SIGSTOP)
        begun = time.monotonic()
        self.assertIn(f"{300 * MIB} cudaErrorMemoryAllocation", second.tell(300 * MIB))
        # The bound is a second; how much slower a busy machine is, nobody knows.
        self.assertLess(time.monotonic() - begun, 20)
        asked = self.device()["asked"]
        self.assertIn(f"{300 * MIB} cudaErrorMemoryAllocation", second.tell(300 * MIB))
        self.assertEqual(asked, self.device()["asked"], "it is not asked again")
        os.kill(first.process.pid, signal.SIGCONT)
        # It gives back what it was asked for, late.
        server.wait_for(lambda: self.device()["leased"] < 300 * MIB, 20, "the late answer")
        self.assertIn(f"{300 * MIB} cudaSuccess", second.tell(300 * MIB))

    def test_a_tenant_at_its_limit_gets_its_own_idle_memory(self):
        self.hold("small", 150 * MIB, "free")
        sibling = self.hold("small", 190 * MIB)
        self.assertIn(f"{190 * MIB} cudaSuccess\n", sibling.said)
        self.assertIn(f"{200 * MIB} cudaErrorMemoryAllocation", sibling.tell(200 * MIB))

    def test_what_is_reserved_only_its_tenant_gets(self):
        greedy = self.hold("second", LENDABLE - 64 * MIB - 2 * MIB)
        self.assertIn("cudaSuccess", greedy.said[0])
        self.assertIn("64 cudaSuccess", greedy.tell(64))
        self.assertIn(f"{4 * MIB} cudaErrorMemoryAllocation", greedy.tell(4 * MIB))
        safe = self.hold("safe", 60 * MIB)
        self.assertIn(f"{60 * MIB} cudaSuccess\n", safe.said)


class SightTest(Sessions):
    def cli_as(self, tenant, *words):
        result = server.run([self.longwire.dist / "bin" / "longwire", *map(str, words)],
                            self.longwire.environment_of(tenant), 60)
        self.assertEqual(0, result.code, result.err)
        return result

    def test_the_map_says_who_has_what(self):
        self.hold("first", 200 * MIB)
        self.hold("second", 100 * MIB)
        own, every = (self.cli_as(tenant, "memory", "--server", self.longwire.address).out
                      for tenant in ("first", "second"))
        self.assertRegex(every, r"\[A+B+[~.-]*x+\]")
        self.assertRegex(every, r"A +\d+\.\d MiB  session \d+ of (first|second)")
        self.assertIn("chunks: ", every)
        self.assertIn("sessions of others", own)
        self.assertNotIn("second", own)

    def test_a_timeline_shows_what_happened(self):
        files = [self.longwire.runtime / name for name in ("memory.svg", "memory.html")]
        self.hold("first", 300 * MIB, "free")
        watching = [subprocess.Popen(
            [self.longwire.dist / "bin" / "longwire", "memory", "--server", self.longwire.address,
             "--timeline", file, "--seconds", "8"], env=self.longwire.environment_of("second"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for file in files]
        for process in watching:
            self.assertIn("watching", process.stderr.readline())
        self.hold("second", 300 * MIB)
        for process, file in zip(watching, files):
            out, err = process.communicate(timeout=60)
            self.assertEqual(0, process.returncode, out + err)
            text = file.read_text()
            for kind in ("lease", "return", "ask", "drain", "map", "unmap"):
                self.assertIn(f">{kind}</text>", text, out)
            self.assertIn("of second: ", text)
            self.assertIn("idle: of no session, kept for the next one", text)
            self.assertGreaterEqual(len(re.findall(r">\d\d:\d\d:\d\d</text>", text)), 2,
                                    "clock times")
            self.assertIn('width="100%" viewBox="0 0 980.0 ', text)
            svg = text[text.index("<svg"):text.index("</svg>") + len("</svg>")]
            xml.etree.ElementTree.fromstring(svg)
        self.assertTrue(files[1].read_text().startswith("<!DOCTYPE html>"))

    def test_allocations_are_traced(self):
        result = server.run(
            [self.longwire.dist / "bin" / "longwire", "trace", "--allocations", "--server",
             self.longwire.address, "--", self.longwire.program("allocate.static"), "1000",
             "5000000", "free"], self.longwire.environment_of("first"), 60)
        self.assertEqual(0, result.code, result.err)
        lines = [line for line in result.err.splitlines() if re.match(r"longwire: [+-] ", line)]
        self.assertRegex(lines[0], r"\+ 1000 bytes at 0x\w+ on device 0: 1000 bytes in 1 pieces")
        self.assertIn("5001000 bytes in 2 pieces", lines[1])
        self.assertIn(": 0 bytes in 0 pieces", lines[-1])


class UnusedTest(Sessions):
    settings = {"memory": {"session_idle": "64MiB", "session_idle_time": "100ms",
                           "pooled": "128MiB"}}

    def test_what_is_not_used_for_long_is_taken_back(self):
        self.hold("first", 300 * MIB, "free")
        server.wait_for(lambda: self.device().get("returned", 0) > 0, 20, "unused memory")
        server.wait_for(lambda: self.device()["leased"] <= 64 * MIB, 20, "all of it")

    def test_idle_memory_beyond_its_amount_goes_back_to_the_driver(self):
        self.hold("first", 300 * MIB).end()
        server.wait_for(lambda: self.device()["leased"] <= 64 * MIB, 20, "the end")
        server.wait_for(lambda: self.device()["idle"] <= 128 * MIB, 20, "the driver's share")


if __name__ == "__main__":
    unittest.main()
