"""Which devices sessions get: eight pretended ones, filled by each policy; how many a program asks
for; what is said when nothing fits."""
import json
import subprocess
import unittest

import programs
import server

# Room on a device for the first leases of two sessions (64 MiB each), not of three.
TWO_SESSIONS = 160 << 20


class PlacementTest(unittest.TestCase):
    def serve(self, config, devices=8, **options):
        return self.enterContext(server.Server(config=config, software_devices=devices,
                                               warm_workers=0, **options))

    def start(self, longwire, **environment):
        """Starts a program that waits, and says on which devices it is."""
        program = longwire.start("hold_session.static", **environment)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        sessions = {session["client_pid"]: session for session in longwire.status()["sessions"]}
        return program, self.devices(sessions[program.pid])

    @staticmethod
    def devices(session):
        return [seat["device"] for seat in session["seats"]]

    def expect_filled(self, policy, expected):
        longwire = self.serve(f"placement: {policy}\n", software_memory=TWO_SESSIONS)
        started = [self.start(longwire) for _ in expected]
        self.assertEqual(expected, [devices[0] for _, devices in started])
        text = longwire.cli("status", "--server", longwire.address).out
        for device in range(8):
            self.assertEqual(2, text.count(f"\n  device {device}: "), text)
        refused = longwire.run("visible_devices.static")
        self.assertIn("no device has that much", refused.err)
        self.assertEqual("devices 0 code 46", refused.out.splitlines()[0])
        # What ends makes room, wherever it was.
        program, (device,) = started[5]
        program.kill()
        program.wait()
        server.wait_for(lambda: len(longwire.status()["sessions"]) == 15, 5, "the session's end")
        self.assertEqual([device], self.start(longwire)[1])

    def test_pack(self):
        self.expect_filled("pack", [device for device in range(8) for _ in range(2)])

    def test_spread(self):
        self.expect_filled("spread", 2 * list(range(8)))

    def test_least_loaded(self):
        # Nothing was computed: the fewest sessions decide.
        self.expect_filled("least_loaded", 2 * list(range(8)))

    def test_as_many_devices_as_the_program_asks_for(self):
        longwire = self.serve("placement: spread\n", devices=3)
        self.assertEqual([0], self.start(longwire)[1])
        self.assertEqual([1, 2], self.start(longwire, LONGWIRE_DEVICES=2)[1])
        self.assertEqual([0, 1, 2], self.start(longwire, LONGWIRE_DEVICES=3)[1])
        for wanted, sentence in (("4", "asks for 4 devices and the server has 3"),
                                 ("none", "LONGWIRE_DEVICES is 'none'")):
            result = longwire.run("visible_devices.static", LONGWIRE_DEVICES=wanted)
            self.assertIn(sentence, result.err)
            self.assertEqual(1, len(result.err.strip().splitlines()), result.err)

    def test_a_tenants_number(self):
        longwire = self.serve("software_device:\n  count: 3\n"
                              "tenants:\n  - name: pairs\n    identities: [loopback]\n"
                              "    devices: 2\n", devices=3)
        self.assertEqual([0, 1], self.start(longwire)[1])
        self.assertEqual([2], self.start(longwire, LONGWIRE_DEVICES=1)[1])
        result = longwire.run("visible_devices.static", LONGWIRE_DEVICES=3)
        self.assertIn("a session of the tenant 'pairs' gets 2 devices at most", result.err)
        result = longwire.run("two_devices.static")
        self.assertIsNone(programs.what_is_wrong("two_devices", result), longwire.log_tail())

    def test_warm_workers_are_for_one_device(self):
        longwire = self.enterContext(server.Server(software_devices=2, warm_workers=1))
        def warm():
            return len(longwire.processes()["longwire-worker"])
        server.wait_for(lambda: warm() == 2, 20, "a warm worker for each device")
        self.start(longwire)
        self.start(longwire, LONGWIRE_DEVICES=2)
        sessions = longwire.status()["sessions"]
        self.assertEqual([True, False], [session["warm"] for session in sessions])

    def test_the_daemons_file_says_which_devices_there_are(self):
        longwire = self.serve("")
        file = longwire.runtime / "other.yaml"
        file.write_text("software_device:\n  count: 3\n  memory: 512MiB\nwarm_workers: 1\n"
                        "devices:\n  - device: 0\n    warm_workers: 2\n  - device: 2\n")
        address = f"127.0.0.1:{server.free_port()}"
        before = set(longwire.processes()["longwire-worker"])
        daemon = subprocess.Popen(
            [longwire.dist / "bin" / "longwired", "--config", file, "--listen", address,
             "--local-socket", "none", "--warden", longwire.runtime / "other",
             "--driver", "software"],
            env=longwire.environment(), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)

        def devices():
            result = longwire.cli("status", "--server", address, "--json")
            return json.loads(result.out)["devices"] if result.code == 0 else []
        server.wait_for(devices, 20, "the other daemon")
        self.assertEqual([(0, 512 << 20), (2, 512 << 20)],
                         [(device["ordinal"], device["total"]) for device in devices()])
        server.wait_for(lambda: len(set(longwire.processes()["longwire-worker"]) - before) == 3,
                        20, "two warm workers on the first device and one on the other")

    def test_a_warden_that_serves_other_devices(self):
        """Whoever starts the daemon is warned: sessions would be where nobody wants them."""
        config = "software_device: {count: 2}\ndevices: [{device: 1}]\n"
        longwire = self.serve(config, devices=2)
        longwire.must_log("devices names 1, but 0, 1 are served")
        longwire = self.enterContext(server.Server(config=config, software_devices=2, devices=[1]))
        self.assertNotIn("are served", longwire.log.read_text())
        self.assertEqual([1], [device["ordinal"] for device in longwire.status()["devices"]])


if __name__ == "__main__":
    unittest.main()
