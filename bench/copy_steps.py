#!/usr/bin/env python3
"""What copies cost all processes on their way over TCP: processor time, switches and messages.

  bench/copy_steps.py [--build DIR] [--disable NAME,...] [--sizes KIB,...] [--tls] [--calls]

A row for each size, kind and direction, one at a time and eight in flight: of one copy, the
processor time of program, link, daemon and worker in us, the times that one of their threads went
to sleep, and the messages up and down (session's log and lanes together). --calls counts system
calls, too (with perf, as root), which costs time itself. Wall time says little on a machine with
few cores; these do not depend on the cores as much.
"""
import argparse
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e"))
from server import Server  # noqa: E402

PROCESSES = ("program", "longwire-link", "longwired", "longwire-worker")


def usage(pid):
    """Processor time in us and sleeps, of a process's threads that are alive."""
    spent = sleeps = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            spent += int((task / "schedstat").read_text().split()[0]) / 1000
            status = (task / "status").read_text()
        except OSError:
            continue
        sleeps += int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])
    return spent, sleeps


class Steps:
    def __init__(self, longwire, program, variables, calls):
        self.longwire, self.calls = longwire, calls
        self.program = subprocess.Popen(longwire.command(program),
                                        env=longwire.environment(**variables),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        bufsize=1)
        if self.program.stdout.readline() != "READY\n":
            raise SystemExit(longwire.log_tail())
        session = longwire.status()["sessions"][0]
        found = longwire.processes()
        self.pids = {"program": self.program.pid, "longwire-link": found["longwire-link"][0],
                     "longwired": found["longwired"][0],
                     "longwire-worker": session.get("worker_pid") or found["longwire-worker"][0]}

    def run(self, row, count):
        self.program.stdin.write(f"{row} {count}\n")
        if self.program.stdout.readline() != "DONE\n":
            raise SystemExit(self.longwire.log_tail())

    def messages(self):
        session = self.longwire.status()["sessions"][0]
        return session.get("messages_up", 0), session.get("messages_down", 0)

    def count_calls(self, row, count):
        """System calls of all of them together."""
        pids = ",".join(str(pid) for pid in self.pids.values())
        with subprocess.Popen(["perf", "stat", "-x", " ", "-e", "raw_syscalls:sys_enter", "-p",
                               pids], stderr=subprocess.PIPE, text=True) as perf:
            time.sleep(0.3)
            self.run(row, count)
            perf.send_signal(2)
            return int(perf.communicate()[1].split()[0])

    def measure(self, row, count, copies):
        self.run(row, max(count // 4, 2))
        messages = self.messages()
        before = {name: usage(pid) for name, pid in self.pids.items()}
        start = time.monotonic()
        self.run(row, count)
        wall = time.monotonic() - start
        after = {name: usage(pid) for name, pid in self.pids.items()}
        sent = [new - old for new, old in zip(self.messages(), messages)]
        spent = [(after[name][0] - before[name][0]) / copies for name in PROCESSES]
        sleeps = sum(after[name][1] - before[name][1] for name in PROCESSES) / copies
        line = f"{row:28s} {wall * 1e6 / copies:8.0f} {sum(spent):8.0f}"
        line += "".join(f" {one:8.0f}" for one in spent)
        line += f" {sleeps:7.1f} {sent[0] / copies:6.2f} {sent[1] / copies:6.2f}"
        if self.calls:
            line += f" {self.count_calls(row, count) / copies:7.1f}"
        print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build")
    parser.add_argument("--disable", default="")
    parser.add_argument("--sizes", default="16,64,256,1024,4096")
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--megabytes", type=int, default=256, help="moved for each row")
    told = parser.parse_args()
    off = {"LONGWIRE_DISABLE": told.disable} if told.disable else {}
    print(f"{'way kind bytes in flight':28s} {'wall us':>8s} {'cpu us':>8s} {'program':>8s} "
          f"{'link':>8s} {'daemon':>8s} {'worker':>8s} {'sleeps':>7s} {'up':>6s} {'down':>6s}"
          + ("   calls" if told.calls else ""))
    with Server(build=told.build, variables=off) as longwire:
        steps = Steps(longwire, longwire.build / "bench" / "copy_steps", off, told.calls)
        for size in [int(one) << 10 for one in told.sizes.split(",")]:
            for flight in (1, 8):
                count = max(4, min(2000, (told.megabytes << 20) // size // flight))
                for kind in ("pageable", "pinned"):
                    for way in ("up", "down"):
                        steps.measure(f"{way} {kind} {size} {flight}", count, count * flight)
        steps.program.stdin.close()
        steps.program.wait()


if __name__ == "__main__":
    main()
