#!/usr/bin/env python3
"""One program with devices of two servers: what a copy from server to server costs beside an upload
of the same size, in turn in one process, and how many bytes of it pass the program's host.

  bench/servers_apart.py [--build DIR] [--driver auto|software] [--rounds N] [--sizes MIB,...]
                         [--network] [--out FILE]

Bytes are counted by the program's sessions (LONGWIRE_TRACE=summary); with --network also at its
host's cable: servers and program are in network namespaces then, for which root is needed. The
last column says what both copies and uploads would have carried through the program."""
import argparse
import contextlib
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e"))
import namespaces  # noqa: E402
import pool_network  # noqa: E402
import server  # noqa: E402

SECONDS = 300
NAMES = ("a", "b")
MIB = 1 << 20
MEMORY = 2 << 30  # of a software device
FIGURE = re.compile(r"^(upload|copy)_\d+MiB\s+([0-9.]+) GB/s$", re.MULTILINE)
PASSED = re.compile(r"(\d+) bytes up, (\d+) bytes down")


@contextlib.contextmanager
def servers(build, driver, network):
    """Two of them, with one device each, and what counts bytes at the program's cable, if any."""
    with contextlib.ExitStack() as stack:
        if network:
            net = stack.enter_context(namespaces.Network(NAMES))
            yield [stack.enter_context(pool_network.Host(
                net, name, 0, config=json.dumps({"insecure_listen_anywhere": True}), build=build,
                software_memory=MEMORY)) for name in NAMES], cable_bytes
            return
        yield [stack.enter_context(server.Server(
            driver=driver, build=build, software_memory=MEMORY,
            config="" if driver == "software" else f"devices: [{{device: {place}}}]\n"))
            for place in range(2)], None


def cable_bytes():
    table = pathlib.Path("/proc/thread-self/net/dev").read_text()
    numbers = re.search(r"cable:(.*)", table).group(1).split()
    return int(numbers[0]) + int(numbers[8])


def measure(both, count, size, rounds, disabled, raw):
    """upload and copy in GB/s, and MiB that passed the program: by its count, and its cable's."""
    one = both[0]
    address = ",".join(each.address for each in both)
    variables = {"LONGWIRE_ACROSS": 1, "LONGWIRE_TRACE": "summary", "LONGWIRE_COMPRESSION": "none",
                 **({"LONGWIRE_DISABLE": disabled} if disabled else {})}
    before = count() if count else 0
    result = server.run(one.command(one.build / "bench" / "across_figures", str(size), str(rounds),
                                    server=address), one.environment(**variables), SECONDS)
    cable = (count() - before) / MIB if count else None
    raw.write(f"$ across_figures {size} {rounds}, disabled: {disabled or 'nothing'}\n"
              f"{result.out}{result.err}\n")
    if result.code != 0:
        sys.exit(f"across_figures ended with {result.code}: {result.err}\n{one.log_tail()}")
    found = {kind: float(value) for kind, value in FIGURE.findall(result.out)}
    passed = sum(int(up) + int(down) for up, down in PASSED.findall(result.err)) / MIB
    return found["upload"], found["copy"], passed, cable


def table(both, count, sizes, rounds, raw, say):
    say(f"{'size':>8} {'way':<20} {'upload GB/s':>12} {'copy GB/s':>10} {'copy/upload':>12} "
        f"{'MiB by count':>13} {'by cable':>9} {'of all':>7}")
    for size in sizes:
        for way, disabled in (("server to server", ""), ("through the program", "bridges")):
            upload, copy, passed, cable = measure(both, count, size, rounds, disabled, raw)
            # Each round goes up, over, back and down; copies count twice.
            everything = 6 * size * (rounds + 1)
            say(f"{size:>5}MiB {way:<20} {upload:12.3f} {copy:10.3f} {copy / upload:12.2f} "
                f"{passed:13.0f} {'-' if cable is None else f'{cable:.0f}':>9} {everything:>7}")


def run(build, driver, raw, out, rounds, sizes=(16, 64, 256), network=False):
    def say(line):
        print(line, flush=True)
        print(line, file=out, flush=True)
    with servers(build, driver, network) as (both, count):
        table(both, count, sizes, rounds, raw, say)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=server.build_folder())
    parser.add_argument("--driver", default="software", choices=("auto", "software"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sizes", default="16,64,256")
    parser.add_argument("--network", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("servers-apart.txt"))
    told = parser.parse_args()
    with open(told.out, "w") as out:
        run(told.build.resolve(), told.driver, out, out, told.rounds,
            [int(size) for size in told.sizes.split(",")], told.network)


if __name__ == "__main__":
    main()
