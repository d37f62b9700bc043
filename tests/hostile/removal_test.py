#!/usr/bin/env python3
"""Removing somebody: each way ends a running program within a second, both sides say why, and a
neighbour goes on."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import programs  # noqa: E402
import proxy  # noqa: E402
import server  # noqa: E402
import tenants  # noqa: E402

OTHER_USER = 4711
AUTHORITY = """
[ca]
default_ca = here
[here]
database = {folder}/index
rand_serial = yes
new_certs_dir = {folder}
default_md = sha256
policy = names
unique_subject = no
[names]
commonName = supplied
[client]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = clientAuth
"""


class Removal(unittest.TestCase):
    """A server with mutual TLS; a victim and a neighbour with certificates, an operator."""

    blocks = {"operator": {"admin": True}, "victim": {}, "neighbour": {},
              "local": {"identities": ["uid:0"]}}

    def setUp(self):
        self.longwire = self.enterContext(tenants.TenantServer(dict(self.blocks),
                                                               software_devices=2))
        server.wait_for(lambda: "ready" in self.longwire.log_tail(), 20, "the daemon")
        self.neighbour = self.start("neighbour")

    def start(self, tenant, to=None, mode="until-error", environment=None):
        process = subprocess.Popen(
            self.longwire.command(self.longwire.program("steady.static"), mode, server=to),
            env=environment or self.longwire.environment_of(tenant), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual("READY\n", server.next_line(process), self.longwire.log_tail())
        return process

    def admin(self, *words, code=0):
        result = self.longwire.cli("admin", *words)
        self.assertEqual(code, result.code, result.out + result.err)
        return result.out if code == 0 or "--json" in words else result.err

    def reload(self, blocks, settings=None):
        self.longwire.configure(blocks, settings)
        return self.admin("reload")

    def without(self, name):
        return {other: block for other, block in self.blocks.items() if other != name}

    def expect_end(self, process, sentence, seconds=1):
        """The program hears it, gets errors from then on, and the log says it, too."""
        began = time.monotonic()
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.fail(f"the program goes on after {seconds} s; {self.longwire.log_tail()}")
        print(f"{self._testMethodName}: {time.monotonic() - began:.3f} s")
        self.assertIn("ERROR 719", out)
        self.assertIn("the session has ended: ", err)
        self.assertRegex(err, sentence)
        self.assertRegex(self.longwire.log_tail(200), r"\bended after .*" + sentence)

    def expect_neighbour(self):
        self.assertIsNone(self.neighbour.poll(), "the neighbour ended")
        result = self.longwire.run_as("neighbour", self.longwire.program("vector_add.static"))
        self.assertIsNone(programs.what_is_wrong("vector_add", result), self.longwire.log_tail())

    def expect_refusal(self, tenant, sentence, **more):
        result = self.longwire.run_as(tenant, self.longwire.program("vector_add.static"), **more)
        self.assertNotEqual(0, result.code)
        self.assertRegex(result.err, sentence)

    def session_of(self, tenant):
        [session] = [one for one in self.longwire.status_as("operator")["sessions"]
                     if one["tenant"] == tenant]
        return session


class ConfigurationTest(Removal):
    def test_a_reload_without_the_tenant(self):
        victim = self.start("victim")
        self.reload(self.without("victim"))
        self.expect_end(victim, "the identity 'victim' was taken out of the server's configuration")
        self.expect_refusal("victim", "does not know the identity 'victim'")
        self.expect_neighbour()

    def test_a_reload_without_the_identity(self):
        victim = self.start("victim")
        self.reload({**self.blocks, "victim": {"identities": ["somebody-else"]}})
        self.expect_end(victim, "the identity 'victim' was taken out of the server's configuration")
        self.expect_neighbour()

    def test_a_user_of_this_host(self):
        door = f"unix:{self.longwire.door}"
        victim = self.start("local", to=door, environment=self.longwire.environment())
        self.reload(self.without("local"))
        self.expect_end(victim, "the identity 'uid:0' was taken out of the server's configuration")
        self.expect_neighbour()

    def test_a_signal_is_a_reload_too(self):
        victim = self.start("victim")
        self.longwire.configure(self.without("victim"))
        self.longwire.children["longwired"].send_signal(signal.SIGHUP)
        self.expect_end(victim, "the identity 'victim' was taken out of the server's configuration")

    def test_a_session_that_waits_to_be_resumed(self):
        way = proxy.Proxy(self.longwire.port)
        self.addCleanup(way.close)
        victim = self.start("victim", to=way.address)
        way.listener.shutdown(proxy.socket.SHUT_RDWR)
        way.listener.close()
        way.cut()
        server.wait_for(lambda: "waiting for it to come back" in self.longwire.log_tail(50), 20,
                        "the broken connection")
        self.reload(self.without("victim"))
        server.wait_for(lambda: len(self.longwire.status_as("operator")["sessions"]) == 1, 1,
                        "the end of the session that waited")
        host, port = way.address.split(":")
        way.listener = proxy.socket.create_server((host, int(port)))
        proxy.threading.Thread(target=way.serve, daemon=True).start()
        out, err = victim.communicate(timeout=30)
        self.assertIn("ERROR 719", out)
        self.assertIn("does not know the identity 'victim'", err)
        self.expect_neighbour()

    def test_the_longest_session(self):
        self.reload({**self.blocks, "victim": {"longest_session": "3s"}})
        began = time.monotonic()
        victim = self.start("victim")
        time.sleep(max(0, began + 2 - time.monotonic()))
        self.assertIsNone(victim.poll(), "it ended early")
        self.expect_end(victim, r"\(longest_session: 3s\)", 4)
        self.expect_neighbour()

    def test_the_longest_idle_time(self):
        """Only what is idle: the neighbour's limit is the same, and it computes."""
        idle = {"longest_idle": "2s"}
        victim = subprocess.Popen(
            self.longwire.command(self.longwire.program("hold_session.static")),
            env=self.longwire.environment_of("victim"), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(victim.communicate)
        self.addCleanup(victim.kill)
        self.assertEqual("READY\n", server.next_line(victim))
        self.reload({**self.blocks, "victim": idle, "neighbour": idle})
        # It waits in pause(), and hears it all the same.
        said = victim.stderr.readline()
        self.assertIn("(longest_idle: 2s)", said)
        time.sleep(1)
        self.expect_neighbour()


class CertificateTest(Removal):
    def certificate_until(self, seconds):
        """The victim's certificate, good for so long."""
        papers = self.longwire.papers
        (papers / "config").write_text(AUTHORITY.format(folder=papers))
        (papers / "index").touch()
        subject = f"{papers}/victim"
        end = time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))
        for words in (["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                       "-nodes", "-keyout", f"{subject}.key", "-subj", "/CN=victim", "-out",
                       f"{subject}.csr"],
                      ["ca", "-config", papers / "config", "-batch", "-notext", "-extensions",
                       "client", "-cert", papers / "ca.crt", "-keyfile", papers / "ca.key",
                       "-startdate", "20200101000000Z", "-enddate", end, "-in", f"{subject}.csr",
                       "-out", f"{subject}.crt"]):
            subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
        os.chmod(f"{subject}.key", 0o600)

    def test_a_certificate_expires(self):
        end = time.time() + 6
        self.certificate_until(6)
        victim = self.start("victim")
        time.sleep(max(0, end - 1 - time.time()))
        self.assertIsNone(victim.poll(), "it ended early")
        self.expect_end(victim, "the certificate of 'victim' expired on", 3)
        self.expect_neighbour()

    def revoke(self, *names):
        result = self.longwire.cli("cert", "revoke", *names, "--dir", str(self.longwire.papers))
        self.assertEqual(0, result.code, result.err)
        return result.out

    def use_list(self):
        self.revoke()
        text = json.loads(self.longwire.config.read_text())
        text["tls"]["revocations"] = str(self.longwire.papers / "revoked.crl")
        self.longwire.config.write_text(json.dumps(text))
        self.admin("reload")

    def test_a_certificate_is_revoked(self):
        self.use_list()
        victim = self.start("victim")
        self.assertIn("is revoked", self.revoke("victim"))
        sentence = r"the certificate of 'victim' \(serial [0-9A-F]+\) was revoked on"
        self.expect_end(victim, sentence)
        self.expect_refusal("victim", sentence)
        self.expect_neighbour()

    def test_an_earlier_certificate_of_the_user_is_revoked_too(self):
        old = (self.longwire.papers / "victim.crt").read_bytes()
        key = (self.longwire.papers / "victim.key").read_bytes()
        made = self.longwire.cli("cert", "client", "--name", "victim", "--force", "--dir",
                                 str(self.longwire.papers))
        self.assertEqual(0, made.code, made.err)
        self.assertEqual(2, self.revoke("victim").count("is revoked"))
        self.assertEqual(2, self.revoke("victim").count("was revoked before"))
        self.use_list()
        self.expect_refusal("victim", "was revoked on")
        (self.longwire.papers / "victim.crt").write_bytes(old)
        (self.longwire.papers / "victim.key").write_bytes(key)
        self.expect_refusal("victim", "was revoked on")
        self.expect_neighbour()

    def test_who_is_unknown_cannot_be_revoked(self):
        result = self.longwire.cli("cert", "revoke", "nobody", "--dir", str(self.longwire.papers))
        self.assertEqual(1, result.code)
        self.assertIn("has no certificate of 'nobody'", result.err)


