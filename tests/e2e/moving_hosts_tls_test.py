"""Sessions of two tenants that move between servers with TLS: each server by its own certificate,
each session as that of the identity which its client has proved."""
import json
import pathlib
import tempfile
import time
import unittest

import server
from two_servers import TwoServers

TENANTS = [{"name": "research", "identities": ["alice"]}, {"name": "teaching",
                                                          "identities": ["bob"]}]


class MovingHostsTlsTest(TwoServers):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.papers = folder / "papers"
        for words in (["init"], ["server", "--name", "gpu1,127.0.0.1"],
                      ["server", "--name", "gpu2,127.0.0.1"], ["client", "--name", "alice"],
                      ["client", "--name", "bob"]):
            cls.certify(*words)

    @classmethod
    def certify(cls, *words):
        longwire = server.build_folder() / "dist" / "bin" / "longwire"
        made = server.run([longwire, "cert", *words, "--dir", str(cls.papers)], {})
        assert made.code == 0, made.err

    def files(self, name):
        return {"certificate": str(self.papers / f"{name}.crt"),
                "key": str(self.papers / f"{name}.key"), "authority": str(self.papers / "ca.crt")}

    def config(self, name, **more):
        return {"tls": self.files(name), "tenants": TENANTS, "resume_grace": "20s", **more}

    def serve(self, **there):
        self.both = [
            self.enterContext(server.Server(config=json.dumps(config))) for config in
            (self.config("gpu1", moves_from=["gpu2"]),
             self.config("gpu2", **{"moves_from": ["gpu1"], **there}))]
        return self.both

    def start_as(self, name, longwire):
        own = self.files(name)
        more = {"LONGWIRE_CERT": own["certificate"], "LONGWIRE_KEY": own["key"],
                "LONGWIRE_CA": own["authority"]}
        plain = longwire.environment
        longwire.environment = lambda **given: plain(**{**more, **given})
        try:
            return self.start(longwire)
        finally:
            longwire.environment = plain

    def sessions(self, longwire):
        listed = longwire.cli("admin", "sessions", "--json")
        self.assertEqual(0, listed.code, listed)
        return {one["identity"]: one for one in json.loads(listed.out)}

    def reload(self, longwire, **more):
        longwire.config_file.write_text(json.dumps(self.config(**more)))
        done = longwire.cli("admin", "reload")
        self.assertEqual(0, done.code, done)

    def is_empty(self):
        return not any(self.sessions(one) for one in self.both)

    def test_two_tenants_there_and_back(self):
        here, there = self.serve()
        alice, bob = self.start_as("alice", here), self.start_as("bob", here)
        for _ in range(2):
            drained = here.cli("admin", "drain", "--to", there.address, timeout=120)
            self.assertEqual(0, drained.code, (drained, self.logs()))
            self.assertEqual({}, self.sessions(here))
            seen = self.sessions(there)
            self.assertEqual({"alice": "research", "bob": "teaching"},
                             {name: one["tenant"] for name, one in seen.items()})
            here.cli("admin", "drain", "--off")
            here, there = there, here
            time.sleep(0.5)
        self.expect_right(alice)
        self.expect_right(bob)
        self.expect_empty()

    def test_whose_session_it_is_decides_the_server_that_gets_it(self):
        here, there = self.serve(tenants=TENANTS[1:])
        alice, bob = self.start_as("alice", here), self.start_as("bob", here)
        number = self.sessions(here)["alice"]["id"]

        def refused(reason):
            said = self.migrate(here, number, there.address)
            self.assertEqual(1, said.code, said)
            self.assertIn(reason, said.err)
        refused("the server does not know the identity 'alice'")
        self.reload(there, name="gpu2", moves_from=["gpu1"],
                    tenants=[{"name": "teaching", "identities": ["alice", "bob"]}])
        refused("'alice' belongs to the tenant 'teaching' here, and to 'research' there")
        self.reload(there, name="gpu2", moves_from=["alice"])
        refused("takes no sessions from 'gpu1'; its administrator can add that name to moves_from")
        # A certificate that was revoked at the other server alone.
        self.certify("revoke", "alice")
        self.reload(there, name="gpu2", moves_from=["gpu1"],
                    tls={**self.files("gpu2"), "revocations": str(self.papers / "revoked.crl")})
        refused("revoked")
        moved = self.migrate(here, self.sessions(here)["bob"]["id"], there.address)
        self.assertEqual(0, moved.code, (moved, self.logs()))
        time.sleep(0.3)
        self.expect_right(alice)
        self.expect_right(bob)
        self.expect_empty()

    def test_servers_that_do_not_prove_who_they_are(self):
        here, there = self.serve()
        program = self.start_as("alice", here)
        number = self.sessions(here)["alice"]["id"]
        with server.Server(config=json.dumps({"moves_from": ["any"]})) as plain:
            said = self.migrate(here, number, plain.address)
            self.assertEqual(1, said.code, said)
            other = self.start(plain)
            (session,) = plain.status()["sessions"]
            refused = self.migrate(plain, session["id"], there.address)
            self.assertEqual(1, refused.code, refused)
            self.assertIn("TLS", refused.err + said.err)
            out, err = other.communicate(timeout=60)
            self.assertEqual(0, other.returncode, (out, err))
        self.expect_right(program)


if __name__ == "__main__":
    unittest.main()
