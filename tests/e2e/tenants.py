"""A server with tenants: mutual TLS, a certificate for each tenant, a configuration file."""
import json

import server


class TenantServer(server.Server):
    """`tenants` are blocks of the configuration by name; each has its own name as its identity.
    `settings` are other keys of the file."""

    def __init__(self, tenants, settings=None, **options):
        super().__init__(**options)
        self.tenants = tenants
        self.settings = settings or {}

    def start_daemon(self):
        self.papers = self.runtime / "papers"
        if not self.papers.exists():
            self._make_certificates()
        self.configure(self.tenants, self.settings)
        self._start("longwired", "--config", self.config, "--listen", self.address,
                    "--local-socket", self.door, "--warden", self.warden_socket,
                    "--driver", self.driver,
                    "--warm-workers", str(self.warm_workers))
        server.wait_for(self.answers, 20, "the daemon's port")

    def configure(self, tenants, settings=None):
        """Writes the configuration; JSON is YAML."""
        self.config = self.runtime / "longwired.yaml"
        blocks = [{"name": name, "identities": [name], **block} for name, block in tenants.items()]
        paper = {name: str(self.papers / file) for name, file in
                 [("certificate", "127.0.0.1.crt"), ("key", "127.0.0.1.key"),
                  ("authority", "ca.crt")]}
        self.config.write_text(json.dumps({"tls": paper, "tenants": blocks, **(settings or {})},
                                          indent=1))

    def _make_certificates(self):
        for words in [["init"], ["server", "--name", "127.0.0.1"],
                      *[["client", "--name", name] for name in self.tenants]]:
            made = self.cli("cert", *words, "--dir", str(self.papers))
            if made.code != 0:
                raise AssertionError(f"longwire cert {words}: {made.err}")

    def environment_of(self, tenant, **more):
        return self.environment(LONGWIRE_CERT=self.papers / f"{tenant}.crt",
                                LONGWIRE_KEY=self.papers / f"{tenant}.key",
                                LONGWIRE_CA=self.papers / "ca.crt", **more)

    def run_as(self, tenant, path, *arguments, timeout=60, **more):
        return server.run(self.command(path, *map(str, arguments)),
                          self.environment_of(tenant, **more), timeout)

    def status_as(self, tenant):
        result = server.run([self.dist / "bin" / "longwire", "status", "--server", self.address,
                             "--json"], self.environment_of(tenant))
        if result.code != 0:
            raise AssertionError(f"longwire status ended with {result.code}: {result.err}")
        return {"devices": [], "sessions": [], **server.plain(json.loads(result.out))}
