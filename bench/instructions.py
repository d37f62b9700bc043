#!/usr/bin/env python3
"""What a launch costs in instructions, in the processes of the program, link, daemon and worker.

  bench/instructions.py [--build DIR] [--launches N]

Each process in turn runs under valgrind's callgrind while the program launches few and then N more
kernels; the difference is divided by N. Counts do not depend on the machine's load, so they show a
change where times do not. They exclude the kernel's work, and include that of a process that spins
before it sleeps. Of the worker, only its own code
counts: not the software device's, nor what either of them does in the C library. The last rows are
of a program that has the devices of two servers, and launches on one of them. Needs valgrind."""
import argparse
import collections
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e"))
import server  # noqa: E402

FEW = 1000
# Behind walls a worker reaches no folder that callgrind could write to.
WITHOUT_WALLS = ("--walls", "shared_uid", "--system-calls", "off")
# The name in the table, and its program; None: what launches.
PROCESSES = {"program and shim": None, "link": "longwire-link", "daemon": "longwired",
             "worker": "longwire-worker"}


def callgrind(out):
    # A worker is killed when its session ends: what it has counted by then lies in parts.
    return ["valgrind", "--tool=callgrind", "--quiet", "--dump-every-bb=500000",
            f"--callgrind-out-file={out}"]


def wrapped_build(build, folder, name, out):
    """The build's programs, of which one runs under callgrind."""
    wrapped = folder / "build"
    shutil.copytree(build / "dist", wrapped / "dist", symlinks=True)
    program = wrapped / "dist" / "bin" / name
    real = program.with_suffix(".real")
    program.rename(real)
    program.write_text(f"#!/bin/sh\nexec {' '.join(callgrind(out))} {real} \"$@\"\n")
    program.chmod(0o755)
    return wrapped


def instructions(file, process):
    """What a process did; of a worker, in its own code."""
    total, names, counts, called = 0, {}, True, False
    for line in file.read_text().splitlines():
        key, _, value = line.partition("=")
        if key in ("ob", "cob"):
            number, _, name = value.partition(" ")
            names.setdefault(number, name)
            if key == "ob":
                counts = process != "longwire-worker" or process in names[number]
        elif key == "calls":
            called = True  # the next line is the callee's
        elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
            if counts and not called:
                total += int(line.split()[-1])
            called = False
    return total


def run(build, name, launches, across=None):
    """The instructions of one kind of process while a program launches `launches` kernels. With
    `across` there are two servers, and it is on that one's device."""
    with tempfile.TemporaryDirectory(prefix="longwire-instructions-") as text:
        folder = pathlib.Path(text)
        out = folder / "counts.%p"
        program = [str(build / "dist" / "lib" / "longwire" / "bench" / "driver_figures"),
                   "launches", str(launches)]
        served = build
        if name is None:
            program = callgrind(out) + program
        else:
            served = wrapped_build(build, folder, name, out)
        longwire = server.Server("software", build=served, warm_workers=0)
        longwire.warden_options = WITHOUT_WALLS
        with longwire, contextlib.ExitStack() as more:
            environment = longwire.environment(LONGWIRE_COMPRESSION="none")
            addresses = longwire.address
            if across is not None:
                second = more.enter_context(server.Server("software", build=served))
                addresses += "," + second.address
                environment |= {"LONGWIRE_ACROSS": "1", "CUDA_VISIBLE_DEVICES": str(across)}
            done = subprocess.run(longwire.command(*program, server=addresses), env=environment,
                                  timeout=300, capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"{program}: {done.returncode}\n{done.stderr}"
                                 f"{longwire.log_tail()}")
            wait_for_ends(longwire, name)
        counts = collections.Counter()  # of each process: some fork
        for file in folder.glob("counts.*"):
            counts[file.name.split(".")[1]] += instructions(file, name)
        if not counts:
            raise SystemExit(f"callgrind wrote nothing of {name or program}")
        return max(counts.values())


def wait_for_ends(longwire, name):
    """What runs under callgrind writes its counts when it ends; the daemon ends with the server."""
    def counted():
        return [pid for name, pids in longwire.processes().items() if name.startswith("callgrind")
                for pid in pids]

    server.wait_for(lambda: not longwire.status()["sessions"], 60, "the session's end")
    if name == "longwired":
        return
    if name == "longwire-link":
        for pid in counted():
            os.kill(pid, signal.SIGTERM)  # it would wait for the next program
    server.wait_for(lambda: not counted(), 60, "callgrind's end")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--launches", type=int, default=20_000)
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is missing: apt-get install valgrind")
    print(f"{'process':<21} instructions per launch")
    rows = [(label, name, None) for label, name in PROCESSES.items()]
    rows += [("on the first of two", None, 0), ("on the second of two", None, 1)]
    for label, name, across in rows:
        few, many = (run(arguments.build, name, launches, across)
                     for launches in (FEW, FEW + arguments.launches))
        print(f"{label:<21} {(many - few) / arguments.launches:10.0f}", flush=True)


if __name__ == "__main__":
    main()
