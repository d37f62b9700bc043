"""Machines on one cable: a network namespace for each, with an address of its own, on a bridge.
Whoever makes a network enters its namespace `client`, and what it starts is there, too; the
directions of each connection are cut one by one. Needs root."""
import ctypes
import os
import pathlib
import socket
import subprocess

NEW_NETWORK = 0x40000000  # CLONE_NEWNET
SUBNET = "10.231.78"
HUB = "hub"
CLIENT = "client"


def call(*words):
    subprocess.run([str(word) for word in words], check=True)


def enter(file):
    """The calling thread, and those that it starts, have this network from now on."""
    if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Network:
    def __init__(self, names):
        self.names = [*names, CLIENT]
        self.addresses = {name: f"{SUBNET}.{i + 1}" for i, name in enumerate(self.names)}

    def full(self, name):
        return f"lw-{os.getpid()}-{name}"

    def __enter__(self):
        self.before = open("/proc/thread-self/ns/net", "rb")
        try:
            for name in [HUB, *self.names]:
                call("ip", "netns", "add", self.full(name))
                call("ip", "-n", self.full(name), "link", "set", "lo", "up")
            call("ip", "-n", self.full(HUB), "link", "add", "bridge", "type", "bridge")
            call("ip", "-n", self.full(HUB), "link", "set", "bridge", "up")
            for name in self.names:
                self.plug(name)
            with open(f"/run/netns/{self.full(CLIENT)}", "rb") as there:
                enter(there)
        except BaseException:
            self.__exit__()
            raise
        return self

    def plug(self, name):
        hub, end = self.full(HUB), self.full(name)
        call("ip", "link", "add", "cable", "netns", end, "type", "veth", "peer", "name",
             f"to-{name}", "netns", hub)
        call("ip", "-n", hub, "link", "set", f"to-{name}", "master", "bridge", "up")
        call("ip", "-n", end, "address", "add", f"{self.addresses[name]}/24", "dev", "cable")
        call("ip", "-n", end, "link", "set", "cable", "up")

    def __exit__(self, *_):
        enter(self.before)
        self.before.close()
        for name in [HUB, *self.names]:
            if pathlib.Path("/run/netns", self.full(name)).exists():
                call("ip", "netns", "delete", self.full(name))

    def at(self, name, *words):
        """The command, on this machine; its process id is that of the command itself."""
        return ["nsenter", f"--net=/run/netns/{self.full(name)}", "--", *map(str, words)]

    def cut(self, sources, target):
        """What the sources send to the target is lost from now on, and nothing else is."""
        for source in sources:
            self.filter("-A", source, target)

    def mend(self, sources, target):
        for source in sources:
            self.filter("-D", source, target)

    def filter(self, what, source, target):
        call(*self.at(target, "iptables", "-w", what, "INPUT", "-s", self.addresses[source], "-j",
                      "DROP"))

    def arrives(self, source, target, port=7999):
        """Whether a datagram does."""
        with self.socket(target) as to, self.socket(source) as out:
            to.bind((self.addresses[target], port))
            to.settimeout(0.5)
            out.sendto(b"?", (self.addresses[target], port))
            try:
                return to.recv(1) == b"?"
            except TimeoutError:
                return False

    def socket(self, name):
        """Of that machine; this thread's own network stays what it is."""
        with open(f"/run/netns/{self.full(name)}", "rb") as there, \
                open("/proc/thread-self/ns/net", "rb") as here:
            enter(there)
            try:
                return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            finally:
                enter(here)
