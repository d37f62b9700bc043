"""A pool whose tenants are told apart by certificates."""
import json
import pathlib
import subprocess
import tempfile

import pool_servers
import server


class TenantPool(pool_servers.Pool):
    """`tenants` are blocks of the configuration by name, each its own identity; another one,
    `operator`, sees all."""

    def __init__(self, tenants, names="a", keys=None, **options):
        self.papers = pathlib.Path(tempfile.mkdtemp(prefix="longwire-papers-"))
        tenants = {**tenants, "operator": {"admin": True}}
        blocks = [{"name": name, "identities": [name], **block} for name, block in tenants.items()]
        super().__init__(names, members=1, keys={
            "tls": self.files("127.0.0.1"), "tenants": blocks, **(keys or {})}, **options)
        self.callback(subprocess.run, ["rm", "-r", self.papers], check=False)
        longwire = server.build_folder() / "dist" / "bin" / "longwire"
        for words in [["init"], ["server", "--name", "127.0.0.1"],
                      *[["client", "--name", name] for name in tenants]]:
            made = server.run([longwire, "cert", *words, "--dir", str(self.papers)], {})
            assert made.code == 0, made.err

    def files(self, name):
        return {"certificate": str(self.papers / f"{name}.crt"),
                "key": str(self.papers / f"{name}.key"), "authority": str(self.papers / "ca.crt")}

    def identity(self, tenant):
        files = self.files(tenant)
        return {"LONGWIRE_CERT": files["certificate"], "LONGWIRE_KEY": files["key"],
                "LONGWIRE_CA": files["authority"]}

    def hold_as(self, tenant, words=(), front="a", **variables):
        return self.hold(front, words, **self.identity(tenant), **variables)

    def run_as(self, tenant, words=(), front="a", program="vector_add.static", **variables):
        asked = self.servers[front]
        return server.run([asked.dist / "bin" / "longwire", "run", *words, "--server",
                           asked.address, "--", asked.program(program)],
                          asked.environment(**self.identity(tenant), **variables))

    def status(self, front="a"):
        asked = self.servers[front]
        result = server.run([asked.dist / "bin" / "longwire", "status", "--pool", "--json",
                             "--server", asked.address],
                            asked.environment(**self.identity("operator")))
        return {"waiting": [], **server.plain(json.loads(result.out or "{}"))}

    def places(self):
        """Of those who wait: tenant → places in the queue, in order."""
        found = {}
        for one in self.status()["waiting"]:
            found.setdefault(one["tenant"], []).append(one.get("place", 0))
        return {tenant: sorted(places) for tenant, places in found.items()}
