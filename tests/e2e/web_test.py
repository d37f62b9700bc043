"""longwire-web beside a real daemon: what it tells whom, and what it refuses."""
import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import time
import unittest

import busy
import server

OTHER_USER = 65534
CONTROL_CLIENT = r"""
import socket, sys
control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
control.connect(sys.argv[1])
control.send(bytes.fromhex(sys.argv[2]))
print(repr(control.recv(1 << 17)))
"""


class Web:
    """A longwire-web; `words` are its options."""

    def __init__(self, case, longwire, *words):
        command = [longwire.dist / "bin" / "longwire-web", "--listen", "127.0.0.1:0", *words]
        self.process = subprocess.Popen(command, env=longwire.environment(), text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        clean_up = getattr(case, "addClassCleanup", case.addCleanup)
        clean_up(self.process.communicate)
        clean_up(self.process.terminate)
        line = server.next_line(self.process)
        found = re.search(r"ready at https?://[^:]*:(\d+)/", line)
        if not found:
            raise AssertionError(line + self.process.stdout.read())
        self.port = int(found[1])

    def ask(self, path="/api/now", method="GET", context=None, host=None):
        """(status, headers, text)"""
        kind = http.client.HTTPSConnection if context else http.client.HTTPConnection
        more = {"context": context} if context else {}
        connection = kind("127.0.0.1", self.port, timeout=60, **more)
        connection.request(method, path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, dict(answer.getheaders()), text

    def now(self, **options):
        status, _, text = self.ask(**options)
        if status != 200:
            raise AssertionError(f"{status}: {text}")
        return json.loads(text)


class PlainTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(server.Server())
        self.web = Web(self, self.longwire)

    def test_a_session_is_seen_within_seconds(self):
        server.wait_for(lambda: self.web.now()["picture"], 5, "an answer")
        process = self.longwire.start("steady.static", "hold")
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        server.wait_for(lambda: self.web.now()["picture"]["sessions"], 5, "the session")
        server.wait_for(lambda: (self.web.now()["picture"]["sessions"][0]
                                 ["gpu_seconds_per_second"] or 0) > 0, 10, "its GPU time")
        now = self.web.now()
        session = now["picture"]["sessions"][0]
        self.assertTrue(session["program"].endswith("/steady.static"))
        begin = int(time.time()) - 60
        _, _, text = self.web.ask(f"/api/memory?device=0&begin={begin}&end={begin + 70}&columns=70")
        memory = json.loads(text)
        self.assertEqual([session["session"]], [one["session"] for one in memory["sessions"]])
        self.assertGreaterEqual(max(memory["sessions"][0]["memory"]), 63 << 20)
        opening = now["latencies"][0]
        self.assertEqual(("session opening", 1), (opening["name"], opening["all"]["count"]))
        self.assertGreater(opening["all"]["p50"], 0)
        process.kill()
        process.wait()
        server.wait_for(lambda: {"opened", "ended"} <= {one["kind"] for one in
                                                        self.web.now()["events"]}, 10, "events")

    def test_a_daemon_that_is_away(self):
        server.wait_for(lambda: self.web.now()["picture"], 5, "an answer")
        self.longwire.end_daemon()
        server.wait_for(lambda: self.web.now()["problem"], 5, "the problem")
        self.assertIn("no longwired answers at", self.web.now()["problem"])
        self.longwire.start_daemon()
        server.wait_for(lambda: not self.web.now()["problem"], 10, "its end")

    def test_it_only_reads(self):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            self.assertEqual(405, self.web.ask(method=method)[0], method)

    def test_hosts(self):
        for host in ("localhost", "127.0.0.1", "LOCALHOST:8080", "[::1]:7480"):
            self.assertEqual(200, self.web.ask(host=host)[0], host)
        for host in ("evil.example", "localhost.evil.example", "evil.example:7480", "[::2]"):
            for path in ("/", "/api/now", "/page.js"):
                status, _, text = self.web.ask(path, host=host)
                self.assertEqual(421, status)
                self.assertIn("start longwire-web with --host", text)
        named = Web(self, self.longwire, "--host", "GPU1")
        self.assertEqual(200, named.ask(host="gpu1")[0])

    def test_headers(self):
        for path in ("/", "/page.js", "/api/now", "/nothing"):
            _, headers, _ = self.web.ask(path)
            policy = headers["Content-Security-Policy"]
            self.assertIn("default-src 'none'; script-src 'self'", policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual("nosniff", headers["X-Content-Type-Options"])

    def test_questions_that_are_wrong(self):
        for query in ("", "?device=0", "?device=-1&begin=1&end=2", "?device=0&begin=2&end=1",
                      "?device=0&begin=1&end=99999", "?device=0&begin=1&end=2&columns=0",
                      "?device=0&begin=1&end=2&columns=601", "?device=0&begin=1e9&end=2e9",
                      "?device=99999999999999999999&begin=1&end=2"):
            status, _, text = self.web.ask("/api/memory" + query)
            self.assertEqual((400, True), (status, "give device=N" in text), query)
        self.assertEqual(400, self.web.ask("/api/now?events_after=x")[0])
        for path in ("/../etc/passwd", "/nothing", "/%2e%2e/x"):
            self.assertEqual(404, self.web.ask(path)[0])

    def test_bytes_that_are_no_request(self):
        for junk in (b"\x16\x03\x01" + 300 * b"\xff", b"GET " + 20000 * b"a" + b"\r\n\r\n",
                     b"GET / HTTP/1.1\r\n\r\n", b"\0" * 4096):
            with socket.create_connection(("127.0.0.1", self.web.port)) as line:
                line.sendall(junk)
                line.shutdown(socket.SHUT_WR)
                line.settimeout(20)
                try:
                    line.recv(4096)
                except OSError:
                    pass
        self.assertEqual(200, self.web.ask()[0])

    def test_connections_that_say_nothing_end(self):
        """More of them than there are threads."""
        lines = [socket.create_connection(("127.0.0.1", self.web.port)) for _ in range(40)]
        for line in lines:
            self.addCleanup(line.close)
        self.assertEqual(200, self.web.ask()[0])

    def test_it_ends_at_once(self):
        start = time.monotonic()
        self.web.process.terminate()
        self.assertEqual(0, self.web.process.wait(30))
        self.assertLess(time.monotonic() - start, 15)


class CommandLineTest(unittest.TestCase):
    def refused(self, *words):
        result = server.run([server.build_folder() / "dist" / "bin" / "longwire-web", *words],
                            dict(os.environ))
        self.assertEqual("", result.out)
        return result.code, result.err

    def test_beyond_this_host_there_is_no_way_without_tls(self):
        for address in ("0.0.0.0", "[::]:80", "192.0.2.1:7480", "gpu1.example.org"):
            code, said = self.refused("--listen", address)
            self.assertEqual(2, code)
            self.assertIn("give --cert, --key and --ca, or listen at 127.0.0.1", said)

    def test_what_is_wrong(self):
        for words, code, sentence in (
                (["--cert", "x"], 2, "TLS takes --cert, --key and --ca"),
                (["--listen", "a:b:c"], 2, "--listen"), (["--nothing"], 2, "longwire-web --help"),
                (["--cert", "/x", "--key", "/x", "--ca", "/x"], 1, "cannot read /x")):
            said = self.refused(*words)
            self.assertEqual(code, said[0])
            self.assertIn(sentence, said[1])

    def test_an_address_that_is_taken(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            code, said = self.refused("--listen", f"127.0.0.1:{other.getsockname()[1]}")
            self.assertEqual(1, code)
            self.assertIn("cannot listen at 127.0.0.1:", said)


class TenantsTest(unittest.TestCase):
    """Who shows a certificate sees what the daemon would let him see."""

    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(busy.BusyServer())
        for words in (["client", "--name", "stranger", "--dir", cls.longwire.papers],
                      ["init", "--dir", cls.longwire.runtime / "others"],
                      ["client", "--name", "research", "--dir", cls.longwire.runtime / "others"]):
            made = cls.longwire.cli("cert", *words)
            assert made.code == 0, made.err
        papers = cls.longwire.papers
        cls.web = Web(cls, cls.longwire, "--cert", papers / "127.0.0.1.crt",
                      "--key", papers / "127.0.0.1.key", "--ca", papers / "ca.crt")
        server.wait_for(lambda: cls.see("operator")["picture"], 10, "an answer")
        cls.longwire.make_busy(cls)

    @classmethod
    def context(cls, name, folder=None):
        folder = folder or cls.longwire.papers
        context = ssl.create_default_context(cafile=cls.longwire.papers / "ca.crt")
        if name:
            context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
        return context

    @classmethod
    def see(cls, name):
        return cls.web.now(context=cls.context(name))

    def test_an_administrator_sees_all(self):
        def sees_all():
            now = self.see("operator")
            tenants = {one["tenant"] for one in now["picture"]["sessions"]}
            return tenants == {"research", "serving"} and "refused" in {
                one["kind"] for one in now["events"]}
        server.wait_for(sees_all, 10, "both sessions and the refusal")
        self.assertEqual({"identity": "operator", "tenant": "operator", "admin": True},
                         self.see("operator")["viewer"])

    def test_a_tenant_sees_its_own_alone(self):
        server.wait_for(lambda: self.see("serving")["picture"]["sessions"], 10, "the session")
        now = self.see("serving")
        self.assertEqual({"serving"}, {one["tenant"] for one in now["picture"]["sessions"]})
        self.assertEqual(["serving"], [one["tenant"] for one in now["picture"]["tenants"]])
        self.assertIsNone(now["latencies"])
        self.assertNotIn("research", json.dumps(now))
        begin = int(time.time()) - 60
        for device in (0, 1):
            _, _, text = self.web.ask(f"/api/memory?device={device}&begin={begin}&end={begin + 70}",
                                      context=self.context("serving"))
            self.assertNotIn("research", text)

    def test_who_is_in_no_tenant_sees_nothing(self):
        for path in ("/api/now", "/api/memory?device=0&begin=1&end=2"):
            status, _, text = self.web.ask(path, context=self.context("stranger"))
            self.assertEqual(403, status)
            self.assertIn("the server does not know the identity 'stranger'", text)
            self.assertNotIn("serving", text)

    def test_without_a_certificate_nobody_gets_in(self):
        for name, folder in ((None, None), ("research", self.longwire.runtime / "others")):
            with self.assertRaises(OSError):
                self.web.ask(context=self.context(name, folder))
        with self.assertRaises((OSError, http.client.HTTPException)):
            self.web.ask()  # without TLS
        self.assertEqual("serving", self.see("serving")["viewer"]["tenant"])

    def test_older_tls_is_refused(self):
        context = self.context("serving")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with self.assertRaises(OSError):
            self.web.ask(context=context)


class ChangesTest(unittest.TestCase):
    """What the daemon's configuration takes away is gone within seconds."""

    def test_who_is_removed_sees_nothing_more(self):
        longwire = self.enterContext(busy.BusyServer())
        papers = longwire.papers
        web = Web(self, longwire, "--cert", papers / "127.0.0.1.crt", "--key",
                  papers / "127.0.0.1.key", "--ca", papers / "ca.crt")
        context = ssl.create_default_context(cafile=papers / "ca.crt")
        context.load_cert_chain(papers / "research.crt", papers / "research.key")
        server.wait_for(lambda: web.now(context=context)["picture"], 10, "an answer")
        tenants = {name: block for name, block in longwire.tenants.items() if name != "research"}
        longwire.configure(tenants, longwire.settings)
        result = longwire.cli("admin", "reload")
        self.assertEqual(0, result.code, result.err)
        server.wait_for(lambda: web.ask(context=context)[0] == 403, 10, "the refusal")
        longwire.end_daemon()
        server.wait_for(lambda: web.ask(context=context)[0] == 503, 10, "no answer for anybody")
        self.assertIn("longwired does not say what you may see", web.ask(context=context)[2])


class WatchersTest(unittest.TestCase):
    """Members of watch_group look, and change nothing."""

    def as_watcher(self, words, group):
        return subprocess.run(words, user=OTHER_USER, group=group, extra_groups=[group], text=True,
                              env=self.longwire.environment(), capture_output=True, timeout=60)

    def test_they_look_and_change_nothing(self):
        games = next(int(line.split(":")[2]) for line in
                     pathlib.Path("/etc/group").read_text().splitlines()
                     if line.startswith("games:"))
        self.longwire = self.enterContext(server.Server(config="watch_group: games\n"))
        self.longwire.runtime.chmod(0o711)
        longwire = self.longwire.dist / "bin" / "longwire"
        seen = self.as_watcher([longwire, "status"], games)
        self.assertEqual(0, seen.returncode, seen.stderr)
        for words in (["drain"], ["reload"], ["cordon", "0"], ["kill", "1"]):
            result = self.as_watcher([longwire, "admin", *words], games)
            self.assertEqual(1, result.returncode, words)
            self.assertIn("members of the watch_group may only look", result.stderr)
        self.assertFalse(self.longwire.status()["draining"])
        reload = self.as_watcher(
            ["python3", "-c", CONTROL_CLIENT, self.longwire.runtime / "control", b"reload".hex()],
            games)
        self.assertIn("refused", reload.stdout)
        self.assertEqual(1, self.as_watcher([longwire, "status"], OTHER_USER).returncode)


if __name__ == "__main__":
    unittest.main()
