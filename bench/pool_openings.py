#!/usr/bin/env python3
"""What a pool adds to the opening of a session: a program from its start to its first work done,
at a server without a pool and at one of a pool, in turn.

With --hosts the directory has that many simulated hosts besides, full of sessions, which the placer
looks at for each opening and never chooses.
"""
import argparse
import itertools
import json
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e"))
import etcd_members  # noqa: E402
import pool_servers  # noqa: E402
import server  # noqa: E402

SESSIONS = 4  # of each simulated host
GIB = 1 << 30
REST = 0.3  # until new workers stand by


def simulated(name, epoch):
    """The keys of one host and of its sessions."""
    identity = f"identity-{name}"
    device = {"ordinal": 0, "uuid": f"GPU-{name}", "name": "simulated", "total": str(80 * GIB),
              "bytes": str(SESSIONS * GIB), "sessions": SESSIONS}
    yield f"host/{name}", {"address": "192.0.2.1:1", "version": "simulated", "identity": identity,
                           "incarnation": "1", "labels": {"name": name}}
    yield f"cap/{name}", {"identity": identity, "incarnation": "1", "sessionsLimit": SESSIONS,
                          "sessions": SESSIONS, "devices": [device], "epoch": str(epoch)}
    yield f"load/{name}", {"devices": [{"ordinal": 0, "busy": 0.5, "freeBytes": str(GIB)}]}
    for number in range(SESSIONS):
        session = f"{name}-{number}".encode().hex()
        yield f"claim/{name}/{session}", {
            "state": "OPEN", "tenant": "everybody", "identity": "simulated", "devices": [0],
            "bytes": str(GIB), "ticketHash": "0", "incarnation": "1", "program": "simulated"}
        yield f"sess/{session}", {"host": name, "generation": "1"}


def fill(etcd, hosts):
    epoch = etcd.keys().get("epoch", 0)
    keys = itertools.chain.from_iterable(simulated(f"sim{i:04}", epoch) for i in range(hosts))
    while batch := list(itertools.islice(keys, 100)):
        etcd.ask("kv/txn", {"success": [
            {"request_put": {"key": etcd_members.encode(etcd_members.PREFIX + key),
                             "value": etcd_members.encode(json.dumps(value))}}
            for key, value in batch]})


def opening(longwire):
    """Milliseconds until the program has worked."""
    begun = time.perf_counter()
    program = subprocess.Popen(longwire.command(longwire.program("hold_session.static")),
                               env=longwire.environment(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, text=True)
    line = program.stdout.readline()
    took = 1e3 * (time.perf_counter() - begun)
    pool_servers.end([program])
    if line != "READY\n":
        sys.exit(f"a program said {line!r}\n{longwire.log_tail()}")
    return took


def settle(*servers):
    """Until the last session is over everywhere, so that its end costs the next one nothing."""
    for one in servers:
        server.wait_for(lambda: not one.status()["sessions"], 20, "the sessions' end")
    time.sleep(REST)


def measure(alone, pool, front, openings):
    times = {"alone": [], "pool": []}
    for turn in range(openings):
        for name, longwire in (("alone", alone), ("pool", pool.servers[front])):
            took = opening(longwire)
            settle(alone, *pool.servers.values())
            if turn:  # the first one starts links and reads files
                times[name].append(took)
    return times


def report(what, times):
    for name, values in times.items():
        tenth = statistics.quantiles(values, n=10)
        print(f"{what:28} {name:6} median {statistics.median(values):7.2f} ms, "
              f"first tenth {tenth[0]:7.2f}, last tenth {tenth[-1]:7.2f}")
    added = [one - other for one, other in zip(times["pool"], times["alone"])]
    print(f"{what:28} added  median {statistics.median(added):7.2f} ms "
          f"({len(added)} pairs)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=server.build_folder())
    parser.add_argument("--openings", type=int, default=60)
    parser.add_argument("--hosts", type=int, nargs="+", default=[0, 1000],
                        help="simulated hosts in the directory")
    parser.add_argument("--members", type=int, default=1, help="of etcd")
    arguments = parser.parse_args()
    alone = server.Server(build=arguments.build, warm_workers=2,
                          config=json.dumps({"admission": pool_servers.OPENINGS}))
    with alone, BenchPool(arguments.build, arguments.members) as pool:
        placer = pool.placer()
        other = next(name for name in pool.names if name != placer)
        filled = 0
        for hosts in arguments.hosts:
            if hosts > filled:
                fill(pool.etcd, hosts)
                filled = hosts
            for what, front in (("asked the placer", placer), ("asked another host", other)):
                report(f"{hosts} hosts, {what}",
                       measure(alone, pool, front, arguments.openings))


class BenchPool(pool_servers.Pool):
    """Two hosts, each of which has room for a program."""

    def __init__(self, build, members):
        super().__init__("ab", members, devices=1)
        self.build = build

    def make_server(self, name, config):
        return server.Server(config=json.dumps(config), build=self.build, warm_workers=2,
                             software_memory=self.memory)


if __name__ == "__main__":
    main()
