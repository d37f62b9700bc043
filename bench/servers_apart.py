#!/usr/bin/env python3
"""One program with devices of two servers: what a copy from server to server costs beside an upload
of the same size, in turn in one process, and how many bytes of it pass the program's host.

  bench/servers_apart.py [--build DIR] [--driver auto|software] [--rounds N] [--sizes MIB,...]
                         [--in-flight N] [--rtt MS,...] [--copy-microseconds N] [--network]
                         [--out FILE]

Bytes are counted by the program's sessions (LONGWIRE_TRACE=summary); with --network also at its
host's cable: servers and program are in network namespaces then, for which root is needed. The
last column says what both copies and uploads would have carried through the program. Counted are
also the program's records for each copy (without what surrounds them), the pieces that the
receiving servers stored in ordinary memory, and page faults and processor time of the workers.
--rtt puts round-trip times between the program and both servers, and between these.
--copy-microseconds lets the software device take so long for each copy at least."""
import argparse
import contextlib
import json
import os
import pathlib
import re
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e"))
import namespaces  # noqa: E402
import pool_network  # noqa: E402
import relays  # noqa: E402
import server  # noqa: E402

SECONDS = 300
NAMES = ("a", "b")
MIB = 1 << 20
MEMORY = 2 << 30  # of a software device
FIGURE = re.compile(r"^(upload|copy)_\d+MiB\s+([0-9.]+) GB/s$", re.MULTILINE)
PASSED = re.compile(r"(\d+) bytes up, (\d+) bytes down")


WAYS = (("server to server", ""), ("begun when told", "early-copies"),
        ("in pieces", "whole-copies"), ("through the program", "bridges"))


@contextlib.contextmanager
def servers(build, driver, network, microseconds):
    """Two of them, with one device each, and what counts bytes at the program's cable, if any."""
    slow = {"LONGWIRE_SOFTGPU_COPY_MICROSECONDS": microseconds}
    with contextlib.ExitStack() as stack:
        if network:
            net = stack.enter_context(namespaces.Network(NAMES))
            yield [stack.enter_context(pool_network.Host(
                net, name, 0, config=json.dumps({"insecure_listen_anywhere": True}), build=build,
                software_memory=MEMORY, variables=slow)) for name in NAMES], cable_bytes
            return
        yield [stack.enter_context(server.Server(
            driver=driver, build=build, software_memory=MEMORY, variables=slow,
            config="" if driver == "software" else f"devices: [{{device: {place}}}]\n"))
            for place in range(2)], None


def cable_bytes():
    table = pathlib.Path("/proc/thread-self/net/dev").read_text()
    numbers = re.search(r"cable:(.*)", table).group(1).split()
    return int(numbers[0]) + int(numbers[8])


class Workers:
    """Page faults and processor time of all workers while it is entered, as last seen: a worker
    ends with its session."""

    def __init__(self, both):
        self.both, self.seen, self.over = both, {}, threading.Event()

    def __enter__(self):
        self.pids = {pid for one in self.both for pid in one.processes()["longwire-worker"]}
        self.before = {pid: self.look(pid) for pid in self.pids}
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        pairs = [[now - before for now, before in zip(self.seen[pid], self.before[pid])]
                 for pid in self.seen]
        self.faults = sum(faults for faults, _ in pairs)
        self.seconds = sum(ticks for _, ticks in pairs) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def look(pid):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[7]), int(fields[11]) + int(fields[12])

    def watch(self):
        while not self.over.wait(0.005):
            for pid in self.pids:
                with contextlib.suppress(OSError):
                    self.seen[pid] = self.look(pid)


def sent(result):
    return sum(map(int, re.findall(r"(\d+) calls sent", result.err)))


