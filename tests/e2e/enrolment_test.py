"""Enrolment with real processes: an authority, a server with TLS, a signer; invite, join, run,
renew; and what strangers, false signers and clients without a right get."""
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
import unittest

import programs
import server
import tenants

IN_OPEN = 0x20
SIGNER_NAME = "signer.longwire.invalid"
# An authority for certificates and lists with any dates (openssl ca).
OPENSSL_CA = """
[ca]
default_ca = here
[here]
dir = {folder}
database = $dir/index
serial = $dir/serial
new_certs_dir = $dir
certificate = {papers}/ca.crt
private_key = {papers}/ca.key
default_md = sha256
default_crl_days = 30
policy = any
x509_extensions = client
unique_subject = no
[any]
commonName = supplied
[client]
basicConstraints = critical,CA:FALSE
extendedKeyUsage = clientAuth
"""


class OpenWatch:
    """Counts how often a file is opened by whatever process (inotify)."""

    def __init__(self, path):
        library = ctypes.CDLL(None, use_errno=True)
        self.descriptor = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if library.inotify_add_watch(self.descriptor, str(path).encode(), IN_OPEN) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")

    def count(self):
        try:
            return len(os.read(self.descriptor, 65536)) // struct.calcsize("iIII")
        except BlockingIOError:
            return 0


class EnrolServer(tenants.TenantServer):
    """A server whose file says where it listens, with a signer beside it."""

    def start_daemon(self):
        self.settings["listen"] = self.address
        super().start_daemon()

    def start_signer(self, *arguments):
        self.signer_port = getattr(self, "signer_port", None) or server.free_port()
        self.signer_address = f"127.0.0.1:{self.signer_port}"
        self._start("longwire-signer", "--dir", self.papers, "--listen", self.signer_address,
                    "--state", self.runtime / "signer-state",
                    "--revoked", self.runtime / "ca.crl", *arguments)
        server.wait_for(lambda: (self.runtime / "signer").exists() and self.signer_answers(), 20,
                        "the signer")

    def signer_answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.signer_port), 1).close()
            return True
        except OSError:
            return False

    def end_signer(self, how=signal.SIGTERM):
        process = self.children.pop("longwire-signer")
        process.send_signal(how)
        process.wait(20)

    def __exit__(self, *arguments):
        if "longwire-signer" in self.children:
            self.end_signer()
        super().__exit__(*arguments)


class EnrolmentTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        blocks = {"alice": {}, "operator": {"admin": True}}
        cls.longwire = cls.enterClassContext(EnrolServer(blocks))
        cls.longwire.start_signer()

    def setUp(self):
        self.home = self.longwire.runtime / self.id().rsplit(".", 1)[1]
        self.folder = self.home / ".config" / "longwire"
        self.home.mkdir(exist_ok=True)

    def cli(self, *words, timeout=60):
        return server.run([self.longwire.dist / "bin" / "longwire", *map(str, words)],
                          self.longwire.environment(HOME=self.home), timeout)

    def invite(self, name="alice", *options):
        result = self.cli("invite", name, "--config", self.longwire.config, *options)
        self.assertEqual(0, result.code, result.err)
        self.assertRegex(result.out, r"\A\S+/[0-9a-f]{64}/[0-9a-f]{64}\n\Z")
        return result.out.strip()

    def join(self, line, *options):
        return self.cli("join", *options, line)

    def joined(self, line):
        result = self.join(line, "--no-trial")
        self.assertEqual(0, result.code, result.out + result.err)

    def refused(self, result, sentence):
        self.assertEqual(1, result.code, result.out + result.err)
        self.assertIn(sentence, result.err)
        self.assertEqual([], [path for path in self.folder.glob("*")], "files were left")

    def serial(self):
        shown = self.cli("cert", "show", self.folder / "client.crt").out
        return re.search(r"^serial +(\w+)$", shown, re.M).group(1)

    def openssl(self, *words):
        """An authority's command, with its files in a folder of the test's own."""
        folder = self.home / "authority"
        if not folder.exists():
            folder.mkdir()
            (folder / "index").touch()
            (folder / "serial").write_text("1000\n")
            (folder / "ca.conf").write_text(
                OPENSSL_CA.format(folder=folder, papers=self.longwire.papers))
        subprocess.run(["openssl", words[0], *(["-config", folder / "ca.conf"] if words[0] == "ca"
                                               else []), *map(str, words[1:])],
                       check=True, cwd=folder, capture_output=True)

    def issue(self, start, end):
        """alice's files with a certificate that is valid from `start` to `end` days from now."""
        def date(days):
            return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + days * 86400))
        self.folder.mkdir(parents=True, exist_ok=True)
        key = self.folder / "client.key"
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
        key.chmod(0o600)
        self.openssl("req", "-new", "-key", key, "-subj", "/CN=alice", "-out", "alice.csr")
        self.openssl("ca", "-batch", "-notext", "-startdate", date(start), "-enddate", date(end),
                     "-in", "alice.csr", "-out", self.folder / "client.crt")
        (self.folder / "ca.crt").write_bytes((self.longwire.papers / "ca.crt").read_bytes())

    def expect_service(self):
        """Another invited user still gets in, and the signer is the same process."""
        self.assertIsNone(self.longwire.children["longwire-signer"].poll(), "the signer ended")
        result = self.join(self.invite(), "--no-trial", "--dir", self.home / "other", "--force")
        self.assertEqual(0, result.code, result.out + result.err)

    def test_invite_join_run(self):
        line = self.invite()
        result = self.join(line)
        self.assertEqual(0, result.code, result.out + result.err)
        self.assertIn("the certificate of 'alice'", result.out)
        self.assertIn("all is well", result.out)
        modes = {path.name: path.stat().st_mode & 0o777 for path in self.folder.iterdir()}
        self.assertEqual({"client.crt": 0o644, "client.key": 0o600, "ca.crt": 0o644,
                          "signer": 0o644}, modes)
        ran = server.run(self.longwire.command(self.longwire.program("vector_add.static")),
                         self.longwire.environment(HOME=self.home))
        self.assertIsNone(programs.what_is_wrong("vector_add", ran), self.longwire.log_tail())

    def test_what_no_session_would_open_for(self):
        """An identity that no tenant lists: said when it is invited, and when it joins."""
        invited = self.cli("invite", "nobody", "--config", self.longwire.config)
        self.assertIn("no tenant in", invited.err)
        result = self.join(invited.out.strip())
        self.assertEqual(3, result.code, result.out + result.err)
        self.assertIn("does not know the identity 'nobody'", result.out)
        self.assertIn("list it at a tenant", result.out)
        self.assertIn("the certificate is in place", result.err)
        self.assertTrue((self.folder / "client.crt").exists())

    def test_a_second_use_is_refused(self):
        line = self.invite()
        other = self.join(line, "--no-trial", "--dir", self.home / "first")
        self.assertEqual(0, other.code, other.err)
        self.refused(self.join(line), "used already")

    def test_a_wrong_secret_is_refused(self):
        line = self.invite()
        wrong = line[:-1] + ("0" if line[-1] != "0" else "1")
        self.refused(self.join(wrong), "its secret is wrong")
        self.joined(line)

    def test_an_invitation_expires(self):
        line = self.invite("alice", "--for", "1s")
        time.sleep(2.1)
        self.refused(self.join(line), "expired on")

    def test_what_is_no_line(self):
        result = self.join("not-a-line")
        self.assertEqual(2, result.code)
        self.assertIn("copy the whole line", result.err)

    def test_names_are_identities(self):
        for name in ("uid:0", "loopback", "a/b"):
            result = self.cli("invite", name, "--config", self.longwire.config)
            self.assertEqual(1, result.code)
            self.assertIn("is no name for an identity", result.err)
            self.assertEqual("", result.out)

    def test_nothing_is_replaced_without_force(self):
        self.folder.mkdir(parents=True)
        (self.folder / "client.key").write_text("precious")
        line = self.invite()
        result = self.join(line)
        self.assertEqual(1, result.code)
        self.assertIn("--force replaces it", result.err)
        self.assertEqual("precious", (self.folder / "client.key").read_text())
        # Nothing was sent: the invitation is still good.
        result = self.join(line, "--force", "--no-trial")
        self.assertEqual(0, result.code, result.err)

    def test_a_wrong_authority_gets_nothing(self):
        address, fingerprint, secret = self.invite().split("/")
        other = ("1" if fingerprint[0] == "0" else "0") + fingerprint[1:]
        self.refused(self.join(f"{address}/{other}/{secret}"), "nothing was sent")
        self.joined(f"{address}/{fingerprint}/{secret}")

    def expect_nothing_for(self, pair, issuer, sentence):
        """Somebody in between with this certificate, and `issuer` behind it in the chain."""
        chain = self.home / "chain.crt"
        chain.write_text(pathlib.Path(f"{pair}.crt").read_text() + issuer.read_text())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, f"{pair}.key")
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        got = []

        def serve():
            connection, _ = listener.accept()
            connection.settimeout(20)
            try:
                with context.wrap_socket(connection, server_side=True) as encrypted:
                    got.append(encrypted.recv(1000))
            except OSError:
                connection.close()
        thread = threading.Thread(target=serve)
        thread.start()
        line = self.invite()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        self.refused(self.join(line.replace(self.longwire.signer_address, address)), sentence)
        thread.join()
        self.assertIn(got, ([], [b""]), "the attacker got bytes")
        # The invitation is still good.
        result = self.join(line, "--no-trial", "--dir", self.home / "other", "--force")
        self.assertEqual(0, result.code, result.err)

    def test_somebody_in_between_gets_no_secret(self):
        """With an authority of their own, also with the true one's certificate in the chain; or
        with a certificate that the true one has issued to a server or a user."""
        attacker, papers = self.home / "attacker", self.longwire.papers
        for words in (["init"], ["server", "--name", SIGNER_NAME]):
            self.assertEqual(0, self.cli("cert", *words, "--dir", attacker).code)
        self.expect_nothing_for(attacker / SIGNER_NAME, attacker / "ca.crt",
                                "of another authority")
        self.expect_nothing_for(attacker / SIGNER_NAME, papers / "ca.crt", "nothing was sent")
        for holder in ("127.0.0.1", "operator"):
            self.expect_nothing_for(papers / holder, papers / "ca.crt", "nothing was sent")

    def connect_from(self, host):
        connection = socket.create_connection(("127.0.0.1", self.longwire.signer_port), 20,
                                              source_address=(host, 0))
        self.addCleanup(connection.close)
        return connection

    def test_garbage(self):
        context = ssl.create_default_context(cafile=self.longwire.papers / "ca.crt")
        for garbage in (b"", b"\0" * 4, b"\xff" * 4, b"\x05\0\0\0hello", b"\x10\0\0\0\x01\x01",
                        b"\x02\0\0\0\x01\x09", os.urandom(70000)):
            with context.wrap_socket(self.connect_from("127.0.0.5"),
                                     server_hostname=SIGNER_NAME) as encrypted:
                try:
                    encrypted.sendall(garbage)
                    if garbage and len(garbage) != 6:
                        self.assertIn(b" ", encrypted.recv(1000), "no sentence")
                except OSError:
                    pass
            plain = self.connect_from("127.0.0.6")
            plain.sendall(garbage)
            plain.close()
        self.expect_service()

    def test_slow_and_too_many_connections(self):
        silent = [self.connect_from("127.0.0.2") for _ in range(8)]
        self.assertEqual(b"", self.connect_from("127.0.0.2").recv(1), "a ninth one was served")
        self.expect_service()
        many = [self.connect_from(f"127.0.1.{1 + i // 8}") for i in range(80)]
        self.expect_service()  # it waits until the others' time is over
        start = time.monotonic()
        self.assertEqual(b"", silent[0].recv(1), "a silent connection stays")
        self.assertLess(time.monotonic() - start, 15)
        del many

    def test_a_restart_keeps_invitations(self):
        used, waiting = self.invite(), self.invite()
        self.joined(used)
        self.longwire.end_signer(signal.SIGKILL)
        self.longwire.start_signer()
        result = self.join(used, "--force", "--no-trial")
        self.assertIn("used already", result.err)
        result = self.join(waiting, "--force", "--no-trial")
        self.assertEqual(0, result.code, result.err)

    def test_a_certificate_is_renewed(self):
        self.joined(self.invite())
        key, first = (self.folder / "client.key").read_bytes(), self.serial()
        early = self.cli("cert", "renew", "--if-due")
        self.assertEqual(0, early.code, early.err)
        self.assertIn("no new one is due", early.out)
        self.assertEqual(first, self.serial())
        renewed = self.cli("cert", "renew")
        self.assertEqual(0, renewed.code, renewed.err)
        self.assertNotEqual(first, self.serial())
        self.assertEqual(key, (self.folder / "client.key").read_bytes())
        ran = server.run(self.longwire.command(self.longwire.program("vector_add.static")),
                         self.longwire.environment(HOME=self.home))
        self.assertIsNone(programs.what_is_wrong("vector_add", ran), self.longwire.log_tail())

    def test_for_programs(self):
        invited = self.cli("invite", "alice", "--config", self.longwire.config, "--json")
        joined = self.join(json.loads(invited.out)["line"], "--json")
        self.assertEqual((0, 0), (invited.code, joined.code), invited.err + joined.err)
        said = json.loads(joined.out)
        self.assertEqual((str(self.folder / "client.crt"), "alice", 0),
                         (said["certificate"], said["identity"], said["doctor"]["problems"]))
        for due, renewed in ((["--if-due"], False), ([], True)):
            said = json.loads(self.cli("cert", "renew", "--json", *due).out)
            self.assertEqual(("alice", renewed), (said["identity"], said["renewed"]))

    def test_what_is_due_is_renewed(self):
        self.issue(-20, 9)
        before = self.serial()
        result = self.cli("cert", "renew", "--if-due", "--server", self.longwire.signer_address)
        self.assertEqual(0, result.code, result.err)
        self.assertNotEqual(before, self.serial())

    def test_what_expired_is_not_renewed(self):
        self.issue(-20, -1)
        result = self.cli("cert", "renew", "--server", self.longwire.signer_address)
        self.assertEqual(1, result.code)
        self.assertIn("expired on", result.err)
        self.assertIn("ask for an invitation", result.err)

    def test_what_was_revoked_is_not_renewed(self):
        self.issue(-1, 100)
        crl = self.longwire.runtime / "ca.crl"
        self.addCleanup(crl.unlink)
        self.openssl("ca", "-revoke", self.folder / "client.crt")
        self.openssl("ca", "-gencrl", "-out", crl)
        before = self.serial()
        result = self.cli("cert", "renew", "--server", self.longwire.signer_address)
        self.assertEqual(1, result.code)
        self.assertIn("was revoked", result.err)
        self.assertEqual(before, self.serial())

    def test_revoking_by_name_finds_what_the_signer_issued(self):
        self.joined(self.invite())
        serials = [self.serial()]
        self.assertEqual(0, self.cli("cert", "renew").code)
        serials.append(self.serial())
        authority = self.home / "of-its-own"
        authority.mkdir()
        for name in "ca.crt", "ca.key":
            shutil.copy(self.longwire.papers / name, authority / name)
        revoke = ["cert", "revoke", "alice", "--dir", authority, "--issued"]
        result = self.cli(*revoke, self.home / "nowhere")
        self.assertEqual(1, result.code)
        self.assertIn("what longwire-signer has issued cannot be read", result.err)
        result = self.cli(*revoke, self.longwire.runtime / "signer-state" / "issued")
        self.assertEqual(0, result.code, result.err)
        for serial in serials:
            self.assertIn(f"'alice' (serial {serial}) is revoked", result.out)

    def test_without_a_signer(self):
        self.longwire.end_signer()
        try:
            result = self.cli("invite", "alice", "--config", self.longwire.config)
            self.assertEqual(1, result.code)
            self.assertIn("systemctl start longwire-signer", result.err)
            line = f"{self.longwire.signer_address}/{'0' * 64}/{'0' * 64}"
            self.refused(self.join(line), "is longwire-signer running there")
        finally:
            self.longwire.start_signer()

    def test_only_the_signer_reads_the_authoritys_key(self):
        watch = OpenWatch(self.longwire.papers / "ca.key")
        self.longwire.end_daemon()
        self.longwire.start_daemon()
        result = self.join(self.invite())
        self.assertEqual(0, result.code, result.out + result.err)
        self.assertEqual(0, self.cli("cert", "renew").code)
        self.assertEqual(0, self.cli("status", "--server", self.longwire.address).code)
        self.assertEqual(0, watch.count(), "somebody opened ca.key")
        self.longwire.end_signer()
        self.longwire.start_signer()
        self.assertEqual(1, watch.count(), "the signer reads it once, when it starts")


if __name__ == "__main__":
    unittest.main()
