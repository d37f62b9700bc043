#!/usr/bin/env python3
"""Two network namespaces and a cable between them that is pulled out again and again, while work
like a training loop's goes over it: every step's result is compared, every launch is counted on
the device, so nothing may be lost, doubled or changed.

cable_test.py [--seconds N] [--cuts N] [--longest SECONDS] [--resets N]
              [--destroys N] [--kills LIST] [--seed N]

LIST: how often each process is killed in between, as link=2,daemon=2,keeper=1. Needs root.
"""
import argparse
import ctypes
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import relay  # noqa: E402
import server  # noqa: E402

SERVER, CLIENT = "10.231.77.1", "10.231.77.2"
LOSS = 0.02
AGAIN = 0.2  # seconds until a lost packet is sent again, and all behind it waits: TCP's shortest
NEW_NETWORK = 0x40000000  # CLONE_NEWNET


def call(*words):
    subprocess.run([str(word) for word in words], check=True)


class Cable:
    """Two namespaces of names of this process alone."""

    def __init__(self):
        self.names = [f"lw-cable-{end}-{os.getpid()}" for end in ("server", "client")]

    def __enter__(self):
        for name in self.names:
            call("ip", "netns", "add", name)
        call("ip", "link", "add", "cable", "netns", self.names[0], "type", "veth", "peer", "name",
             "cable", "netns", self.names[1])
        for name, address in zip(self.names, (SERVER, CLIENT)):
            call("ip", "-n", name, "address", "add", f"{address}/24", "dev", "cable")
            call("ip", "-n", name, "link", "set", "lo", "up")
            call("ip", "-n", name, "link", "set", "cable", "up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            call("ip", "netns", "delete", name)

    def server_end(self, *words):
        return ["ip", "netns", "exec", self.names[0], *map(str, words)]

    def client_end(self, *words):
        return ["ip", "netns", "exec", self.names[1], *map(str, words)]

    def enter_client_end(self):
        """The calling thread's sockets are there from now on."""
        with open(f"/run/netns/{self.names[1]}", "rb") as there:
            if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), NEW_NETWORK) != 0:
                raise OSError(ctypes.get_errno(), "setns")

    def pull(self, seconds):
        call("ip", "-n", self.names[1], "link", "set", "cable", "down")
        time.sleep(seconds)
        call("ip", "-n", self.names[1], "link", "set", "cable", "up")


class CableServer(server.Server):
    def __init__(self, cable):
        super().__init__(config="insecure_listen_anywhere: true\n")
        self.cable = cable

    def start_daemon(self):
        self.address = f"{SERVER}:{self.port}"
        super().start_daemon()

    def _start(self, name, *arguments):
        with open(self.log, "a") as log:
            self.children[name] = subprocess.Popen(
                self.cable.server_end(self.dist / "bin" / name, *arguments),
                env=self.environment(**self.variables), stdin=subprocess.DEVNULL, stdout=log,
                stderr=log)

    def answers(self):
        return self.accepts_locally()

    def begin(self, seconds, address):
        words = self.command(self.program("counted_training.static"), seconds, server=address)
        return subprocess.Popen(self.cable.client_end(*words), env=self.environment(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def destroy(self, end, between):
        """The kernel closes one end's connections: of the link, or of the daemon."""
        if end == "client":
            words = self.cable.client_end("ss", "-K", "dport", "=", between.address.split(":")[1])
        else:
            words = self.cable.server_end("ss", "-K", "sport", "=", str(self.port))
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self, which):
        """Kills all processes of a kind, and starts those anew that nothing of ours starts."""
        name = {"daemon": "longwired"}.get(which, f"longwire-{which}")
        for pid in self.processes()[name]:
            os.kill(pid, signal.SIGKILL)
        if which == "daemon":
            self.children.pop("longwired").wait()
            self.door.unlink(missing_ok=True)
            self.start_daemon()


def events_of(options, chance):
    """What happens, in an order of its own: (what, argument)."""
    events = [("pull", options.longest ** chance.uniform(0, 1) * 0.1 ** chance.uniform(0, 1))
              for _ in range(options.cuts)]
    events = [(what, min(max(seconds, 0.1), options.longest)) for what, seconds in events]
    events += [("reset", 0)] * options.resets
    events += [("destroy", end) for end in ("client", "server")] * options.destroys
    for kill in filter(None, options.kills.split(",")):
        which, _, times = kill.partition("=")
        events += [("kill", which)] * int(times or 1)
    chance.shuffle(events)
    return events


def disturb(events, pause, cable, longwire, between, over):
    for what, argument in events:
        if over.wait(pause):
            return
        print(f"{what} {argument}", flush=True)
        if what == "pull":
            cable.pull(argument)
        elif what == "reset":
            between.cut_all(reset=True)
        elif what == "destroy":
            longwire.destroy(argument, between)
        else:
            longwire.kill(argument)


def run(options, chance, cable, longwire):
    between = relay.Relay(longwire.port, target=SERVER, enter=cable.enter_client_end)
    between.delay = lambda: AGAIN if chance.random() < LOSS else 0
    events = events_of(options, chance)
    quiet = max(options.seconds - sum(n for what, n in events if what == "pull"), 1)
    program = longwire.begin(options.seconds, between.address)
    try:
        if server.next_line(program) != "READY\n":
            raise AssertionError(program.communicate())
        over = threading.Event()
        hand = threading.Thread(target=disturb, args=(
            events, quiet / (len(events) + 1), cable, longwire, between, over))
        hand.start()
        out, err = program.communicate(timeout=options.seconds * 3 + 60)
        over.set()
        hand.join()
    finally:
        program.kill()
        between.close()
    print(out, err)
    wrong = program.returncode != 0 or "PASS counted_training" not in out or err != ""
    resumed = longwire.log.read_text().count("resumed")
    print(f"{len(events)} disturbances, resumed {resumed} times")
    if wrong or resumed == 0:
        print("WRONG:", program.returncode, longwire.log_tail(60))
    return 1 if wrong or resumed == 0 else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--cuts", type=int, default=3)
    parser.add_argument("--longest", type=float, default=1)
    parser.add_argument("--resets", type=int, default=3)
    parser.add_argument("--destroys", type=int, default=1, help="at each end")
    parser.add_argument("--kills", default="")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with Cable() as cable, CableServer(cable) as longwire:
        return run(options, random.Random(options.seed), cable, longwire)


if __name__ == "__main__":
    sys.exit(main())
