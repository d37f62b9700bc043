"""etcd restored from an older copy, as `etcdctl snapshot` makes it: nothing is placed until each
host has written what runs there, and then nothing is lost and nothing given twice."""
import os
import shutil
import subprocess
import unittest

import pool_history
import pool_servers
import server

SESSIONS = 3  # of each host


class PoolRestoredTest(unittest.TestCase):
    def setUp(self):
        self.pool = self.enterContext(pool_servers.Pool(members=1, devices=1, sessions=SESSIONS))
        self.member = self.pool.etcd.members[0]
        self.copy = self.member.folder.parent / "copy.db"
        self.programs = []
        self.addCleanup(lambda: pool_servers.end(self.programs))

    def hold(self, *fronts):
        self.programs += [self.pool.held(front) for front in fronts]

    def etcdctl(self, *words):
        subprocess.run(["etcdctl", *map(str, words)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, env={**os.environ, "ETCDCTL_API": "3"})

    def restore(self):
        self.member.kill()
        shutil.rmtree(self.member.folder)
        self.etcdctl("snapshot", "restore", self.copy, "--name", self.member.name,
                     "--data-dir", self.member.folder, "--initial-cluster",
                     self.pool.etcd.cluster(), "--initial-advertise-peer-urls",
                     f"http://127.0.0.1:{self.member.peer_port}")
        self.member.start(self.pool.etcd.cluster())
        server.wait_for(self.pool.etcd.answers, 20, "etcd")

    def test_nothing_is_placed_until_all_hosts_have_written(self):
        self.hold("a", "b", "c")
        self.etcdctl("--endpoints", self.member.address, "snapshot", "save", self.copy)
        self.hold("a", "b", "c")  # of which the copy does not know
        before = self.pool.claims()
        self.assertEqual([2, 2, 2], [len(of) for of in before.values()])
        daemon = self.pool.servers["b"].children.pop("longwired")
        daemon.kill()
        daemon.wait()
        self.restore()
        # There is room everywhere, by what the copy says and in truth.
        for front in "ac":
            refused = self.pool.servers[front].run("vector_add.static")
            self.assertEqual(1, refused.code, refused)
        server.wait_for(
            lambda: "the host 'b' has not said yet what runs there" in
            self.pool.servers["a"].run("vector_add.static").err, 40, "the reason")
        # The others have written theirs.
        for host in "ac":
            server.wait_for(
                lambda host=host: self.pool.claims()[host].keys() == before[host].keys(), 20,
                f"the claims of {host}")
        self.assertEqual(1, len(self.pool.claims()["b"]))
        self.assertEqual(6, len(self.programs))
        self.pool.servers["b"].start_daemon()
        server.wait_for(
            lambda: {host: of.keys() for host, of in self.pool.claims().items()} ==
            {host: of.keys() for host, of in before.items()}, 40, "the claims")
        server.wait_for(lambda: self.pool.servers["a"].run("vector_add.static").code == 0, 20,
                        "a place")
        self.hold("a", "b", "c")
        self.assertEqual([SESSIONS] * 3, [len(of) for of in self.pool.claims().values()])
        self.assertTrue(all(one.poll() is None for one in self.programs))
        self.assertEqual([], pool_history.Checker(killed=["b"]).replay(self.pool.etcd.history()))


if __name__ == "__main__":
    unittest.main()
