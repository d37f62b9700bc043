#!/usr/bin/env python3
"""Runs the unmodified hello program through Longwire on this machine's software device, prints
what it printed, and says which process ran where."""
import argparse
import subprocess
import sys
import threading
import time

import server

ROLES = {
    "hello.static": "the program: built by plain nvcc, started by longwire run",
    "longwire-link": "the program's host: carries its calls over gRPC",
    "longwired": "the GPU's host: front end, sessions",
    "longwire-warden": "the GPU's host: starts workers and keepers",
    "longwire-worker": "the GPU's host: runs one session's calls on the device",
    "longwire-keeper": "the GPU's host: owns the device's memory",
}


class Watcher(threading.Thread):
    """Remembers each process seen, and the sessions' state while the program runs."""

    def __init__(self, longwire):
        super().__init__(daemon=True)
        self.longwire = longwire
        self.seen = {}
        self.sessions = {}
        self.status = ""
        self.stopped = threading.Event()

    def look(self):
        for name, pids in self.longwire.processes().items():
            for pid in pids:
                self.seen.setdefault(pid, name)

    def run(self):
        while not self.stopped.wait(0.02):
            self.look()
            if "hello.static" in self.seen.values():
                for session in self.longwire.status()["sessions"]:
                    self.sessions[session["client_pid"]] = session


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    build = parser.parse_args().build
    with server.Server(build=build) as longwire:
        hello = longwire.program("hello.static")
        print(f"\n$ longwire run --server {longwire.address} -- {hello}\n", flush=True)
        watcher = Watcher(longwire)
        watcher.look()
        watcher.start()
        start = time.monotonic()
        process = subprocess.run(longwire.command(hello), env=longwire.environment(), check=False)
        seconds = time.monotonic() - start
        watcher.stopped.set()
        watcher.join()
        watcher.look()
        print(f"\n{seconds:.2f} s, exit code {process.returncode}. What ran where:\n")
        workers = {session["worker_pid"] for session in watcher.sessions.values()}
        for pid, name in sorted(watcher.seen.items(), key=lambda item: list(ROLES).index(item[1])
                                if item[1] in ROLES else -1):
            if name not in ROLES:
                continue
            note = ""
            if name == "longwire-worker":
                note = " (this program's)" if pid in workers else " (warm, for the next program)"
            print(f"  {pid:7}  {name:16} {ROLES[name]}{note}")
        print("\n$ longwire status", flush=True)
        print(longwire.cli("status", "--server", longwire.address).out)
        if process.returncode != 0:
            print(longwire.log_tail())
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
