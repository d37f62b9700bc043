"""An operator's day: a tenant complains of latency; who holds it back is seen, its priority
changed, and the change seen. Then a device is emptied, and a session ended."""
import json
import os
import re
import subprocess
import time
import unittest

import scrape
import server
import tenants

# Of a kernel: some 20 ms on the software device, and a fourth of it.
LONG, SHORT = 1000, 250
WITHIN = 5  # seconds from a change to when it is seen
# Of the GPU time, serving's part while nightly goes first, and when it goes first itself.
HELD, SERVED = 0.05, 0.1
FAULTY = {"operator": {"admin": True}, "serving": {"priority": "best_effort"},
          "nightly": {"priority": "latency_critical"}}
CORRECT = {**FAULTY, "serving": {"priority": "latency_critical"},
           "nightly": {"priority": "best_effort"}}


class StoryTest(unittest.TestCase):
    def setUp(self):
        # The host that computes for the devices is one, as a GPU is.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        self.settings = {"metrics": f"127.0.0.1:{server.free_port()}"}
        self.longwire = self.enterContext(
            tenants.TenantServer(FAULTY, self.settings, software_devices=2))
        server.wait_for(lambda: "ready" in self.longwire.log_tail(), 20, "the daemon")

    def operate(self, *words):
        """What an administrator types on the server's host."""
        result = self.longwire.cli(*words)
        self.assertEqual((0, ""), (result.code, result.err), words)
        return result.out

    def start(self, tenant, program, *words):
        process = subprocess.Popen(
            self.longwire.command(program, *map(str, words)),
            env=self.longwire.environment_of(tenant), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def top(self):
        picture = json.loads(self.operate("top", "--once", "--json", "--interval", "0.5"))
        return {row["tenant"]: row for row in picture["tenants"]}

    def gpu_seconds(self):
        values = scrape.Scrape(self.settings["metrics"]).values
        return {name: values[f'longwire_tenant_gpu_seconds_total{{tenant="{name}"}}']
                for name in ("serving", "nightly")}

    def part_in_metrics(self):
        """Of the GPU time of a second, that of serving; from two scrapes."""
        before = self.gpu_seconds()
        time.sleep(1)
        after = self.gpu_seconds()
        gained = {name: after[name] - before[name] for name in after}
        return gained["serving"] / max(sum(gained.values()), 1e-6)

    def part_in_top(self):
        rates = {name: row["gpu_seconds_per_second"] or 0 for name, row in self.top().items()}
        return rates["serving"] / max(rates["serving"] + rates["nightly"], 1e-6)

    def reload(self, blocks):
        self.longwire.configure(blocks, self.settings)
        self.assertIn("tenants", self.operate("admin", "reload"))

    def sees(self, condition, what):
        """That it comes to pass within the promised time."""
        begun = time.monotonic()
        while not condition():
            self.assertLess(time.monotonic() - begun, WITHIN, what)
        print(f"{what}: seen {time.monotonic() - begun:.1f} s after the change")

    def devices_of(self, tenant):
        return [seat.get("device", 0) for one in self.longwire.status_as("operator")["sessions"]
                if one["tenant"] == tenant for seat in one["seats"]]

    def test_a_complaint_about_latency(self):
        load = self.longwire.build / "bench" / "tenant_load"
        self.operate("admin", "cordon", "1")  # both on one device
        self.start("nightly", load, "batch", LONG, 600)
        self.start("serving", load, "request", SHORT, 1000000, 0, 1)
        # Who holds whom.
        server.wait_for(lambda: self.top()["serving"]["held_back_by"] == ["nightly"], 20,
                        "the cause in top")
        self.assertIn("nightly", self.operate("top", "--once"))
        server.wait_for(lambda: self.part_in_top() < HELD, 20, "what serving gets, in top")
        server.wait_for(lambda: self.part_in_metrics() < HELD, 20, "the same in the metrics")

        # Its requests come one by one; what it leaves between them, nightly has.
        self.reload(CORRECT)
        self.sees(lambda: self.part_in_top() > SERVED, "serving's share in top")
        self.reload(FAULTY)
        server.wait_for(lambda: self.part_in_top() < HELD, 20, "what serving gets, in top again")
        self.reload(CORRECT)
        self.sees(lambda: self.part_in_metrics() > SERVED, "serving's share in the metrics")
        status = self.operate("status")
        self.assertRegex(status, r"tenant serving +latency critical")

    def test_a_device_is_emptied_and_a_session_ended(self):
        program = self.longwire.program("steady.static")
        stays = self.start("nightly", program, "until-error")
        self.assertEqual("READY\n", server.next_line(stays))
        [device] = self.devices_of("nightly")
        self.operate("admin", "cordon", str(device))
        gauge = f'longwire_device_cordoned{{device="{device}"}}'
        self.sees(lambda: scrape.Scrape(self.settings["metrics"]).values[gauge] == 1,
                  "the cordon in the metrics")
        others = [self.start("serving", program, "until-error") for _ in range(2)]
        for other in others:
            self.assertEqual("READY\n", server.next_line(other))
        self.assertEqual([1 - device] * 2, self.devices_of("serving"))
        self.assertIsNone(stays.poll(), "a cordon ends nothing")

        # What does not end by itself is ended, with a sentence on both sides.
        [session] = [one for one in json.loads(self.operate("admin", "sessions", "--json"))
                     if one["tenant"] == "nightly"]
        self.operate("admin", "kill", str(session["id"]))
        out, err = stays.communicate(timeout=30)
        self.assertIn("ERROR 719", out)
        sentence = "the server's administrator ended this session"
        self.assertIn(f"the session has ended: {sentence}", err)
        self.assertRegex(self.longwire.log_tail(200),
                         rf"session {session['id']}: ended after .*{re.escape(sentence)}")
        self.sees(lambda: not self.devices_of("nightly"), "the empty device")

        self.operate("admin", "drain")
        refused = self.longwire.run_as("serving", program, "hold")
        self.assertIn("the server takes no new sessions: its administrator", refused.err)
        self.assertEqual([None, None], [other.poll() for other in others])
        self.sees(lambda: scrape.Scrape(self.settings["metrics"]).values["longwire_draining"] == 1,
                  "the drain in the metrics")
        self.operate("admin", "drain", "--off")
        self.operate("admin", "cordon", str(device), "--off")
        again = self.start("nightly", program, "until-error")
        self.assertEqual("READY\n", server.next_line(again))


if __name__ == "__main__":
    unittest.main()
