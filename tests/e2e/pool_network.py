"""A pool on machines of its own: hosts a, b, c and members of etcd m0, m1, m2, each in a network
namespace, and programs in another one."""
import json
import pathlib
import subprocess

import etcd_members
import namespaces
import pool_servers
import server

FAKETIME = pathlib.Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")


class Member(etcd_members.Member):
    def __init__(self, name, folder, network):
        super().__init__(name, folder)
        self.network = network
        self.host = network.addresses[name]
        self.address = f"{self.host}:{self.port}"

    def prefix(self):
        return self.network.at(self.name)


class Members(etcd_members.Members):
    def __init__(self, count, network):
        super().__init__(count)
        self.network = network

    def member(self, name, place):
        return Member(name, place, self.network)


class Host(server.Server):
    """clock: seconds by which the daemon's and the warden's calendars differ from this one."""

    def __init__(self, network, name, clock, **options):
        if clock:
            options["variables"] = {"LD_PRELOAD": FAKETIME, "FAKETIME": f"{clock:+d}s",
                                    "FAKETIME_DONT_FAKE_MONOTONIC": 1}
        super().__init__(**options)
        self.network, self.name = network, name

    def start_daemon(self):
        self.address = f"{self.network.addresses[self.name]}:{self.port}"
        super().start_daemon()

    def _start(self, name, *arguments):
        with open(self.log, "a") as log:
            self.children[name] = subprocess.Popen(
                self.network.at(self.name, self.dist / "bin" / name, *arguments),
                env=self.environment(**self.variables), stdin=subprocess.DEVNULL, stdout=log,
                stderr=log)

    def answers(self):
        return self.accepts_locally()


class Pool(pool_servers.Pool):
    """clocks: of hosts, in seconds; placement: the policy."""

    def __init__(self, names="abc", members=3, clocks=None, **options):
        super().__init__(names, members, **options)
        self.clocks = clocks or {}

    def __enter__(self):
        self.network = self.enter_context(
            namespaces.Network([*self.names, *(f"m{i}" for i in range(self.count))]))
        return super().__enter__()

    def make_etcd(self):
        return Members(self.count, self.network)

    def make_server(self, name, config):
        return Host(self.network, name, self.clocks.get(name, 0),
                    config=json.dumps({"insecure_listen_anywhere": True, **config}),
                    software_devices=self.devices, software_memory=self.memory, warm_workers=0)