class AdministratorTest(Removal):
    """Without a certificate, at the control socket, though the server has TLS."""

    def test_sessions_are_listed(self):
        text = self.admin("sessions")
        self.assertRegex(text, r"^SESSION +TENANT +IDENTITY +FROM +DEVICES +MEMORY +FOR +PROGRAM\n"
                               r"\d+ +neighbour +neighbour +127\.0\.0\.1:\d+ +\d .*steady")
        [session] = json.loads(self.admin("sessions", "--json"))
        self.assertEqual("neighbour", session["tenant"])

    def test_kill(self):
        victim = self.start("victim")
        number = str(self.session_of("victim")["id"])
        self.assertEqual(f"session {number} of 'victim' has been ended\n",
                         self.admin("kill", number))
        self.expect_end(victim, "the server's administrator ended this session")
        self.expect_neighbour()
        self.assertIn(f"there is no session {number};", self.admin("kill", number, code=1))

    def test_evict(self):
        for name, kind in (("victim", "tenant"), ("uid:0", "identity")):
            victims = [self.start("victim")] if name == "victim" else [
                self.start("local", to=f"unix:{self.longwire.door}",
                           environment=self.longwire.environment()) for _ in range(2)]
            count = "1 session" if name == "victim" else "2 sessions"
            self.assertEqual(f"{count} of '{name}' ended\n", self.admin("evict", name))
            for victim in victims:
                self.expect_end(victim, f"ended all sessions of the {kind} '{name}'")
        self.assertEqual("0 sessions of 'victim' ended\n", self.admin("evict", "victim"))
        self.assertIn("no tenant and no identity 'nobody'", self.admin("evict", "nobody", code=1))
        self.expect_neighbour()

    def test_drain(self):
        self.admin("drain")
        self.expect_refusal("victim", "the server takes no new sessions: its administrator")
        self.assertIsNone(self.neighbour.poll())
        self.assertIn("draining: no new sessions", self.longwire.cli("status").out)
        self.restart()
        self.expect_refusal("victim", "the server takes no new sessions: its administrator")
        self.longwire.must_log("was said to an earlier longwired and holds")
        self.admin("drain", "--off")
        self.restart()
        self.expect_neighbour()

    def restart(self):
        self.longwire.end_daemon()
        self.longwire.start_daemon()

    def test_what_is_withdrawn_but_cannot_be_kept(self):
        kept = self.longwire.runtime / "warden.withdrawn"
        kept.with_name(kept.name + ".new").mkdir()
        self.assertIn("a restart of longwired forgets it", self.admin("cordon", "1"))
        kept.with_name(kept.name + ".new").rmdir()
        kept.write_text("device one\n")
        self.restart()
        self.longwire.must_log("a line that is not understood: 'device one'")
        self.expect_refusal("victim", "the server takes no new sessions: its administrator")
        self.admin("drain", "--off")
        self.assertEqual("", kept.read_text())
        self.expect_neighbour()

    def test_cordon(self):
        self.assertEqual("device 0 gets no new sessions any more; those that it has go on\n",
                         self.admin("cordon", "0"))
        self.assertIn("cordoned", self.longwire.cli("status").out)
        for _ in range(2):
            self.start("victim")
        devices = [seat.get("device", 0) for one in self.longwire.status_as("operator")["sessions"]
                   if one["tenant"] == "victim" for seat in one["seats"]]
        self.assertEqual([1, 1], devices)
        self.restart()
        self.admin("cordon", "1")
        self.expect_refusal("victim", "lets no new sessions onto device 0, 1")
        self.assertIn("no device 7", self.admin("cordon", "7", code=1))
        self.admin("cordon", "0", "--off")
        self.expect_neighbour()

    def test_for_programs(self):
        done = json.loads(self.admin("cordon", "0", "--json"))
        self.assertEqual((True, 1), (done["done"], len(done["sentences"])))
        refused = json.loads(self.admin("kill", "1", "--json", code=1))
        self.assertEqual((False, ["there is no session 1; longwire admin sessions lists them"]),
                         (refused["done"], refused["sentences"]))
        self.admin("cordon", "0", "--off")

    def test_wrong_words(self):
        for words in (("kill",), ("kill", "me"), ("evict",), ("cordon",), ("reload", "--off"),
                      ("drain", "0", "now"), ("checkpoint", "1"), ("restore",),
                      ("checkpoint", "me", "file"),
                      ("sessions", "--off"), ("kill", "1", "2")):
            self.assertRegex(self.admin(*words, code=2), "[Ss]ee longwire admin .*--help")

    def as_user(self, *words, groups=(), **environment):
        result = subprocess.run(
            [self.longwire.dist / "bin" / "longwire", *words], user=OTHER_USER, group=OTHER_USER,
            extra_groups=list(groups), env=self.longwire.environment(**environment), text=True,
            capture_output=True, timeout=60)
        return result.returncode, result.stdout, result.stderr

    def test_other_users_of_the_host_may_not(self):
        self.longwire.runtime.chmod(0o711)
        for words in (("admin", "reload"), ("admin", "evict", "neighbour"), ("status",)):
            code, _, err = self.as_user(*words)
            self.assertEqual(1, code)
            self.assertIn("administered by root, by the user that it runs as and by members of its "
                          "admin_group", err)
        # Nor if the file were open to them.
        (self.longwire.runtime / "control").chmod(0o666)
        code, _, err = self.as_user("admin", "evict", "neighbour")
        self.assertEqual(1, code)
        self.assertIn("only root, the user that longwired runs as and members of its admin_group",
                      err)
        self.expect_neighbour()

    def test_a_tenants_certificate_is_not_enough(self):
        for words in (["evict", "neighbour"], ["drain"], ["cordon", "0"], ["drain", "0"],
                      ["checkpoint", "1", "file"], ["restore", "file"]):
            result = server.run([self.longwire.dist / "bin" / "longwire", "admin", *words,
                                 "--server", self.longwire.address],
                                self.longwire.environment_of("victim"))
            self.assertEqual(1, result.code)
            self.assertIn("only an administrator may do that", result.err)
        self.expect_neighbour()


