"""A pool with TLS everywhere: to etcd, between programs and servers. Sessions are those of the
certificate that asked, and who has none gets no place."""
import json
import pathlib
import subprocess
import tempfile
import unittest

import etcd_members
import server

TENANTS = [{"name": "research", "identities": ["alice"]},
           {"name": "operators", "identities": ["operator"], "admin": True}]


class PoolTlsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.papers = folder / "papers"
        longwire = server.build_folder() / "dist" / "bin" / "longwire"
        for words in [["init"], ["server", "--name", "127.0.0.1"],
                      *[["client", "--name", name]
                        for name in ("alice", "operator", "stranger", "pool")]]:
            made = server.run([longwire, "cert", *words, "--dir", str(cls.papers)], {})
            assert made.code == 0, made.err
        cls.member = etcd_members.Member("m0", folder)
        cls.member.start(f"m0=http://127.0.0.1:{cls.member.peer_port}", cls.papers)
        cls.addClassCleanup(cls.member.kill)
        cls.servers = {name: cls.enterClassContext(cls.make(name)) for name in "ab"}
        server.wait_for(lambda: [one["joined"] for one in cls.pool()["hosts"]] == [True] * 2, 20,
                        "both hosts")

    @classmethod
    def files(cls, name):
        return {"certificate": str(cls.papers / f"{name}.crt"),
                "key": str(cls.papers / f"{name}.key"), "authority": str(cls.papers / "ca.crt")}

    @classmethod
    def make(cls, name, **pool):
        keys = {"tls": cls.files("127.0.0.1"), "tenants": TENANTS, "moves_from": ["pool"],
                "pool": {"host": name, "etcd": [cls.member.address], "labels": [f"host={name}"],
                         "tls": cls.files("pool"), **pool}}
        keys["pool"] = {key: value for key, value in keys["pool"].items() if value}
        return server.Server(config=json.dumps(keys))

    @classmethod
    def environment(cls, identity, **more):
        files = cls.files(identity)
        return cls.servers["a"].environment(
            LONGWIRE_CERT=files["certificate"], LONGWIRE_KEY=files["key"],
            LONGWIRE_CA=files["authority"], **more)

    @classmethod
    def pool(cls):
        front = cls.servers["a"]
        result = server.run([front.dist / "bin" / "longwire", "status", "--pool", "--json",
                             "--server", front.address], cls.environment("operator"))
        return {"hosts": [], **server.plain(json.loads(result.out or "{}"))}

    def run_as(self, identity, *words):
        front = self.servers["a"]
        return server.run([front.dist / "bin" / "longwire", "run", *words, "--server",
                           front.address, "--", front.program("vector_add.static")],
                          self.environment(identity))

    def test_a_session_is_opened_elsewhere_for_its_certificate(self):
        for name in "ba":
            result = self.run_as("alice", "--label", f"host={name}")
            self.assertEqual(0, result.code, result)
            self.servers[name].must_log(r"session \d+.*opened for .*'alice' of tenant 'research'")

    def test_who_is_nobody_gets_no_place(self):
        result = self.run_as("stranger", "--label", "host=b")
        self.assertEqual(1, result.code, result)
        self.assertIn("does not know the identity 'stranger'", result.err)

    def test_a_server_without_a_certificate_for_etcd_stays_outside(self):
        with self.make("c", tls=None) as outside:
            server.wait_for(lambda: "not in the pool: etcd at" in outside.log.read_text(), 10,
                            "the reason")
            self.assertEqual(["a", "b"], [one["name"] for one in self.pool()["hosts"]])

    def sessions(self):
        """Host → the sessions that it has."""
        found = {}
        for name, one in self.servers.items():
            status = server.run([one.dist / "bin" / "longwire", "admin", "sessions", "--json"],
                                one.environment())
            found[name] = json.loads(status.out)
        return found

    def test_a_session_moves_with_its_certificate(self):
        """Both are hosts of the pool; neither is named."""
        front = self.servers["a"]
        program = subprocess.Popen(
            [front.dist / "bin" / "longwire", "run", "--server", front.address, "--",
             front.program("counted_training.static"), "stdin"],
            env=self.environment("alice"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        self.assertEqual("READY\n", server.next_line(program))
        for _ in range(2):
            found = self.sessions()
            (here,) = [name for name in found if found[name]]
            (there,) = [name for name in found if not found[name]]
            [session] = found[here]
            moved = self.servers[here].cli("admin", "migrate", str(session["id"]), there)
            self.assertEqual(0, moved.code, (moved, self.servers[there].log_tail()))
            [now] = self.sessions()[there]
            self.assertEqual("alice", now["identity"])
        out, err = program.communicate(timeout=60)
        self.assertEqual((0, ""), (program.returncode, err), out)

    def test_a_host_is_drained_by_an_administrator_s_certificate_alone(self):
        front = self.servers["a"]

        def admin(identity, *words):
            return server.run([front.dist / "bin" / "longwire", "admin", *words, "--server",
                               front.address], self.environment(identity))

        result = admin("alice", "drain", "b")
        self.assertEqual(1, result.code, result)
        self.assertIn("only an administrator may do that", result.err)
        self.assertEqual(0, self.run_as("alice", "--label", "host=b").code)
        result = admin("operator", "drain", "b")
        self.addCleanup(admin, "operator", "uncordon", "b")
        self.assertEqual(0, result.code, result)
        result = self.run_as("alice", "--label", "host=b")
        self.assertEqual(1, result.code, result)
        self.assertIn("b: it takes no new sessions", result.err)
        told = [one.get("withdrawn") for one in self.pool()["hosts"]]
        self.assertEqual([None, True], [told[0], told[1]["by"].startswith("operator (")], told)


if __name__ == "__main__":
    unittest.main()
