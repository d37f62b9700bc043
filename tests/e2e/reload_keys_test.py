"""Every key of longwired's file at a reload: what is said to hold does, as a probe for each key
sees by what the server then does; what is read at the start only is refused. A key of
proto/config.proto that neither table has fails the test."""
import json
import re
import unittest

import config_schema
import keys_server
import reload_probes
import reload_probes_admission
import reload_probes_checkpoints
import reload_probes_held
import reload_probes_moves
import reload_probes_policies
import reload_probes_rules
import reload_probes_scheduler
import reload_probes_statistics
import server
from reload_cases import PROBES

# Who enter their probes into PROBES.
TABLES = (reload_probes, reload_probes_admission, reload_probes_checkpoints, reload_probes_held,
          reload_probes_moves, reload_probes_policies, reload_probes_rules, reload_probes_scheduler,
          reload_probes_statistics)

# Another value for each key that is read at the start only.
AT_START = {
    "listen": "127.0.0.1:1", "local_socket": "none",
    "insecure_listen_anywhere": True, "driver": "auto",
    "warden": "/nonexistent/warden", "warm_workers": 3, "devices": [{"device": 0}],
    "software_device.count": 3, "software_device.memory": "64MiB", "metrics": "127.0.0.1:1",
    "metrics_tls": "127.0.0.1:1",
    "admin_group": "games", "watch_group": "games",
    "module_cache.directory": "/nonexistent/modules", "module_cache.size": "1GiB",
    "module_cache.tenant_size": "1GiB", "module_cache.tenant_images": 100,
    "module_cache.compiled": "/nonexistent/compiled", "walls": "shared_uid",
    "workers.first_uid": 1800000000, "workers.system_calls": "log",
    "workers.host_memory": "1GiB", "workers.processes": 100,
    "workers.fixed_addresses": True,
    "checkpoint_dir": "/nonexistent/checkpoints",
    "kernel_history": "/nonexistent/kernels.tsv",
    "usage.file": "/nonexistent/usage.jsonl", "usage.size": "1MiB",
    "pool": {"host": "x", "etcd": ["127.0.0.1:1"]}}


class ReloadKeysTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(keys_server.KeysServer())

    def setUp(self):
        self.longwire.reload()
        server.wait_for(lambda: not self.status()["sessions"], 20, "the end of earlier sessions")

    def status(self):
        return self.longwire.status_as("operator")

    def test_each_key_has_a_probe_or_is_read_at_the_start(self):
        keys = config_schema.keys()
        # The parser of this test and that of the daemon know the same ones.
        told = self.longwire.cli("config", "default").out
        for key in keys:
            self.assertRegex(told, rf"(?m)^#? *(- )?{key.rsplit('.')[-1]}:", key)
        self.assertEqual(sorted(key for key, at_start in keys.items() if not at_start),
                         sorted(PROBES))
        self.assertEqual(sorted(key for key, at_start in keys.items() if at_start),
                         sorted(AT_START))

    def test_what_is_read_at_the_start_is_refused_with_all_else(self):
        for key, value in AT_START.items():
            with self.subTest(key):
                block, _, inner = key.rpartition(".")
                changes = {block: {inner: value}} if block else {key: value}
                self.longwire.write({**changes, "max_sessions": 7})
                result = self.longwire.cli("admin", "reload")
                self.assertEqual((1, ""), (result.code, result.out))
                self.assertRegex(result.err, rf":\d+:\d+: {re.escape(key)}: expected .* as long as "
                                             "longwired runs, found .*; this key is read at the "
                                             "start only: restart longwired to change it")
        # Nothing of it came into force.
        self.assertEqual("nothing has changed\n", self.longwire.reload())

    def test_tls_stays_on(self):
        keys = self.longwire.keys({})
        del keys["tls"]
        self.longwire.config_file.write_text(json.dumps(keys))
        result = self.longwire.cli("admin", "reload")
        self.assertEqual(1, result.code, result.out)
        self.assertIn("TLS cannot be switched on or off while longwired runs", result.err)


for probe in dict.fromkeys(PROBES.values()):
    setattr(ReloadKeysTest, f"test_{probe.__name__}", probe)

if __name__ == "__main__":
    unittest.main()
