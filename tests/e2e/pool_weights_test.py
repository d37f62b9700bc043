"""The queue of a pool follows the tenants' weights: what comes free goes to the tenant that holds
least for its own."""
import unittest

import pool_servers
import pool_tenants
import server


class PoolWeightsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pool = cls.enterClassContext(pool_tenants.TenantPool(
            {"heavy": {"weight": 3}, "light": {}, "before": {}}, names="ab", memory=8 << 30))

    def test_three_of_four_devices_for_three_of_four_parts(self):
        programs = []
        self.addCleanup(lambda: pool_servers.end(programs))
        for _ in range(4):
            programs.append(self.pool.hold_as("before", ["--memory", "5GiB"]))
            self.pool.await_ready(programs[-1])
        for tenant in ["light"] * 4 + ["heavy"] * 4:
            programs.append(self.pool.hold_as(tenant, ["--wait", "1m", "--memory", "5GiB"]))
            waiting = len(programs) - 4
            server.wait_for(lambda n=waiting: len(self.pool.etcd.keys("q/")) == n, 10, "it waits")
        # A host is kept for the very first, whatever came after it.
        server.wait_for(lambda: self.pool.places() == {"light": [1, 6, 7, 8],
                                                       "heavy": [2, 3, 4, 5]},
                        10, "the places that the weights give")
        pool_servers.end(programs[:4])

        def held():
            tenants = [one["tenant"] for claims in self.pool.claims().values()
                       for one in claims.values()]
            return {name: tenants.count(name) for name in ("before", "light", "heavy")}
        server.wait_for(lambda: held() == {"before": 0, "light": 1, "heavy": 3}, 20,
                        "what each gets")


if __name__ == "__main__":
    unittest.main()
