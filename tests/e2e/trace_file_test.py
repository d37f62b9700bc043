"""longwire trace -o: what a program, the way of its calls, the worker and the device did, on one
clock, in a file that keeps to its format's rules and has what the program really did."""
import collections
import pathlib
import re
import signal
import subprocess
import time
import unittest

import server
import tenants
import trace_events

LIMIT = 64 << 10
NANOSECOND = 1e-9
KERNELS = {"TracedScale(int*)", "TracedAdd(int*)"}


class TraceFileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())
        cls.file = pathlib.Path(cls.longwire.runtime) / "trace.json"

    def trace(self, program, *arguments, options=(), file=None):
        return self.longwire.cli(
            "trace", "-o", str(file or self.file), *options, "--server", self.longwire.address,
            "--", self.longwire.program(program), *arguments)

    def traced(self, program, *arguments, options=()):
        result = self.trace(program, *arguments, options=options)
        self.assertEqual(0, result.code, result.out + result.err[-500:])
        self.assertIn("PASS", result.out)
        events = trace_events.read(self.file)
        self.assertEqual([], trace_events.faults(events)[:3])
        return events, result

    def test_what_a_program_did(self):
        events, result = self.traced("traced_steps.static")
        launches, copies = map(int, re.search(r"LAUNCHES (\d+) COPIES (\d+)", result.out).groups())
        on_device = trace_events.spans(events, trace_events.DEVICE)
        kernels = [event for event in on_device if event["args"]["call"] == "lwLaunch"]
        self.assertEqual(launches, len(kernels))
        self.assertEqual(KERNELS, {event["name"] for event in kernels})
        self.assertEqual(2, len({event["tid"] for event in kernels}), "a track for each stream")
        copied = [event for event in on_device if event["args"]["call"].startswith("lwCopy")]
        self.assertEqual(copies, len(copied))
        calls = trace_events.spans(events, trace_events.PROGRAM)
        self.assertEqual(launches, sum(event["name"] == "cuLaunchKernel" for event in calls))
        self.assert_pairs(calls, kernels)
        self.assert_ranges(calls)
        self.assert_memory(events)
        self.assert_clock(events, result.seconds)

    def assert_pairs(self, calls, kernels):
        """Each kernel belongs to one launch of the program, and begins after it was made."""
        launched = {event["args"]["correlation"]: event for event in calls
                    if event["name"] == "cuLaunchKernel"}
        self.assertEqual(launched.keys(), {event["args"]["correlation"] for event in kernels})
        threads = {}
        for kernel in kernels:
            call = launched[kernel["args"]["correlation"]]
            self.assertGreaterEqual(kernel["ts"], call["ts"])
            self.assertGreater(kernel["dur"], 0)
            threads.setdefault(kernel["name"], set()).add(call["tid"])
        self.assertEqual(2, len(threads))
        self.assertTrue(all(len(one) == 1 for one in threads.values()), threads)
        # A wait ends after the kernel that it waited for: client and device are on one clock.
        waits = {}
        for event in calls:
            if event["name"].startswith("cuStreamSynchronize"):
                waits.setdefault(event["tid"], []).append(trace_events.bounds(event)[1])
        for kernel in kernels:
            call = launched[kernel["args"]["correlation"]]
            end = min(wait for wait in waits[call["tid"]]
                      if wait > trace_events.bounds(call)[1])
            error = kernel["args"]["clock_error_ns"]
            self.assertLessEqual(trace_events.bounds(kernel)[1], end + error)

    def assert_ranges(self, calls):
        ranges = [event for event in calls if event.get("args", {}).get("nvtx")]
        self.assertEqual({"step that adds": 20, "step that scales": 20},
                         collections.Counter(event["name"] for event in ranges))
        launches = [event for event in calls if event["name"] == "cuLaunchKernel"]
        for one in ranges:
            begin, end = trace_events.bounds(one)
            within = [launch for launch in launches if launch["tid"] == one["tid"]
                      and begin <= trace_events.bounds(launch)[0] <= end]
            self.assertEqual(1, len(within), one)

    def assert_memory(self, events):
        counts = [event["args"]["bytes"] for event in events if event["ph"] == "C"]
        self.assertEqual(0, counts[-1])
        self.assertGreaterEqual(max(counts), 4096 * 4)

    def assert_clock(self, events, seconds):
        clocks = [event["args"] for event in events if event["name"] == "clocks"]
        self.assertEqual(2, len(clocks), "at the beginning and at the end")
        for clock in clocks:
            # The two run on one host: its clock is the same.
            self.assertLessEqual(abs(clock["server_ahead_ns"]), clock["error_ns"] + 1)
            self.assertLess(clock["error_ns"] * NANOSECOND, 1)
        last = max(event["ts"] for event in events if "ts" in event)
        self.assertLess(last * trace_events.MICROSECOND, seconds)
        names = {event["name"] for event in events if event["ph"] == "b"}
        self.assertLessEqual({"wire", "queue"}, names)

    def test_graphs_captures_and_the_legacy_stream(self):
        for program in ("graph_capture.static", "graph_nodes.static", "legacy_order.static",
                        "streams_events.static", "capture_threads.static"):
            with self.subTest(program):
                events, _ = self.traced(program)
                self.assertTrue(trace_events.spans(events, trace_events.DEVICE))

    def test_waiting_for_a_turn(self):
        shared = self.enterContext(tenants.TenantServer(
            {"other": {}, "traced": {}, "operator": {"admin": True}},
            {"scheduler": {"policy": "weighted_fair", "turn": "20ms"}}, warm_workers=2))
        load = shared.build / "bench" / "tenant_load"
        other = subprocess.Popen(shared.command(load, "batch", "20", "600"),
                                 env=shared.environment_of("other"), stdout=subprocess.DEVNULL)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        server.wait_for(lambda: any(seat["gpu_seconds"] > 0.1 for session in
                                    shared.status_as("operator").get("sessions", [])
                                    for seat in session["seats"]), 20, "the other at work")
        result = server.run([shared.dist / "bin" / "longwire", "trace", "-o", self.file, "--server",
                             shared.address, "--", shared.program("traced_steps.static")],
                            shared.environment_of("traced"))
        self.assertEqual(0, result.code, result.err)
        events = trace_events.read(self.file)
        self.assertEqual([], trace_events.faults(events)[:3])
        waits = {event["id"]: event["ts"] for event in events
                 if event["ph"] == "b" and event["name"] == "gate"}
        self.assertTrue(waits, "none waited for a turn")
        kernels = {event["args"]["correlation"]: event
                   for event in trace_events.spans(events, trace_events.DEVICE)}
        for call in waits.keys() & kernels.keys():
            self.assertGreater(kernels[call]["ts"], waits[call])

    def test_a_small_limit_is_kept_and_said(self):
        events, result = self.traced("traced_steps.static", options=("--limit", "64KiB"))
        self.assertLessEqual(self.file.stat().st_size, LIMIT)
        sentence = (f"the trace in {self.file} ends early: it has reached {LIMIT} bytes; "
                    "longwire trace --limit allows more")
        self.assertIn(f"longwire: {sentence}\n", result.err)
        self.assertIn(sentence, {event["name"] for event in events})

    def test_a_killed_program_leaves_what_it_did(self):
        process = subprocess.Popen(
            [self.longwire.dist / "bin" / "longwire", "trace", "-o", self.file, "--server",
             self.longwire.address, "--", self.longwire.program("hold_session.static")],
            env=self.longwire.environment(), stdout=subprocess.PIPE, text=True)
        self.assertEqual("READY\n", server.next_line(process))
        server.wait_for(lambda: "cuLaunchKernel" in self.file.read_text()
                        or "cuMem" in self.file.read_text(), 10, "calls in the file")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.assertEqual([], list(trace_events.wrong_events(trace_events.read(self.file))))

    def test_a_file_that_cannot_be(self):
        result = self.trace("vector_add.static", file="/no/such/folder/trace.json")
        self.assertEqual((2, ""), (result.code, result.out))
        self.assertIn("-o /no/such/folder/trace.json: No such file or directory", result.err)
        self.assertIn("; name a file in a folder where you may write\n", result.err)

    def test_each_process_has_a_file(self):
        began = time.monotonic()
        program = self.longwire.program("vector_add.static")
        result = self.longwire.cli("trace", "-o", str(self.file), "--server",
                                   self.longwire.address, "--", "/bin/sh", "-c",
                                   f"{program} && {program}")
        self.assertEqual(0, result.code, result.err)
        others = list(self.file.parent.glob("trace.json.*"))
        self.assertEqual(1, len(others), result.err)
        self.assertIn(f"another process has {self.file}: the trace of this one is {others[0]}",
                      result.err)
        for file in (self.file, *others):
            events = trace_events.read(file)
            self.assertEqual([], trace_events.faults(events))
            launches = [event for event in trace_events.spans(events, trace_events.PROGRAM)
                        if event["name"].startswith("cuLaunchKernel")]
            kernels = [event for event in trace_events.spans(events, trace_events.DEVICE)
                       if event["args"]["call"] == "lwLaunch"]
            self.assertEqual(len(launches), len(kernels))
            self.assertTrue(kernels)
        others[0].unlink()
        self.assertLess(time.monotonic() - began, 60)


if __name__ == "__main__":
    unittest.main()
