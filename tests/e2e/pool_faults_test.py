"""A pool on machines with addresses of their own, and clocks that differ by half a minute, at
random moments of which members of etcd, hosts' daemons and the placer are killed, and connections
are cut in one direction. After each: nothing is placed twice, what runs is in the directory, what
has ended is not, limits hold, and programs that began have ended right.

pool_faults_test.py [--moments N] [--seed N]
"""
import argparse
import collections
import datetime
import random
import re
import sys
import threading
import time
import unittest

import pool_history
import pool_network
import pool_servers
import server

CLOCKS = {"a": -30, "c": 30}
HELD = 6
TENANT = "default"
LIMIT = 8  # sessions of all programs: two of the three that come and go run at once
MEMORY = 4 << 30
PROMISED = 90  # seconds; a host takes back after half a minute what nobody came for
SHORT, LONG = (0.2, 2.0), (7.0, 9.0)  # seconds; a lease lasts six
HOSTS, MEMBERS = ("a", "b", "c"), ("m0", "m1", "m2")
KINDS = ["member", "host", "placer", "from host", "to host", "from member", "to member",
         "from client", "to client", "host both ways"]
options = None


class PoolFaultsTest(unittest.TestCase):
    def setUp(self):
        self.began = datetime.datetime.now(datetime.timezone.utc)
        self.pool = self.enterContext(pool_network.Pool(
            sessions=12, memory=8 << 30, clocks=CLOCKS,
            pool_keys={"limits": [{"tenant": TENANT, "sessions": LIMIT,
                                   "memory": f"{MEMORY >> 30}GiB"}]}))
        self.network, self.dice = self.pool.network, random.Random(options.seed)
        self.checker = pool_history.Checker(killed=HOSTS, limits={TENANT: (LIMIT, MEMORY)})
        self.promised = {}  # number of a claim that nobody came for → since when it is known
        self.checked = 0  # revisions
        self.results = collections.Counter()
        self.wrong = []
        self.programs = []
        self.addCleanup(lambda: pool_servers.end(self.programs))

    def clock_of(self, name):
        """Seconds by which the host's log began later than this test, by its own calendar."""
        first = re.search(r"^\d{4}-\S+Z", self.pool.servers[name].log.read_text(), re.M).group()
        return (datetime.datetime.fromisoformat(first) - self.began).total_seconds()

    def come_and_go(self, front, over):
        while not over.is_set():
            result = self.pool.servers[front[0]].run(
                "steady.static", "1", LONGWIRE_WAIT="60s", timeout=120,
                server=",".join(self.pool.servers[name].address for name in front))
            self.results["ended well" if result.code == 0 else "were refused"] += 1
            # One that began has a place, and its host lives.
            if result.code is None or (result.code != 0 and "READY" in result.out):
                self.wrong.append(result)
            elif result.code != 0:
                print("  refused:", result.err.strip()[-300:])

    def cuts(self, kind):
        """(sources, target) of each direction that is cut."""
        direction, _, what = kind.partition(" ")
        if what == "client":
            host = self.dice.choice(HOSTS)
            return [(["client"], host)] if direction == "from" else [([host], "client")]
        if what == "both ways":
            host = self.dice.choice(HOSTS)
            return [(MEMBERS, host), *(([host], member) for member in MEMBERS)]
        one = self.dice.choice(HOSTS if what == "host" else MEMBERS)
        others = [name for name in MEMBERS + (HOSTS if what == "member" else ()) if name != one]
        return [(others, one)] if direction == "to" else [([one], other) for other in others]

    def fault(self, kind, seconds):
        if kind == "member":
            member = self.dice.choice(self.pool.etcd.members)
            member.kill()
            time.sleep(seconds)
            member.start(self.pool.etcd.cluster())
        elif kind in ("host", "placer"):
            name = self.dice.choice(HOSTS)
            if kind == "placer":
                name = self.pool.placer() or name
            daemon = self.pool.servers[name].children.pop("longwired")
            daemon.kill()
            daemon.wait()
            time.sleep(seconds)
            self.pool.servers[name].start_daemon()
        else:
            cuts = self.cuts(kind)
            for sources, target in cuts:
                self.network.cut(sources, target)
            time.sleep(seconds)
            for sources, target in cuts:
                self.network.mend(sources, target)

    def check(self):
        """Only those that are held run now."""
        self.assertEqual([], self.wrong, self.logs())
        server.wait_for(self.pool.etcd.answers, 20, "etcd")
        server.wait_for(self.settled, 20, "the end of what has ended")
        self.assertTrue(all(one.poll() is None for one in self.programs), self.logs())
        changes = self.pool.etcd.history(self.checked + 1)
        self.assertEqual([], self.checker.replay(changes))
        self.checked = max([self.checked, *(revision for revision, _, _ in changes)])
        self.check_promises()
        self.check_memory()

    def check_promises(self):
        """Places that nobody came for are no sessions, but they hold room: they do not stay."""
        now = time.monotonic()
        self.promised = {number: self.promised.get(number, now)
                         for of in self.pool.claims().values() for number, one in of.items()
                         if one["state"] == "RESERVED"}
        self.assertEqual([], [number for number, since in self.promised.items()
                              if now - since > PROMISED], self.logs())

    def check_memory(self):
        """No host lends a tenant more than its part, whatever etcd says of the sum."""
        for name, host in self.pool.servers.items():
            lent = {one["name"]: one.get("memory_leased", 0) for one in host.status()["tenants"]}
            part = self.pool.etcd.keys("ten/").get(f"ten/{TENANT}/{name}", {})
            self.assertLessEqual(lent.get(TENANT, 0), int(part.get("bytes", 0)), name)

    def plant(self):
        """What the checker must find in what it has just looked at: sessions and parts beyond the
        limits, with sums that are right."""
        keys, host = self.checker.keys, HOSTS[0]
        self.assertEqual([], self.checker.with_planted())
        cap = keys[f"cap/{host}"]
        device = {**cap["devices"][0]}
        claim = {"tenant": TENANT, "bytes": "1", "devices": [device["ordinal"]], "state": "OPEN"}
        more = LIMIT + 1 - sum(key.startswith("claim/") for key in keys)
        device.update(bytes=str(int(device["bytes"]) + more), sessions=device["sessions"] + more)
        changes = [(f"cap/{host}", {**cap, "sessions": cap["sessions"] + more,
                                    "devices": [device, *cap["devices"][1:]]})]
        for i in range(more):
            changes += [(f"claim/{host}/{i:04}", claim),
                        (f"sess/{i:04}", {"host": host, "generation": "1"})]
        self.assertEqual([f"revision 0: tenant {TENANT} has {LIMIT + 1} sessions of {LIMIT}"],
                         self.checker.with_planted(*changes))
        tenant, part = keys[f"ten/{TENANT}"], keys.get(f"ten/{TENANT}/{host}", {})
        over = MEMORY + 1 - int(tenant["parts"])
        faults = self.checker.with_planted(
            (f"ten/{TENANT}", {**tenant, "parts": str(MEMORY + 1)}),
            (f"ten/{TENANT}/{host}", {**part, "bytes": str(int(part.get("bytes", 0)) + over)}))
        self.assertRegex(str(faults), f"tenant {TENANT} has .*, more than {MEMORY} bytes")
        faults = self.checker.with_planted((f"ten/{TENANT}", {**tenant, "sessions": "9"}))
        self.assertRegex(str(faults), f"the limits of tenant {TENANT} in etcd are")

    def settled(self):
        """A place that nobody came for may stay promised for half a minute; it is no session."""
        try:
            sessions = {name: len(host.status()["sessions"])
                        for name, host in self.pool.servers.items()}
            claims = {name: sum(one["state"] != "RESERVED" for one in of.values())
                      for name, of in self.pool.claims().items()}
        except (AssertionError, OSError):
            return False
        return sessions == claims and sum(claims.values()) == HELD and \
            set(self.pool.joined()) == set(HOSTS)

    def logs(self):
        return "\n".join(one.log_tail(12) for one in self.pool.servers.values())

    def moment(self, kind, seconds):
        over = threading.Event()
        threads = [threading.Thread(target=self.come_and_go, args=(front, over))
                   for front in ("abc", "bca", "cab")]
        for thread in threads:
            thread.start()
        time.sleep(self.dice.uniform(0, 1.5))
        self.fault(kind, seconds)
        over.set()
        for thread in threads:
            thread.join()

    def test_faults_at_random_moments(self):
        # Half a minute between each two; a pool takes less to start.
        self.assertLess(self.clock_of("a"), 0)
        self.assertGreater(self.clock_of("b"), 0)
        self.assertGreater(self.clock_of("c"), 30)
        print(f"seed {options.seed}, {options.moments} moments")
        self.programs += [self.pool.held("abc"[i % 3]) for i in range(HELD)]
        kinds = (KINDS * (options.moments // len(KINDS) + 1))[:options.moments]
        self.dice.shuffle(kinds)
        for i, kind in enumerate(kinds):
            began = time.monotonic()
            seconds = self.dice.uniform(*(LONG if i % 10 == 9 else SHORT))
            self.moment(kind, seconds)
            self.check()
            print(f"{i + 1}: {kind}, {seconds:.1f} s; {time.monotonic() - began:.1f} s in all; "
                  f"{dict(self.results)}", flush=True)
        self.plant()
        self.assertGreaterEqual(self.results["ended well"], options.moments)
        pool_servers.end(self.programs)
        server.wait_for(self.pool.no_claims, 45, "the end of all claims")
        self.assertEqual([], self.checker.replay(self.pool.etcd.history(self.checked + 1)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--moments", type=int, default=6)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
