"""A pool on machines with addresses of their own: two hundred programs at once are placed once
each, and every policy places as pool_policies.txt says."""
import pathlib
import subprocess
import unittest

import pool_history
import pool_network
import pool_servers
import server

AT_ONCE = 200
GIB = 1 << 30
# A device of 8 GiB, a little of which is no program's, promises this to 34: 204 fit in the pool.
PROMISE = "234MiB"
SESSIONS = 4 * 70  # of each host, of which a tenant without a limit of its own gets a quarter
TRANSCRIPT = pathlib.Path(__file__).with_name("pool_policies.txt")


def policies():
    """Policy → its lines."""
    found = {}
    for line in TRANSCRIPT.read_text().splitlines():
        if line.startswith("policy "):
            lines = found.setdefault(line.split()[1], [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return found


class Play:
    """Does what a transcript's lines say, and writes what came of it."""

    def __init__(self, pool):
        self.pool, self.programs, self.numbers = pool, {}, {}

    def do(self, line):
        asked = line.split(" -> ")[0]
        what, *words = asked.split()
        came = getattr(self, what)(*words)
        return asked + (f" -> {came}" if came else "")

    def open(self, name, program, *words):
        front = self.pool.servers["abc"[len(self.programs) % 3]]
        command = front.command(front.program(f"{program}.static"), "hold")
        command[2:2] = words
        before = self.known()
        one = subprocess.Popen(command, env=front.environment(), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.programs[name] = one
        if not any(line == "READY\n" for line in one.stdout):
            return "refused"
        (number, (host, claim)), = ((number, found) for number, found in self.known().items()
                                    if number not in before)
        self.numbers[name] = number
        return f"{host}:{','.join(map(str, claim['devices']))}"

    def known(self):
        return {number: (host, claim) for host, of in self.pool.claims().items()
                for number, claim in of.items()}

    def end(self, name):
        pool_servers.end([self.programs.pop(name)])
        server.wait_for(lambda: self.numbers[name] not in self.known(), 20, "the end of its claim")

    def busy(self, host):
        def computes():
            devices = self.pool.etcd.keys("load/").get(f"load/{host}", {}).get("devices", [])
            return any(one.get("busy", 0) > 0.1 for one in devices)
        server.wait_for(computes, 20, f"the load of {host}")


class PoolNetworkTest(unittest.TestCase):
    maxDiff = None

    def test_two_hundred_at_once_are_placed_once_each(self):
        with pool_network.Pool(sessions=SESSIONS, memory=8 * GIB) as pool:
            programs = [pool.hold("abc"[i % 3], ["--memory", PROMISE], LONGWIRE_WAIT="120s")
                        for i in range(AT_ONCE)]
            try:
                for program in programs:
                    pool.await_ready(program)
                claims = pool.claims()
                self.assertEqual(AT_ONCE, sum(map(len, claims.values())))
                for name, host in pool.servers.items():
                    self.assertEqual(len(claims[name]), len(host.status()["sessions"]))
                    self.assertLessEqual(len(claims[name]), SESSIONS)
            finally:
                pool_servers.end(programs)
            server.wait_for(pool.no_claims, 30, "the end of all claims")
            history = pool.etcd.history()
            self.assertEqual([], pool_history.Checker().replay(history))
            placed = [key for _, key, value in history if key.startswith("sess/") and value]
            self.assertEqual((AT_ONCE, AT_ONCE), (len(placed), len(set(placed))))

    def test_every_policy_places_as_the_transcript_says(self):
        for policy, lines in policies().items():
            with self.subTest(policy), pool_network.Pool(
                    memory=8 * GIB, pool_keys={"placement": policy},
                    of_host={"c": {"labels": ["name=c", "gpu=h200"]}}) as pool:
                play = Play(pool)
                try:
                    self.assertEqual(lines, [play.do(line) for line in lines])
                finally:
                    pool_servers.end(play.programs.values())
                self.assertEqual([], pool_history.Checker().replay(pool.etcd.history()))

    def test_a_cut_is_in_one_direction(self):
        with pool_network.namespaces.Network("ab") as network:
            network.cut("a", "b")
            self.assertEqual((False, True), (network.arrives("a", "b"), network.arrives("b", "a")))
            network.mend("a", "b")
            self.assertTrue(network.arrives("a", "b"))


if __name__ == "__main__":
    unittest.main()
