"""Copies over narrow wires: as they are, compressed, and kept by the server from the last start."""
import re
import statistics
import subprocess

from relays import RelayTo
from server import Server

# Gbit/s, and how much is copied: some seconds as it is.
WIRES = [(0.1, 32), (1, 192), (10, 512)]
CONTENTS = ["indices", "weights", "random"]
WAYS = {"none": {"LONGWIRE_COMPRESSION": "none"}, "auto": {},
        "lz4": {"LONGWIRE_COMPRESSION": "lz4"}, "zstd": {"LONGWIRE_COMPRESSION": "zstd"}}
KEPT = {"LONGWIRE_COMPRESSION": "none", "LONGWIRE_CACHE_UPLOADS": 1 << 20}
TIMES = re.compile(r"^up ([0-9.]+) down ([0-9.]+)$", re.MULTILINE)


def run(server, build, to, mebibytes, content, copies, variables, raw):
    """MB/s up and down, medians over the copies; None if it failed."""
    command = server.command(build / "bench" / "copy_rate", str(mebibytes), content, str(copies),
                             server=to)
    done = subprocess.run(command, env=server.environment(**variables), capture_output=True,
                          text=True, timeout=300)
    raw.write(f"$ {' '.join(map(str, command))} with {variables}: {done.returncode}\n"
              f"{done.stdout}{done.stderr}\n")
    times = [tuple(map(float, pair)) for pair in TIMES.findall(done.stdout)]
    if done.returncode != 0 or not times:
        return None
    return [mebibytes * 1.048576 / statistics.median(side) for side in zip(*times)]


def table(build, driver, raw, rounds):
    def say(line):
        print(line, flush=True)
        raw.write(line + "\n")

    copies = rounds or 3
    say(f"{'Gbit/s':>6} {'bytes':<8} {'way':<6} {'MB/s up':>9} {'MB/s down':>9}   beside none")
    with Server(driver, build=build) as server:
        for gbit, mebibytes in WIRES:
            with RelayTo(build, server.port, gbit=gbit) as relay:
                for content in CONTENTS:
                    plain = None
                    for way, variables in WAYS.items():
                        rates = run(server, build, relay.address, mebibytes, content, copies,
                                    variables, raw)
                        plain = plain or rates
                        show(say, gbit, content, way, rates, plain)
                    for start in ("kept 1", "kept 2"):
                        rates = run(server, build, relay.address, mebibytes, content, 1, KEPT, raw)
                        show(say, gbit, content, start, rates, plain)
        raw.write(server.log_tail(100) + "\n")


def show(say, gbit, content, way, rates, plain):
    if rates is None or plain is None:
        return say(f"{gbit:>6} {content:<8} {way:<6} failed, see the raw output")
    beside = " ".join(f"{rate / before:5.2f}" for rate, before in zip(rates, plain))
    say(f"{gbit:>6} {content:<8} {way:<6} {rates[0]:9.1f} {rates[1]:9.1f}   {beside}")
