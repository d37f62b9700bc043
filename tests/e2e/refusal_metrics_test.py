"""Sessions that are refused are counted, each for its reason and its tenant."""
import pathlib
import sys
import unittest

import keys_server
import scrape
import server
from reload_cases import start

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "hostile"))
import hostile_client  # noqa: E402

NAME = "longwire_sessions_refused_total"


class RefusalMetricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(keys_server.KeysServer())

    def setUp(self):
        self.longwire.reload()
        server.wait_for(lambda: not self.longwire.status_as("operator")["sessions"], 20,
                        "the end of earlier sessions")
        self.before = self.counts()

    def counts(self):
        samples = scrape.Scrape(self.longwire.metrics).families[NAME].samples
        return {(labels["tenant"], labels["reason"]): value for labels, value in samples}

    def assert_counted(self, tenant, reason, times=1):
        """And nothing else."""
        more = {key: value - self.before.get(key, 0) for key, value in self.counts().items()
                if value != self.before.get(key, 0)}
        self.assertEqual({(tenant, reason): times}, more)

    def assert_refused(self, tenant, words):
        result = self.longwire.run_as(tenant, self.longwire.program("allocate.static"))
        self.assertIn(words, result.err)

    def test_who_belongs_to_no_tenant(self):
        self.assert_refused("stranger", "stranger")
        self.assert_counted("", "not_allowed")

    def test_as_many_as_the_server_may_have(self):
        start(self, "alpha")
        self.longwire.reload(max_sessions=1)
        self.assert_refused("beta", "as many as its max_sessions allows")
        self.assert_counted("beta", "server_sessions")

    def test_as_many_as_an_identity_may_have(self):
        start(self, "alpha")
        self.longwire.reload(admission={"sessions_of_identity": 1})
        self.assert_refused("alpha", "one identity may have 1")
        self.assert_counted("alpha", "identity_sessions")

    def test_too_fast(self):
        self.longwire.reload(admission={"openings_per_second": 1, "openings_at_once": 1})
        program = self.longwire.program("allocate.static")
        processes = [self.longwire.popen("beta", program) for _ in range(8)]
        ends = [process.communicate()[1] for process in processes]
        refused = sum("opens sessions too fast" in end for end in ends)
        self.assertGreater(refused, 0)
        self.assert_counted("beta", "rate", refused)

    def test_more_devices_than_there_are(self):
        self.longwire.reload(tenants={"alpha": {"devices": 2}})
        self.assertEqual(0, self.longwire.cli("admin", "cordon", "1").code)
        self.addCleanup(self.longwire.cli, "admin", "cordon", "1", "--off")
        self.assert_refused("alpha", "device 1")
        self.assert_counted("alpha", "no_device")

    def test_another_version(self):
        """Of a tenant that has no other program here: its link stays."""
        result = self.longwire.run_as("operator", self.longwire.program("allocate.static"),
                                      LONGWIRE_TEST_VERSIONS="15-16")
        self.assertIn("protocol 15 to 16", result.err)
        self.assert_counted("operator", "version")

    def test_what_the_worker_refuses(self):
        """Addresses that its process cannot have."""
        client = hostile_client.Client(self.longwire.door, self.longwire.build,
                                       windows=[(4096, 1 << 60)])
        self.addCleanup(client.close)
        self.assertNotEqual(0, client.code)
        self.assert_counted("local", "worker")


if __name__ == "__main__":
    unittest.main()
