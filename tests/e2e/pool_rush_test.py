"""Many programs ask a pool for a place at the same moment. It has room for fewer: those are
placed, once each and up to the last place, and each other one as soon as one of them has ended."""
import re
import sys
import threading
import unittest

import pool_history
import pool_servers
import server

LONG = "--long" in sys.argv
PROGRAMS = 200 if LONG else 80
PLACES = PROGRAMS // 4  # at each host
ALL = 3 * PLACES
KEYS = {"tenants": [{"name": "everybody", "sessions": PROGRAMS, "identities": ["loopback"]}]}

LATE = re.compile("cut off from|no place for this session at this host any more")


class PoolRushTest(unittest.TestCase):
    def setUp(self):
        self.pool = self.enterContext(pool_servers.Pool(
            sessions=PLACES, memory=64 * PLACES * pool_servers.MIB, keys=KEYS))
        self.programs = []
        self.addCleanup(lambda: pool_servers.end(self.programs))
        self.ready, self.lines = 0, threading.Lock()

    def await_line(self, program):
        line = server.next_line(program)
        with self.lines:
            self.ready += line == "READY\n"

    def await_ready(self, count):
        def done():
            ended = [one for one in self.programs if one.poll() not in (None, -9)]
            self.assertEqual([], [one.communicate()[1] for one in ended[:3]])
            return self.ready >= count
        server.wait_for(done, 200, f"{count} programs")

    def test_each_is_placed_once_and_none_beyond_the_room(self):
        self.programs = [self.pool.hold("abc"[i % 3], words=("--wait", "10m"))
                         for i in range(PROGRAMS)]
        readers = [threading.Thread(target=self.await_line, args=(one,), daemon=True)
                   for one in self.programs]
        for reader in readers:
            reader.start()
        self.await_ready(ALL)
        self.assertEqual(ALL, self.ready)
        self.assertEqual({"a": PLACES, "b": PLACES, "c": PLACES},
                         {host: len(of) for host, of in self.pool.claims().items()})
        self.assertEqual(ALL, sum(len(host.status()["sessions"])
                                  for host in self.pool.servers.values()))
        first = [one for one, reader in zip(self.programs, readers) if not reader.is_alive()]
        pool_servers.end(first)
        self.await_ready(PROGRAMS)
        pool_servers.end(self.programs)
        server.wait_for(self.pool.no_claims, 20, "the end of all claims")
        changes = self.pool.etcd.history()
        self.assertEqual([], pool_history.Checker().replay(changes))
        # Each of them has got a place. A host so busy that it does not answer in time loses its
        # claim for another one's; no claim is left.
        claims = {key: value for _, key, value in changes if key.startswith("claim/")}
        self.assertGreaterEqual(len(claims), PROGRAMS)
        self.assertEqual({None}, set(claims.values()))
        # Streams may be refused, of programs that were killed while they began; and a busy host
        # refuses what has a place elsewhere by now.
        for host in self.pool.servers.values():
            self.assertEqual([], [line for line in host.log.read_text().splitlines()
                                  if re.search("session for .* was refused", line)
                                  and not LATE.search(line)])


if __name__ == "__main__":
    if LONG:
        sys.argv.remove("--long")
    unittest.main()
