"""Metrics from another host: over TLS, for identities that may monitor, and do nothing else."""
import http.client
import json
import socket
import ssl
import time
import unittest

import server
import tenants

TENANTS = {"operator": {"admin": True}, "prometheus": {"monitor": True}, "research": {}}


class MonitorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.port = server.free_port()
        cls.settings = {"metrics_tls": f"127.0.0.1:{cls.port}"}
        cls.longwire = cls.enterClassContext(
            tenants.TenantServer({**TENANTS, "nobody": {}}, cls.settings))
        server.wait_for(lambda: "ready" in cls.longwire.log_tail(), 20, "the daemon")

    def reload(self, blocks):
        self.longwire.configure(blocks, self.settings)
        result = self.longwire.cli("admin", "reload")
        self.assertEqual(0, result.code, result.err)

    def context(self, name, papers=None):
        papers = papers or self.longwire.papers
        context = ssl.create_default_context(cafile=self.longwire.papers / "ca.crt")
        if name:
            context.load_cert_chain(papers / f"{name}.crt", papers / f"{name}.key")
        return context

    def get(self, name, path="/metrics", method="GET", papers=None):
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=20,
                                                 context=self.context(name, papers))
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def test_who_may_reads(self):
        for name in ("prometheus", "operator"):
            status, text = self.get(name)
            self.assertEqual(200, status, text)
            self.assertIn('longwire_tenant_sessions{tenant="research"} 0', text)
        # The same as without TLS, but for what changes by itself.
        self.assertGreater(len(text.splitlines()), 100)

    def test_who_may_not_is_told_why(self):
        status, text = self.get("research")
        self.assertEqual(403, status)
        self.assertIn("the tenant 'research' of 'research' may not read metrics; give it monitor: "
                      "true", text)
        self.assertIn("a scrape from 127.0.0.1:", self.longwire.log_tail())

    def test_who_proves_nothing_is_not_heard(self):
        other = self.longwire.runtime / "other"
        for words in (["init"], ["client", "--name", "prometheus"]):
            made = self.longwire.cli("cert", *words, "--dir", str(other))
            self.assertEqual(0, made.code, made.err)
        for name, papers in ((None, None), ("prometheus", other)):
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                self.get(name, papers=papers)
        with socket.create_connection(("127.0.0.1", self.port), 10) as plain:
            plain.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            try:
                self.assertNotIn(b"longwire_", plain.recv(4096))
            except ConnectionResetError:
                pass

    def test_it_opens_no_session_and_changes_nothing(self):
        refused = self.longwire.run_as("prometheus", self.longwire.program("vector_add.static"))
        self.assertNotEqual(0, refused.code)
        self.assertIn("the identity 'prometheus' may read metrics and status only", refused.err)
        for words in (["reload"], ["drain"], ["evict", "research"]):
            result = server.run([self.longwire.dist / "bin" / "longwire", "admin", *words,
                                 "--server", self.longwire.address],
                                self.longwire.environment_of("prometheus"))
            self.assertEqual(1, result.code, result.out)

    def test_it_sees_the_status_of_all(self):
        names = {one["name"] for one in self.longwire.status_as("prometheus")["tenants"]}
        self.assertLessEqual(set(TENANTS), names)
        self.assertEqual({"research"},
                         {one["name"] for one in self.longwire.status_as("research")["tenants"]})

    def test_a_reload_takes_the_right(self):
        self.addCleanup(self.reload, TENANTS)
        self.reload({**TENANTS, "prometheus": {}})
        self.assertEqual(403, self.get("prometheus")[0])
        self.reload({"operator": {"admin": True}})
        status, text = self.get("prometheus")
        self.assertEqual(403, status)
        self.assertIn("does not know the identity 'prometheus'", text)

    def test_other_requests(self):
        self.assertEqual(404, self.get("prometheus", "/")[0])
        self.assertEqual(405, self.get("prometheus", method="POST")[0])
        for text, code in ((b"nonsense\r\n\r\n", b"400"), (b"x" * 9000, b"431")):
            with socket.create_connection(("127.0.0.1", self.port), 20) as plain:
                with self.context("prometheus").wrap_socket(plain,
                                                            server_hostname="127.0.0.1") as tls:
                    tls.sendall(text)
                    self.assertEqual(b"HTTP/1.1 " + code, tls.recv(12))

    def test_who_says_nothing_keeps_nobody_waiting(self):
        silent = [socket.create_connection(("127.0.0.1", self.port), 10) for _ in range(3)]
        for one in silent:
            self.addCleanup(one.close)
        begun = time.monotonic()
        self.assertEqual(200, self.get("prometheus")[0])
        self.assertLess(time.monotonic() - begun, 4, "it waited for the silent ones")
        # A host has four; these end after five seconds.
        for one in silent:
            one.settimeout(30)
            self.assertEqual(b"", one.recv(1))

    def test_it_wants_tls(self):
        file = self.longwire.runtime / "bad.yaml"
        file.write_text("metrics_tls: 127.0.0.1:7414\n")
        result = self.longwire.cli("config", "check", file)
        self.assertEqual(1, result.code)
        self.assertIn("metrics_tls: expected tls: in the configuration, too", result.err)
        file.write_text("metrics_tls: 0.0.0.0:7411\nlisten: 0.0.0.0:7411\n")
        told = json.loads(self.longwire.cli("config", "check", "--json", file).out)["problems"]
        self.assertTrue(any("expected a port of its own" in one for one in told), told)


if __name__ == "__main__":
    unittest.main()
