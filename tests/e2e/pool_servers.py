"""Several servers in one pool."""
import contextlib
import json
import subprocess
import unittest

import etcd_members
import server

MIB = 1 << 20
OPENINGS = {"openings_per_second": 1000, "openings_at_once": 1000, "waiting_of_identity": 512}


class Pool(contextlib.ExitStack):
    """Servers a, b, c… with software devices, on members of etcd."""

    def __init__(self, names="abc", members=3, devices=2, memory=512 * MIB, sessions=30,
                 keys=None, of_host=None, pool_keys=None, variables=()):
        super().__init__()
        self.names, self.count = names, members
        self.devices, self.memory, self.sessions = devices, memory, sessions
        self.more, self.of_host = keys or {}, of_host or {}
        self.pool_keys = pool_keys or {}
        self.variables = variables  # of all its servers
        self.metrics = {}

    def __enter__(self):
        super().__enter__()
        try:
            self.etcd = self.enter_context(self.make_etcd())
            self.servers = {name: self.enter_context(self.make(name)) for name in self.names}
            server.wait_for(lambda: set(self.joined()) == set(self.names), 15, "all hosts")
            server.wait_for(lambda: "placer" in self.etcd.keys(), 15, "a placer")
        except BaseException:
            self.close()
            raise
        return self

    def make_etcd(self):
        return etcd_members.Members(self.count)

    def make(self, name, host=None):
        self.metrics[name] = f"127.0.0.1:{server.free_port()}"
        keys = {"max_sessions": self.sessions, "metrics": self.metrics[name],
                "admission": OPENINGS, **self.more,
                "memory": {"prepared": "0"},
                "pool": {"host": host or name, "etcd": self.etcd.addresses(),
                         "placement": "spread", "labels": [f"name={name}"],
                         **self.pool_keys, **self.of_host.get(name, {})}}
        return self.make_server(name, keys)

    def make_server(self, name, config):
        del name  # servers at loopback are all alike
        return server.Server(config=json.dumps(config), software_devices=self.devices,
                             software_memory=self.memory, warm_workers=0,
                             variables=self.variables)

    def joined(self):
        return sorted(key[5:] for key in self.etcd.keys("host/"))

    def claims(self):
        """Host → number → claim."""
        found = {name: {} for name in self.names}
        for key, claim in self.etcd.keys("claim/").items():
            _, host, number = key.split("/")
            found.setdefault(host, {})[number] = claim
        return found

    def placer(self):
        return self.etcd.keys().get("placer", {}).get("host")

    def hold(self, front, words=(), **variables):
        """A program that holds a session, asked for at one server or several; not waited for."""
        asked = self.servers[front[0]]
        address = ",".join(self.servers[name].address for name in front)
        command = [asked.dist / "bin" / "longwire", "run", *words, "--server", address, "--",
                   asked.program("hold_session.static")]
        return subprocess.Popen(command, env=asked.environment(**variables),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def held(self, front, words=(), **variables):
        """The same, once it runs."""
        program = self.hold(front, words, **variables)
        self.await_ready(program)
        return program

    def await_ready(self, program):
        line = server.next_line(program)
        if line == "READY\n":
            return
        program.kill()
        said = program.communicate()[1]
        logs = "\n".join(one.log_tail() for one in self.servers.values())
        raise AssertionError(f"a program said {line!r}: {said}\n{logs}")

    def no_claims(self):
        return not any(self.claims().values())


def end(programs):
    for program in programs:
        program.kill()
    for program in programs:
        program.communicate()


class PoolCase(unittest.TestCase):
    """Tests of one pool, in `pool`: the programs that a test holds there end with it, and so do
    their claims."""

    def setUp(self):
        self.programs = []
        self.addCleanup(self.ends)

    def ends(self):
        end(self.programs)
        server.wait_for(self.pool.no_claims, 20, "the end of all claims")

    def hold(self, front, *words, **variables):
        self.programs.append(self.pool.held(front, words, **variables))
        return self.programs[-1]