class LocalTest(unittest.TestCase):
    """A server without TLS and without tenants."""

    def run_as(self, longwire, *words, group=OTHER_USER):
        result = subprocess.run(
            [longwire.dist / "bin" / "longwire", *words], user=OTHER_USER, group=group,
            extra_groups=[group], env=longwire.environment(), text=True, capture_output=True,
            timeout=60)
        return result.returncode, result.stdout + result.stderr

    def test_other_users_do_not_reload_over_the_network_either(self):
        longwire = self.enterContext(server.Server())
        code, said = self.run_as(longwire, "admin", "reload", "--server", longwire.address)
        self.assertEqual(1, code, said)
        self.assertIn("only an administrator may do that", said)
        self.assertEqual(0, longwire.cli("admin", "reload", "--server", longwire.address).code)

    def test_members_of_the_group_may(self):
        group = next(line.split(":") for line in pathlib.Path("/etc/group").read_text().splitlines()
                     if line.startswith("games:"))
        longwire = self.enterContext(server.Server(config=f"admin_group: {group[0]}\n"))
        longwire.runtime.chmod(0o711)
        server.wait_for((longwire.runtime / "control").exists, 20, "the control socket")
        code, said = self.run_as(longwire, "admin", "sessions", group=int(group[2]))
        self.assertEqual(0, code, said)
        self.assertTrue(re.match("SESSION ", said), said)
        code, said = self.run_as(longwire, "admin", "sessions")
        self.assertEqual(1, code, said)


if __name__ == "__main__":
    unittest.main()
