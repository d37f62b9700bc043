"""Servers and a program that has devices of all of them, on machines of their own."""
import json
import pathlib
import re
import unittest

import namespaces
import pool_network
import programs
import server

BYTES = 32 << 20
NAMES = ("a", "b")
PASS = "READY\nPASS across_copies\n"


class BridgesTest(unittest.TestCase):
    """With the servers, and the programs on them."""

    names = NAMES
    config = {"insecure_listen_anywhere": True, "resume_grace": "6s"}
    variables = {}  # of the servers

    def setUp(self):
        self.network = self.enterContext(namespaces.Network(self.names))
        self.servers = {name: self.enterContext(self.host(name)) for name in self.names}

    def host(self, name):
        return pool_network.Host(self.network, name, 0, config=json.dumps(self.config),
                                 variables=self.variables)

    def environment(self, **more):
        return self.servers["a"].environment(**{"LONGWIRE_ACROSS": 1, "LONGWIRE_TRACE": "summary",
                                                "LONGWIRE_COMPRESSION": "none", **more})

    def addresses(self, names=None):
        return ",".join(self.servers[name].address for name in names or self.names)

    def command(self, *arguments):
        one = self.servers["a"]
        return one.command(one.program("across_copies.static"), *map(str, arguments),
                           server=self.addresses())

    def run_copies(self, *arguments, timeout=120, **more):
        return server.run(self.command(*arguments), self.environment(**more), timeout)

    def logs(self):
        return "\n".join(one.log_tail() for one in self.servers.values())

    def client_bytes(self):
        """That have passed the program's cable, in both directions."""
        table = pathlib.Path("/proc/thread-self/net/dev").read_text()
        numbers = re.search(r"cable:(.*)", table).group(1).split()
        return int(numbers[0]) + int(numbers[8])

    def far(self, copies, **more):
        """Large copies, and how many bytes passed the program's host for them."""
        before = self.client_bytes()
        result = self.run_copies("far", copies, BYTES, **more)
        self.assertEqual((0, PASS), (result.code, result.out), f"{result}\n{self.logs()}")
        return self.client_bytes() - before, result

    def start_far(self):
        process = server.start_session(self.command("far", 1 << 20, BYTES), self.environment())
        self.addCleanup(process.kill)
        self.assertEqual("READY\n", server.next_line(process), self.logs())
        return process

    def expect_failure(self, process, *gone, seconds=60):
        """The copy under way has failed, and with it its destination's context; so have those of
        the devices that are gone. Returns what the program says."""
        result = server.finish(process, seconds)
        self.assertEqual(0, result.code, f"{result}\n{self.logs()}")
        copy, *devices = result.out.splitlines()
        self.assertRegex(copy, r"^copy \d+ gave 719$")
        destination = 1 - int(copy.split()[1]) % 2
        failed = {int(device): int(code) for _, device, _, code in map(str.split, devices)}
        self.assertEqual({device: 719 if device in (destination, *gone) else 0
                          for device in (0, 1)}, failed, result)
        self.assertRegex(result.err, "a copy between servers has failed|the session has ended")
        return result

    def expect_server_goes_on(self, name):
        one = self.servers[name]
        result = one.run("vector_add.static")
        self.assertIsNone(programs.what_is_wrong("vector_add", result), one.log_tail())

    def cut(self, *pairs):
        for source, target in pairs:
            self.network.cut([source], target)

    def mend(self, *pairs):
        for source, target in pairs:
            self.network.mend([source], target)
