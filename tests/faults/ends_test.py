#!/usr/bin/env python3
"""Programs whose server's processes end at random moments: never a success for what is not so.

Every kind of work (tests/apps/until_the_end.cu) runs at once, each program in its own session; then
all processes of one name get a signal. A program ends with an error within its time and succeeds in
nothing afterwards, or, where the session goes on, with right values; what a call promised it looks
at itself. The table says how long it took until the last program was notified.

ends_test.py [--moments N] [--seed N] [--process NAME] [--signal NAME]
"""
import argparse
import collections
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import server  # noqa: E402

KINDS = ["wait_device", "wait_stream", "wait_event", "poll", "launch", "host_function",
         "unregister", "free_host", "copy_down", "copy_pinned", "copy_up", "allocate", "load",
         "graph"]
TOGETHER = 7  # programs at once: a machine of few cores has some seconds for their start

# After these signals no session can go on. The others may end it, or not.
ENDS = {(process, name) for process in ("longwire-worker", "longwire-warden")
        for name in ("KILL", "TERM")}
# Seconds until a program is notified, on an idle machine (docs/errors.md).
TOLD_WITHIN = collections.defaultdict(lambda: 45, {
    ("longwire-worker", "KILL"): 2, ("longwire-worker", "TERM"): 2,
    ("longwire-warden", "KILL"): 2, ("longwire-warden", "TERM"): 2})
STOPPED = 5  # seconds

LONG_KERNELS = 30000  # milliseconds: longer than whatever is waited for
WAITS = ["wait_device", "wait_stream", "wait_event", "poll", "unregister", "free_host",
         "copy_down", "copy_pinned", "host_function", "graph"]

EVERYDAY = [("longwire-worker", "KILL"), ("longwire-worker", "TERM"), ("longwire-worker", "KILL"),
            ("longwire-link", "KILL")]
MATRIX = [(process, name) for name in ("KILL", "TERM", "STOP")
          for process in ("longwire-worker", "longwire-warden", "longwire-link", "longwired",
                          "longwire-keeper")]


class Program:
    def __init__(self, longwire, kind, seconds, busy, address):
        self.kind = kind
        self.lines = []
        self.told = None  # when the error came
        self.process = self.start(longwire, [kind, str(seconds), str(busy)], address)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    @staticmethod
    def start(longwire, arguments, address):
        """Many start at once: a session that is not open in time on a busy machine is opened anew,
        which is not what is tested here."""
        for _ in range(4):
            try:
                return longwire.start("until_the_end.static", *arguments, server=address)
            except AssertionError as said:
                if "no answer within" not in str(said):
                    raise
        return longwire.start("until_the_end.static", *arguments, server=address)

    def read(self):
        for line in self.process.stdout:
            if line.startswith("ERROR"):
                self.told = time.monotonic()
            self.lines.append(line)

    def finish(self, timeout):
        """A sentence if it did what it must not."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = "none: it hung"
        self.reader.join()
        err = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        if code == 0 and self.lines[-1:] == ["PASS until_the_end\n"]:
            return None
        return f"{self.kind}: exit code {code}: {''.join(self.lines)}{err[-600:]}"


class Moments:
    """Counts moments, and keeps for each process and signal the longest time until the error."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.moments = 0
        self.wrong = []
        self.longest = collections.defaultdict(float)
        self.ended = collections.Counter()

    def strike(self, longwire, process, name, busy=2):
        """A signal to all processes of that name while programs of some kinds run, with kernels of
        `busy` milliseconds."""
        kinds = self.random.sample(KINDS, TOGETHER) if busy < LONG_KERNELS else WAITS
        stops = name == "STOP"
        seconds = 2 + (STOPPED if stops else 1)
        if (process, name) in ENDS:
            seconds = 60
        programs = []
        threads = [threading.Thread(
            target=lambda kind=kind, address=self.random.choice(self.addresses(longwire)):
            programs.append(Program(longwire, kind, seconds, busy, address)))
            for kind in kinds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(programs) != len(kinds):
            raise AssertionError("a program did not start")
        time.sleep(self.random.uniform(0, 0.4))
        struck = time.monotonic()
        self.send(longwire, process, getattr(signal, "SIG" + name))
        if stops:
            time.sleep(STOPPED)
            self.send(longwire, process, signal.SIGCONT)
        for program in programs:
            wrong = program.finish(seconds + 3 * TOLD_WITHIN[process, name])
            what = f"{process} {name}"
            if wrong is None and program.told is None and (process, name) in ENDS:
                wrong = f"{program.kind}: was never told"
            if wrong is not None:
                self.wrong.append(f"{what}: {wrong}")
            if program.told is not None:
                self.ended[what] += 1
                self.longest[what] = max(self.longest[what], program.told - struck)
        self.moments += len(programs)

    @staticmethod
    def addresses(longwire):
        """By TCP, twice as often, and by the server's local socket, without a link."""
        return [longwire.address, longwire.address, f"unix:{longwire.door}"]

    @staticmethod
    def send(longwire, process, number):
        for pid in longwire.processes()[process]:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def late(self):
        """A machine with other work is given three times the time."""
        return [f"{what}: the last program was notified after {seconds:.1f} s"
                for what, seconds in self.longest.items()
                if seconds > 3 * TOLD_WITHIN[tuple(what.split())]]


def run(strikes, seed):
    """Strikes one after the other, with a new server where the old one is no more."""
    moments = Moments(seed)
    rest = list(strikes)
    first = True
    while rest:
        with server.Server(config="resume_grace: 2s\n", warm_workers=TOGETHER) as longwire:
            if first:  # in the middle of each way of waiting, and not perhaps
                moments.strike(longwire, "longwire-worker", "KILL", LONG_KERNELS)
                first = False
            while rest:
                process, name = rest.pop(0)
                moments.strike(longwire, process, name)
                if process != "longwire-worker":
                    break
    return moments


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--moments", type=int, help="the number of moments, over the whole matrix")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--process")
    parser.add_argument("--signal")
    options = parser.parse_args()
    strikes = EVERYDAY
    if options.moments or options.process or options.signal:
        some = [(process, name) for process, name in MATRIX
                if options.process in (None, process) and options.signal in (None, name)]
        strikes = some * max(1, -(-(options.moments or 1) // (len(some) * TOGETHER)))
    print(f"seed {options.seed}, {len(strikes)} strikes")
    sys.stdout.flush()
    moments = run(strikes, options.seed)
    for what in sorted(moments.longest):
        print(f"{what:24} {moments.ended[what]:4} programs ended, the last was notified after "
              f"{moments.longest[what]:.2f} s")
    print(f"{moments.moments} moments")
    for sentence in moments.wrong + moments.late():
        print("WRONG", re.sub(r"\n(?=.)", "\n  ", sentence))
    return 1 if moments.wrong or moments.late() else 0


if __name__ == "__main__":
    sys.exit(main())
