#!/usr/bin/env python3
"""Runs the unmodified hello program through Longwire on this machine's software device, prints
what it printed, and says which process ran where."""
import argparse
import re
import subprocess
import sys
import time

import server

ROLES = {
    "hello.static": "the program: built by plain nvcc, started by longwire run",
    "longwire-link": "the program's host: carries its calls over gRPC",
    "longwire-guard": "the program's host: starts a new link should that one die",
    "longwired": "the GPU's host: front end, sessions",
    "longwire-warden": "the GPU's host: starts workers and keepers",
    "longwire-starter": "the GPU's host: gives each worker a user and walls of its own",
    "longwire-worker": "the GPU's host: runs one session's calls on the device",
    "longwire-keeper": "the GPU's host: owns the device's memory",
}


# What the daemon's log says of each session.
OPENED = re.compile(r"opened for \S+ \(pid (\d+) .*\bworker (\d+)")


def print_processes(longwire, program):
    """One line for each process that took part, with what it did and where."""
    sessions = OPENED.findall(longwire.log.read_text())
    workers = {int(worker) for client, worker in sessions if int(client) == program}
    found = [(program, "hello.static", "")]
    for name, pids in longwire.processes().items():
        for pid in pids:
            if name == "longwire-worker" and pid not in workers:
                found.append((pid, name, " (a warm one, for the next program)"))
            elif name != "longwire-worker":
                found.append((pid, name, ""))
    found += [(pid, "longwire-worker", " (this one, and ended with it)") for pid in workers]
    for pid, name, note in sorted(found, key=lambda entry: list(ROLES).index(entry[1])):
        print(f"  {pid:7}  {name:16} {ROLES[name]}{note}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    build = parser.parse_args().build
    with server.Server(build=build) as longwire:
        hello = longwire.program("hello.static")
        print(f"\n$ longwire run --server {longwire.address} -- {hello}\n", flush=True)
        start = time.monotonic()
        process = subprocess.Popen(longwire.command(hello), env=longwire.environment())
        process.wait()
        seconds = time.monotonic() - start
        print(f"\n{seconds:.2f} s, exit code {process.returncode}. What ran where:\n")
        print_processes(longwire, process.pid)
        print("\n$ longwire status", flush=True)
        print(longwire.cli("status", "--server", longwire.address).out)
        if process.returncode != 0:
            print(longwire.log_tail())
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
