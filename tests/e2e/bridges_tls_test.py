"""Servers with TLS build bridges by the certificates that they show to clients, also where they
belong to no tenant; with one that is for clients' eyes only, copies pass the program."""
import json
import pathlib
import subprocess
import tempfile
import unittest

import programs
import server

TENANTS = [{"name": "research", "identities": ["alice"]}]


class BridgesTlsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.papers = folder / "papers"
        longwire = server.build_folder() / "dist" / "bin" / "longwire"
        for words in [["init"], ["server", "--name", "127.0.0.1"], ["client", "--name", "alice"]]:
            made = server.run([longwire, "cert", *words, "--dir", str(cls.papers)], {})
            assert made.code == 0, made.err
        cls.make_older("older")

    @classmethod
    def make_older(cls, name):
        """A certificate of the same authority for servers alone, as they were made before."""
        papers = cls.papers
        extensions = papers / "extensions"
        extensions.write_text("extendedKeyUsage=serverAuth\nsubjectAltName=IP:127.0.0.1\n")
        for words in (f"req -new -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key "
                      f"-out {name}.csr",
                      f"x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 "
                      f"-extfile extensions -out {name}.crt"):
            subprocess.run(["openssl", *words.split()], cwd=papers, check=True,
                           capture_output=True)
        (papers / f"{name}.key").chmod(0o600)

    def files(self, name):
        return {"certificate": str(self.papers / f"{name}.crt"),
                "key": str(self.papers / f"{name}.key"), "authority": str(self.papers / "ca.crt")}

    def run_on(self, certificate):
        config = json.dumps({"tls": self.files(certificate), "tenants": TENANTS})
        own = self.files("alice")
        with server.Server(config=config) as one, server.Server(config=config) as other:
            result = one.run("across_copies.static", "10", server=f"{one.address},{other.address}",
                             LONGWIRE_ACROSS=1, LONGWIRE_TRACE="summary",
                             LONGWIRE_CERT=own["certificate"], LONGWIRE_KEY=own["key"],
                             LONGWIRE_CA=own["authority"])
            said = result._replace(err="")  # a summary
            self.assertIsNone(programs.what_is_wrong("across_copies", said),
                              f"{result}{one.log_tail()}{other.log_tail()}")
            return result.err, one.log.read_text() + other.log.read_text()

    def test_with_the_servers_certificates(self):
        said, logs = self.run_on("127.0.0.1")
        self.assertIn("has a bridge to", logs)
        self.assertNotIn("pass through this host", said)

    def test_with_certificates_that_servers_do_not_show_each_other(self):
        said, logs = self.run_on("older")
        self.assertNotIn("has a bridge to", logs)
        self.assertEqual(1, said.count("pass through this host"), said)


if __name__ == "__main__":
    unittest.main()
