"""A server whose one tenant's sessions stay awake between their messages."""
import json
import os

import tenants

AWAKE = {"priority": "latency_critical", "awake": "100ms"}


class PlainServer(tenants.TenantServer):
    """Without TLS, for programs of this host over TCP and its local socket."""

    def __init__(self, **options):
        super().__init__({"bench": AWAKE}, **options)

    def configure(self, blocks, settings=None):
        self.config = self.runtime / "longwired.yaml"
        identities = ["loopback", f"uid:{os.getuid()}"]
        block = {"name": "bench", "identities": identities, **blocks["bench"]}
        self.config.write_text(json.dumps({"tenants": [block]}, indent=1))


def with_tls(**options):
    return tenants.TenantServer({"bench": AWAKE}, **options)
