"""A server whose every setting stands in its file, for tests that change them: mutual TLS, some
tenants, two small devices."""
import json
import os
import re
import subprocess

import server
import tenants

MIB = 1 << 20
MEMORY = 512 * MIB  # of each device

# The local user's tenant has no certificate; nobody lists the stranger.
TENANTS = {"alpha": {}, "beta": {}, "operator": {"admin": True},
           "local": {"identities": [f"uid:{os.geteuid()}"]}}


class KeysServer(tenants.TenantServer):
    def __init__(self):
        super().__init__({**TENANTS, "stranger": {}}, software_devices=2, software_memory=MEMORY)
        self.metrics = f"127.0.0.1:{server.free_port()}"

    def start_daemon(self):
        self.papers = self.runtime / "papers"
        self._make_certificates()
        self.write({})
        self._start("longwired", "--config", self.config_file)
        server.wait_for(self.answers, 20, "the daemon's port")

    def keys(self, changes):
        """The file's keys, with those of `changes`, whose blocks are changed key by key; `tenants`
        there are the changed ones by their usual name, None for one that is gone."""
        base = {"listen": self.address, "local_socket": str(self.door),
                "warden": str(self.warden_socket),
                "driver": "software", "placement": "pack", "metrics": self.metrics,
                "software_device": {"count": 2, "memory": "512MiB"},
                "checkpoint_dir": str(self.runtime / "checkpoints"),
                "memory": {"prepared": "0"}, "scheduler": {},
                "tls": {"certificate": str(self.papers / "127.0.0.1.crt"),
                        "key": str(self.papers / "127.0.0.1.key"),
                        "authority": str(self.papers / "ca.crt")}}
        changed = changes.get("tenants", {})
        base["tenants"] = [{"name": name, "identities": [name], **block, **changed.get(name, {})}
                           for name, block in TENANTS.items() if changed.get(name, {}) is not None]
        for key, value in changes.items():
            if key != "tenants":
                base[key] = {**base.get(key, {}), **value} if isinstance(value, dict) else value
        return base

    def write(self, changes):
        """JSON is YAML."""
        later = self.config_file.with_suffix(".new")
        later.write_text(json.dumps(self.keys(changes), indent=1))
        os.replace(later, self.config_file)

    def reload(self, **changes):
        """What the daemon said; all that is not in `changes` is as at the start."""
        self.write(changes)
        result = self.cli("admin", "reload")
        if result.code != 0:
            raise AssertionError(result.err)
        return result.out

    def make_papers(self, folder, *commands, from_authority=False):
        """A folder with what `longwire cert` makes, by the server's authority or one of its own."""
        folder.mkdir()
        for name in ("ca.crt", "ca.key") if from_authority else ():
            (folder / name).write_bytes((self.papers / name).read_bytes())
            (folder / name).chmod(0o600)
        for words in commands:
            made = self.cli("cert", *words, "--dir", str(folder))
            if made.code != 0:
                raise AssertionError(f"longwire cert {words}: {made.err}")
        return folder

    def popen(self, tenant, program, *words, to=None, **more):
        return subprocess.Popen(
            self.command(program, *map(str, words), server=to),
            env=self.environment_of(tenant, **more), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def moved(self):
        """Runs copies of pinned memory at the local socket; the bytes up and down that took
        the rings."""
        result = self.run("pinned_copies.static", server=f"unix:{self.door}",
                          LONGWIRE_TRACE="summary")
        return tuple(map(int, re.search(r"(\d+) bytes up, (\d+) bytes down",
                                        result.err).groups()))
