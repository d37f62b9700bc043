"""A pool on machines with addresses of their own places as pool_policies.txt says, and connections
there can be cut in one direction."""
import pathlib
import subprocess
import unittest

import pool_history
import pool_network
import pool_servers
import server

GIB = 1 << 30
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
        while (line := server.next_line(one)) != "READY\n":
            if not line:
                return "refused"
        (number, (host, claim)), = ((number, found) for number, found in self.known().items()
                                    if number not in before)
        self.numbers[name] = number
        return f"{host}:{','.join(map(str, claim['devices']))}"

    def busy(self, place):
        """Waits until all know that the device works for a session."""
        host, device = place.split(":")

        def is_busy():
            load = self.pool.etcd.keys("load/").get(f"load/{host}", {})
            return any(one.get("ordinal", 0) == int(device) and one.get("busy", 0) > 0
                       for one in load.get("devices", []))
        server.wait_for(is_busy, 20, f"work on {place}")

    def known(self):
        return {number: (host, claim) for host, of in self.pool.claims().items()
                for number, claim in of.items()}

    def end(self, name):
        pool_servers.end([self.programs.pop(name)])
        server.wait_for(lambda: self.numbers[name] not in self.known(), 20, "the end of its claim")


class PoolNetworkTest(unittest.TestCase):
    maxDiff = None

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
