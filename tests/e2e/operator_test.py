"""What an operator sees and changes while sessions run: metrics, status, a reload."""
import signal
import subprocess
import unittest
import urllib.request

import server
import tenants


class OperatorTest(unittest.TestCase):
    def setUp(self):
        self.metrics = f"127.0.0.1:{server.free_port()}"
        self.blocks = {"operator": {"admin": True}, "research": {"weight": 3, "memory": "1GiB"}}
        self.longwire = self.enterContext(
            tenants.TenantServer(self.blocks, {"metrics": self.metrics}))
        server.wait_for(lambda: "ready" in self.longwire.log_tail(), 20, "the daemon")

    def scrape(self):
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, value in
                (line.rsplit(" ", 1) for line in lines if line and line[0] != "#")}

    def tenant(self, name):
        return next(tenant for tenant in self.longwire.status_as("operator")["tenants"]
                    if tenant["name"] == name)

    def start_research(self):
        process = subprocess.Popen(
            self.longwire.command(self.longwire.program("steady.static"), "hold"),
            env=self.longwire.environment_of("research"), stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual("READY\n", server.next_line(process), self.longwire.log_tail())

    def test_metrics_count_what_programs_did(self):
        before = self.scrape()
        self.assertEqual(0, before['longwire_tenant_sessions{tenant="research"}'])
        self.start_research()
        now = self.scrape()
        self.assertEqual(1, now['longwire_tenant_sessions{tenant="research"}'])
        self.assertEqual(1 << 30, now['longwire_tenant_memory_limit_bytes{tenant="research"}'])
        self.assertGreaterEqual(now['longwire_tenant_memory_bytes{tenant="research"}'], 64 << 20)
        self.assertGreater(now['longwire_tenant_host_memory_limit_bytes{tenant="research"}'],
                           now['longwire_tenant_host_memory_bytes{tenant="research"}'])
        self.assertGreater(now['longwire_tenant_gpu_seconds_total{tenant="research"}'], 0)
        self.assertGreater(now['longwire_calls_total{function="lwLaunch"}'], 0)
        self.assertGreater(now["longwire_round_trips_total"], 0)
        self.assertEqual(before["longwire_sessions_opened_total"] + 1,
                         now["longwire_sessions_opened_total"])

    def test_a_reload_reaches_running_sessions(self):
        self.start_research()
        self.assertFalse(self.tenant("research")["latency_critical"])
        self.blocks["research"] = {"priority": "latency_critical", "memory": "2GiB"}
        self.longwire.configure(self.blocks, {"metrics": self.metrics})
        self.longwire.children["longwired"].send_signal(signal.SIGHUP)
        server.wait_for(lambda: self.tenant("research")["latency_critical"], 10, "the reload")
        self.assertEqual(2 << 30, self.tenant("research")["memory_limit"])
        self.assertEqual(1, self.tenant("research")["sessions"])

    def ask_as(self, tenant, *words):
        return server.run([self.longwire.dist / "bin" / "longwire", *words,
                           "--server", self.longwire.address],
                          self.longwire.environment_of(tenant))

    def test_what_is_not_shown_is_not_called_absent(self):
        """Whoever may not see something learns that, and not that there is none."""
        self.start_research()
        self.blocks["others"] = {}
        self.longwire.configure(self.blocks, {"metrics": self.metrics,
                                              "kernel_statistics": "sampled"})
        made = self.longwire.cli("cert", "client", "--name", "others", "--dir",
                                 str(self.longwire.papers))
        self.assertEqual(0, made.code, made.err)
        reloaded = self.ask_as("operator", "admin", "reload")
        self.assertEqual(0, reloaded.code, reloaded.err)
        for words, code, said in (
                (("policy", "list"), 1, "policies are shown to administrators"),
                (("policy", "list", "--json"), 1, "policies are shown to administrators"),
                (("policy", "maps", "any"), 1, "policies are shown to administrators"),
                (("admin", "sessions"), 0, "others are not shown to you"),
                (("status",), 0, "sessions: 0 now of your tenant"),
                (("top", "--once"), 0, "0 sessions of your tenant"),
                (("advise", "steady.static"), 1, "'steady.static' of your tenant")):
            with self.subTest(words):
                told = self.ask_as("others", *words)
                self.assertEqual(code, told.code, told)
                self.assertIn(said, told.out + told.err)
        told = self.ask_as("operator", "policy", "list")
        self.assertEqual((0, "no policy is loaded; what is built in decides\n"),
                         (told.code, told.out))
        told = self.ask_as("operator", "admin", "sessions")
        self.assertEqual("", told.err)
        self.assertIn("research", told.out)

    def test_a_bad_reload_changes_nothing(self):
        self.start_research()
        self.blocks["research"] = {"priority": "latency_critical", "memory": "1GB"}
        self.longwire.configure(self.blocks, {"metrics": self.metrics})
        self.longwire.children["longwired"].send_signal(signal.SIGHUP)
        server.wait_for(lambda: "refused: all stays as it was" in self.longwire.log_tail(100), 10,
                        "the refusal in the log")
        self.assertIn("tenants.memory: expected a size", self.longwire.log_tail(100))
        self.assertFalse(self.tenant("research")["latency_critical"])
        self.assertEqual(1 << 30, self.tenant("research")["memory_limit"])


if __name__ == "__main__":
    unittest.main()
