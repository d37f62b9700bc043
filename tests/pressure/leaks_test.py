#!/usr/bin/env python3
"""Programs that are killed at random moments, many at once: what they had is free again within two
seconds: processes, descriptors, shared memory, device memory.

leaks_test.py [--sessions N] [--together N] [--seed N]
"""
import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import host_state  # noqa: E402
import server  # noqa: E402

IDLE_CONNECTIONS = 8  # that a link keeps for sessions to come: link/server_connection.cc
WITHIN = 2  # seconds; a machine with other work is given three times that
KINDS = ["launch", "copy_up", "copy_down", "copy_pinned", "allocate", "load", "wait_device",
         "host_function", "graph"]


def start(longwire, kind, address):
    return subprocess.Popen(
        longwire.command(longwire.program("until_the_end.static"), kind, "60", "2", server=address),
        env=longwire.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)


def round_of(longwire, chance, together, moment):
    """Programs at once, each killed at a moment of its own."""
    addresses = [longwire.address, longwire.address, f"unix:{longwire.door}"]
    begin = time.monotonic()
    doomed = sorted(
        ((begin + chance.uniform(0.05, moment),
          start(longwire, chance.choice(KINDS), chance.choice(addresses)))
         for _ in range(together)), key=lambda one: one[0])
    for when, program in doomed:
        time.sleep(max(0, when - time.monotonic()))
        os.kill(program.pid, signal.SIGKILL)
        program.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=32)
    parser.add_argument("--together", type=int, default=32)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    chance = random.Random(options.seed)
    with server.Server(warm_workers=0) as longwire:
        # What is made once and stays: the link, caches, threads of gRPC, idle connections.
        round_of(longwire, chance, options.together, 4)
        host_state.time_until_back(longwire, {}, WITHIN)
        for address in (longwire.address, f"unix:{longwire.door}"):
            assert longwire.run("vector_add.static", server=address).code == 0
        before = host_state.settled(longwire)
        print(f"before: {before}")
        for name in ("longwire-link", "longwired"):
            processes, descriptors, shared = before[name]
            before[name] = (processes, descriptors + IDLE_CONNECTIONS, shared)
        left = options.sessions
        while left > 0:
            together = min(left, options.together)
            left -= together
            round_of(longwire, chance, together, 6)
            took, extra = host_state.time_until_back(longwire, before, 3 * WITHIN)
            print(f"{together} programs were killed: all is back after {took:.2f} s", flush=True)
            if extra:
                print(f"WRONG: after {took:.1f} s there is more: {extra}")
                print(longwire.log_tail(60))
                return 1
        assert longwire.run("vector_add.static").code == 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