class Measure:
    def __init__(self, both, count, rounds, in_flight, raw):
        self.both, self.count, self.rounds = both, count, rounds
        self.in_flight, self.raw = in_flight, raw

    def run(self, size, rounds, disabled, address):
        one = self.both[0]
        variables = {"LONGWIRE_ACROSS": 1, "LONGWIRE_TRACE": "summary",
                     "LONGWIRE_COMPRESSION": "none",
                     **({"LONGWIRE_DISABLE": disabled} if disabled else {})}
        words = [size, rounds, self.in_flight]
        result = server.run(one.command(one.build / "bench" / "across_figures", *map(str, words),
                                        server=address), one.environment(**variables), SECONDS)
        self.raw.write(f"$ across_figures {words}, disabled: {disabled or 'nothing'}\n"
                       f"{result.out}{result.err}\n")
        if result.code != 0:
            sys.exit(f"across_figures ended with {result.code}: {result.err}\n{one.log_tail()}")
        return result

    def row(self, size, disabled, address):
        """Speeds in GB/s; MiB that passed the program, by its count and its cable's; records for a
        copy; pieces in ordinary memory; page faults and seconds of the workers."""
        time.sleep(1)  # workers of the run before have ended, and others are warm
        before = self.count() if self.count else 0
        with Workers(self.both) as workers:
            result = self.run(size, self.rounds, disabled, address)
        cable = (self.count() - before) / MIB if self.count else None
        # A round more has two copies more each, an upload and a download of a few records.
        more = self.run(size, self.rounds + 4, disabled, address)
        records = (sent(more) - sent(result)) / (8 * self.in_flight)
        found = {kind: float(value) for kind, value in FIGURE.findall(result.out)}
        passed = sum(int(up) + int(down) for up, down in PASSED.findall(result.err)) / MIB
        ordinary = sum(map(int, re.findall(r"(\d+) in ordinary memory", result.err)))
        return (found["upload"], found["copy"], passed, cable, records, ordinary, workers)


def table(measure, sizes, address, say):
    say(f"{'size':>8} {'way':<20} {'upload':>7} {'copy':>6} {'copy/upload':>12} "
        f"{'MiB by count':>13} {'by cable':>9} {'of all':>7} {'records':>8} {'ordinary':>9} "
        f"{'faults':>8} {'worker s':>9}")
    for size in sizes:
        for way, disabled in WAYS:
            upload, copy, passed, cable, records, ordinary, workers = measure.row(
                size, disabled, address)
            # Each round goes up, over, back and down; copies count twice.
            everything = 6 * size * (measure.rounds + 1) * measure.in_flight
            say(f"{size:>5}MiB {way:<20} {upload:7.3f} {copy:6.3f} {copy / upload:12.2f} "
                f"{passed:13.0f} {'-' if cable is None else f'{cable:.0f}':>9} {everything:>7} "
                f"{records:8.1f} {ordinary:>9} {workers.faults:>8} {workers.seconds:9.2f}")


def run(told, out):
    def say(line):
        print(line, flush=True)
        print(line, file=out, flush=True)
    build = told.build.resolve()
    with open(os.devnull, "w") as nowhere, \
            servers(build, told.driver, told.network, told.copy_microseconds) as (both, count):
        measure = Measure(both, count, told.rounds, told.in_flight, nowhere)
        sizes = [int(size) for size in told.sizes.split(",")]
        for rtt in map(float, told.rtt.split(",")):
            with contextlib.ExitStack() as stack:
                addresses = [one.address if not rtt else stack.enter_context(
                    relays.RelayTo(build, one.port, rtt_ms=rtt)).address for one in both]
                say(f"round trips of {rtt} ms" if rtt else "no network between them")
                table(measure, sizes, ",".join(addresses), say)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=server.build_folder())
    parser.add_argument("--driver", default="software", choices=("auto", "software"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sizes", default="16,64,256")
    parser.add_argument("--in-flight", type=int, default=1)
    parser.add_argument("--rtt", default="0")
    parser.add_argument("--copy-microseconds", type=int, default=0)
    parser.add_argument("--network", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("servers-apart.txt"))
    told = parser.parse_args()
    with open(told.out, "w") as out:
        run(told, out)


if __name__ == "__main__":
    main()
