"""With the policy affinity a program goes where the images of its modules lie in the cache, also
when it does not run there any more, and also where another program has brought them."""
import shutil
import unittest

import pool_servers
import server

PROGRAM = "vector_add.static"


class PoolAffinityTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        labels = {"a": ["name=a", "zone=x"], "b": ["name=b"], "c": ["name=c", "zone=x"]}
        cls.pool = cls.enterClassContext(pool_servers.Pool(
            members=1, pool_keys={"placement": "affinity"},
            of_host={name: {"labels": of} for name, of in labels.items()}))

    def opened(self, name):
        return self.pool.servers[name].log.read_text(errors="replace").count("opened for ")

    def run_at(self, program, *words):
        """The host where it ran."""
        before = {name: self.opened(name) for name in "abc"}
        asked = self.pool.servers["a"]
        result = server.run([asked.dist / "bin" / "longwire", "run", *words, "--server",
                             asked.address, "--", program], asked.environment())
        self.assertEqual(0, result.code, result)
        [host] = [name for name in "abc" if self.opened(name) != before[name]]
        server.wait_for(self.pool.no_claims, 10, "its end")
        return host

    def programs_at(self, name):
        return len(self.pool.etcd.keys("warm/").get(f"warm/{name}", {}).get("programs", []))

    def test_where_its_images_are_cached(self):
        program = self.pool.servers["a"].program(PROGRAM)
        self.assertEqual("c", self.run_at(program, "--label", "name=c"))
        server.wait_for(lambda: self.programs_at("c") == 1, 15, "what c has")
        self.assertEqual("c", self.run_at(program))
        # Another program of the same code, which c has not seen.
        copy = self.pool.servers["a"].runtime / "another"
        shutil.copy(program, copy)
        self.assertEqual("b", self.run_at(copy, "--label", "name=b"))
        server.wait_for(lambda: self.programs_at("b") == 1, 15, "what b has")
        self.assertEqual("c", self.run_at(copy, "--label", "zone=x"))


if __name__ == "__main__":
    unittest.main()
