"""A server that other hosts can reach: limits that nobody has set are there and are named, and who
reads the metrics beyond the host is warned of."""
import json
import re
import unittest
import urllib.request

import server
import tenants

MIB = 1 << 20
MEMORY = 512 * MIB


class ExposedServer(tenants.TenantServer):
    listens = "0.0.0.0"

    def start_daemon(self):
        self.papers = self.runtime / "papers"
        self._make_certificates()
        self.configure(self.tenants, self.settings)
        self._start("longwired", "--config", self.config, "--listen",
                    f"{self.listens}:{self.port}", "--local-socket", self.door, "--warden",
                    self.warden_socket, "--driver", self.driver)
        server.wait_for(self.answers, 20, "the daemon's port")


class ExposureTest(unittest.TestCase):
    blocks = {"operator": {"admin": True, "sessions": 8, "memory": "64MiB"}, "open": {}}

    def serve(self, listens="0.0.0.0", **settings):
        longwire = ExposedServer(self.blocks, {"max_sessions": 8, **settings},
                                 software_memory=MEMORY)
        longwire.listens = listens
        self.enterContext(longwire)
        server.wait_for(lambda: "ready" in longwire.log_tail(), 20, "the daemon")
        return longwire

    def test_limits_that_nobody_has_set(self):
        longwire = self.serve()
        status = json.loads(longwire.cli("status", "--json").out)
        self.assertEqual(
            ["tenant 'open': sessions is not set; 2 are allowed, a quarter of max_sessions",
             "tenant 'open': memory is not set; three quarters of the devices' memory are allowed",
             "admission: openings_per_second is not set; each identity may open 25 sessions a "
             "second, and 256 at once"],
            status["unset_limits"])
        for sentence in status["unset_limits"]:
            self.assertRegex(longwire.log_tail(100), "warning.* " + re.escape(sentence))
            self.assertIn("no limit set: " + sentence, longwire.cli("status").out)
        limits = {tenant["name"]: tenant["memory_limit"] for tenant in status["tenants"]}
        lendable = status["devices"][0]["lendable"]
        self.assertEqual({"operator": 64 * MIB, "open": lendable // 4 * 3 // (2 * MIB) * 2 * MIB},
                         limits)
        for _ in range(2):
            process = self.hold(longwire)
        result = longwire.run_as("open", longwire.program("allocate.static"))
        self.assertIn("the tenant 'open' has 2 sessions already; its limit is 2", result.err)
        process.kill()

    def hold(self, longwire):
        process = server.subprocess.Popen(
            longwire.command(longwire.program("hold_session.static")),
            env=longwire.environment_of("open"), stdin=server.subprocess.DEVNULL,
            stdout=server.subprocess.PIPE, stderr=server.subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual("READY\n", server.next_line(process), longwire.log_tail())
        return process

    def test_within_the_host_there_are_none(self):
        longwire = self.serve("127.0.0.1")
        status = json.loads(longwire.cli("status", "--json").out)
        self.assertEqual([], status["unset_limits"])
        limits = {tenant["name"]: tenant["memory_limit"] for tenant in status["tenants"]}
        self.assertIsNone(limits["open"])

    def test_metrics_of_identities_beyond_the_host(self):
        port = server.free_port()
        longwire = self.serve(metrics=f"0.0.0.0:{port}")
        self.assertIn(f"metrics at 0.0.0.0:{port} can be read, without encryption, by everybody",
                      longwire.log_tail(100))
        self.hold(longwire)
        longwire.run_as("open", longwire.program("allocate.static"))
        server.wait_for(lambda: len(longwire.status_as("operator")["sessions"]) == 1, 10,
                        "the end of the second session")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        values = {name: float(value) for name, value in
                  (line.rsplit(" ", 1) for line in lines if line and line[0] != "#")}
        labels = 'tenant="open",identity="open"'
        for name, value in (("sessions", 1), ("sessions_opened_total", 2),
                            ("sessions_refused_total", 0)):
            self.assertEqual(value, values[f"longwire_identity_{name}{{{labels}}}"], name)
        for name in ("memory_bytes", "session_seconds_total"):
            self.assertGreater(values[f"longwire_identity_{name}{{{labels}}}"], 0, name)
        for direction in ("up", "down"):
            name = f'longwire_identity_bytes_total{{{labels},direction="{direction}"}}'
            self.assertGreater(values[name], 0)


if __name__ == "__main__":
    unittest.main()
