"""longwire trace -o of a program with devices of two servers: one file has what all of them did, on
one clock."""
import collections
import pathlib
import unittest

import server
import trace_events

STEPS = 80
OTHER_WORKER = 101
KERNEL = "Change(unsigned int*, unsigned int, int)"


class TraceAcrossTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.both = [cls.enterClassContext(server.Server()) for _ in range(2)]
        cls.file = pathlib.Path(cls.both[0].runtime) / "trace.json"

    def traced(self, program, *arguments, options=()):
        one = self.both[0]
        result = one.cli("trace", "-o", str(self.file), "--across", *options, "--server",
                         ",".join(each.address for each in self.both), "--",
                         one.program(program), *arguments)
        self.assertEqual(0, result.code, f"{result}\n{one.log_tail()}")
        self.assertIn("PASS", result.out)
        events = trace_events.read(self.file)
        self.assertEqual([], trace_events.faults(events)[:3])
        return events

    def test_one_file_has_both(self):
        events = self.traced("across_order.static", str(STEPS))
        names = {event["pid"]: event["args"]["name"] for event in events
                 if event["ph"] == "M" and event["name"] == "process_name"}
        for place, one in enumerate(self.both):
            self.assertIn(f" of {one.address}", names[trace_events.DEVICE + place])
        self.assertIn("worker of session", names[trace_events.WORKER])
        self.assertIn("worker of session", names[OTHER_WORKER])
        calls = trace_events.spans(events, trace_events.PROGRAM)
        launched = [event["args"]["correlation"] for event in calls
                    if event["name"] == "cuLaunchKernel"]
        self.assertEqual(len(launched), len(set(launched)))
        kernels = collections.Counter()
        done = []
        for place in range(2):
            for event in trace_events.spans(events, trace_events.DEVICE + place):
                if event["args"]["call"] == "lwLaunch":
                    self.assertEqual(KERNEL, event["name"])
                    kernels[place] += 1
                    done.append(event)
        self.assertEqual(sorted(launched), sorted(one["args"]["correlation"] for one in done))
        self.assertGreater(min(kernels[0], kernels[1]), STEPS // 10, kernels)
        self.assert_order(done)

    def assert_order(self, kernels):
        """Each step waits for the one before, wherever that was: no two overlap by more than the
        clocks are wrong."""
        kernels.sort(key=lambda one: trace_events.bounds(one)[0])
        for earlier, later in zip(kernels, kernels[1:]):
            error = earlier["args"]["clock_error_ns"] + later["args"]["clock_error_ns"]
            self.assertLessEqual(trace_events.bounds(earlier)[1],
                                 trace_events.bounds(later)[0] + error, (earlier, later))

    def test_each_servers_clock_is_compared(self):
        events = self.traced("two_devices.static")
        marks = {event["name"] for event in events if event["ph"] == "i"}
        self.assertLessEqual({f"clocks of {one.address}" for one in self.both}, marks)


if __name__ == "__main__":
    unittest.main()
