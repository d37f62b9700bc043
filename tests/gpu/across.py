"""The group across of tests/gpu/run, for hosts with two GPUs: two servers with a device each, and
programs that have both. Test programs and PyTorch must give the native bytes; launches on either
device must cost what they cost with one server."""
import contextlib
import fnmatch
import os
import re
import statistics
import time

import frameworks
import programs
import server

SECONDS = 100
ROUNDS = 9  # a process's launches take one of two times, whichever server they go to
MOST = 1.15  # of a launch, beside one server: more is no noise
PROGRAMS = ("two_devices.static", "across_order.static", "across_copies.static",
            "across_pinned.static")
COPIES = ((1, 60), (16, 20), (256, 6), (1024, 2))  # MiB, rounds
COPY_SECONDS = 50  # begun before this, so that all of them end within a minute
COLLECTIVE_SIZES = (1 << 10, 1 << 16, 1 << 20, 1 << 24)  # bytes, over TCP
COLLECTIVE_BULK = (1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 26, 1 << 28)  # with live memory
COLLECTIVE_START = 15  # at most: PyTorch and NCCL start, and the process ends
COLLECTIVE_SECONDS = 15  # for a size
COLLECTIVE_MOST, STATES_MOST = 40, 60
FIGURES = ("launch_enqueue", "launch_sustained", "launch_synchronize")
FIGURE = re.compile(r"^(\w+)\s+([0-9.]+) (\S+)$", re.MULTILINE)
# Ranks that are on several hosts have neither of these.
SOCKETS = {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1, "NCCL_IB_DISABLE": 1,
           "NCCL_SOCKET_IFNAME": "lo", "NCCL_DEBUG": "WARN", "GLOO_SOCKET_IFNAME": "lo",
           "MASTER_ADDR": "127.0.0.1", "WORLD_SIZE": 2}
TORCH = frameworks.Framework("torch_across", ["torch_across"])


class Group:
    def __init__(self, build, report, libraries, both):
        self.build, self.report, self.both = build, report, both
        self.libraries = str(libraries)
        self.address = ",".join(one.address for one in both)
        self.bad = 0

    def row(self, label, native, remote, wrong, more=""):
        self.bad += bool(wrong)
        self.report.row(f"{label:40} {native:8.2f} {remote:8.2f}  "
                        f"{'BAD ' + wrong if wrong else 'equal'}  {more}".rstrip())

    def across(self, words, seconds=SECONDS, **variables):
        one = self.both[0]
        return server.run(one.command(*words, server=self.address),
                          one.environment(LONGWIRE_ACROSS=1, **variables), seconds)

    def compare(self, label, words, wrong_of, **variables):
        native = server.run(list(map(str, words)), self.both[0].environment(**variables), SECONDS)
        remote = self.across(words, **variables)
        self.report.keep(label, "native", native)
        self.report.keep(label, "longwire", remote)
        faults = [f"{where}: {wrong}" for where, wrong in (("native", wrong_of(native)),
                                                           ("longwire", wrong_of(remote))) if wrong]
        if not faults and native.out != remote.out:
            faults = ["the two printed different text"]
        self.row(label, native.seconds, remote.seconds, "; ".join(faults))

    def test_programs(self):
        for program in PROGRAMS:
            name = program.split(".")[0]
            words = [self.build / "tests" / "apps" / program]
            self.compare(name, words, lambda result, name=name:
                         programs.what_is_wrong(name, result), LD_LIBRARY_PATH=self.libraries)

    def test_torch(self):
        environment = frameworks.environment(TORCH)
        for part, more in (("halves", {}), ("devices", SOCKETS)):
            words = [*frameworks.command(TORCH), part]
            self.compare(f"torch {part}", words, wrong_torch, **environment, **more)

    def test_ranks(self):
        """Two processes, a rank each on a server of its own; natively on a device of its own."""
        for backend, where in (("gloo", "longwire"), ("nccl", "longwire by unix:"),
                               ("nccl", "longwire")):
            label = f"torch ranks {backend}, {where}"
            sides = {}
            for side in ("native", where):
                port = server.free_port()
                running = [self.start_rank(side, rank, backend, port) for rank in range(2)]
                sides[side] = [server.finish(process, SECONDS) for process in running]
                for rank, result in enumerate(sides[side]):
                    self.report.keep(f"{label} {rank}", side, result)
            faults = [f"{side}: rank {rank}: {wrong_torch(result)}"
                      for side, results in sides.items()
                      for rank, result in enumerate(results) if wrong_torch(result)]
            # The first rank's NCCL says its version.
            texts = [re.sub(r"^NCCL version .*\n", "", result.out, flags=re.MULTILINE)
                     for results in sides.values() for result in results]
            if not faults and len(set(texts)) != 1:
                faults = ["ranks have different parameters"]
            self.row(label, *(max(one.seconds for one in results)
                              for results in sides.values()), "; ".join(faults))

    def test_collectives(self):
        """Natively too over sockets; NCCL as it likes, through live memory."""
        native = self.collectives_of(COLLECTIVE_BULK, "native", {})
        live = self.collectives_of(COLLECTIVE_BULK, "longwire by unix:", {})
        for name, alone in native.items():
            self.row(f"{name}, unix:", alone, live.get(name, float("nan")), "",
                     f"us; {alone / live.get(name, float('nan')):.3f} of native's speed")

    def test_states(self):
        """The same over TCP: NCCL's chunks are messages of many words (docs/host-memory.md)."""
        native, ours = (self.collectives_of(COLLECTIVE_SIZES, where, {}, STATES_MOST)
                        for where in ("native", "longwire"))
        for name, alone in native.items():
            found = ours.get(name, float("nan"))
            self.row(f"{name}, TCP", alone, found, "", f"us; {alone / found:.4f} of native's speed")

    def collectives_of(self, sizes, where, more, most=COLLECTIVE_MOST):
        """What a pair of ranks measured before its end or its time. A rank that stands still says
        where, and what its threads do, and ends."""
        port = server.free_port()
        seconds = min(COLLECTIVE_SECONDS * len(sizes), most)
        running = [self.start_rank(where, rank, "nccl", port, "collectives",
                                   ",".join(map(str, sizes)), str(seconds),
                                   LONGWIRE_TRACE="summary", **more) for rank in range(2)]
        results = [server.finish(process, COLLECTIVE_START + seconds) for process in running]
        for rank, result in enumerate(results):
            self.report.keep(f"collectives {sizes} {rank}", where, result)
        wrong = "; ".join(filter(None, map(wrong_torch, results)))
        self.row(f"collectives of {', '.join(map(str, sizes))} bytes, {where}",
                 *(one.seconds for one in results), wrong)
        for rank, result in enumerate(results):
            for line in progress_of(result) if wrong else ():
                self.report.row(f"    rank {rank}: {line}")
        return {name: float(value) for name, value, _ in FIGURE.findall(results[0].err)}

    def start_rank(self, where, rank, backend, port, *part, **more):
        words = [*frameworks.command(TORCH), *(part or ("ranks", backend))]
        # Also natively NCCL shall not take both ranks for those of one host.
        variables = {**frameworks.environment(TORCH), **SOCKETS, "RANK": rank, "MASTER_PORT": port,
                     "NCCL_HOSTID": f"rank-{rank}", **more}
        one = self.both[rank]
        if where.startswith("native"):
            return server.start_session(list(map(str, words)), one.environment(
                CUDA_VISIBLE_DEVICES=rank, **variables))
        door = f"unix:{one.door}" if where.endswith("unix:") else one.address
        return server.start_session(one.command(*words, server=door), one.environment(**variables))

    def test_launches(self):
        """In turn: a program of the first server alone, and one of both on either device."""
        words = [self.build / "dist" / "lib" / "longwire" / "bench" / "driver_figures", "calls"]
        one = self.both[0]
        sides = {
            "one server": lambda: server.run(one.command(*words), one.environment(), SECONDS),
            "the first of two": lambda: self.across(words, CUDA_VISIBLE_DEVICES="0"),
            "the second of two": lambda: self.across(words, CUDA_VISIBLE_DEVICES="1")}
        found = {side: {} for side in sides}
        for turn in range(ROUNDS):
            for side, run in sides.items():
                result = run()
                self.report.keep(f"launches {turn}", side, result)
                for name, value, _ in FIGURE.findall(result.out):
                    found[side].setdefault(name, []).append(float(value))
        for name in FIGURES:
            values = {side: sorted(figures.get(name, [float("nan")]))
                      for side, figures in found.items()}
            alone = values.pop("one server")
            for side, value in values.items():
                ratio = statistics.median(value) / statistics.median(alone)
                wrong = "" if ratio <= MOST else f"{ratio:.2f} times what it costs with one server"
                self.row(f"{name}, {side}", statistics.median(alone), statistics.median(value),
                         wrong, f"us; ratio {ratio:.3f}; {alone[0]} to {alone[-1]}, "
                         f"{value[0]} to {value[-1]}")

    def test_copies(self):
        """Sizes and numbers in flight, with where the pieces waited; then the ways beside it."""
        end = time.monotonic() + COPY_SECONDS
        self.report.row(f"{'copies':40} {'upload':>8} {'copy':>8}  and more, GB/s; sums of ms")
        for turn in range(3):
            self.copies(1, 60, 1, end, f"turn {turn}")
            self.copies(1, 60, 1, end, f"turn {turn}, new streams", LONGWIRE_DISABLE="kept-streams")
        for size, rounds in COPIES:
            for in_flight in (1, 4):
                self.copies(size, rounds if in_flight == 1 else max(rounds // 3, 1), in_flight, end)
        for label, disabled in (("in pieces, by the window", "whole-copies"),
                                ("through the program", "bridges")):
            self.copies(256, 3, 1, end, label, LONGWIRE_DISABLE=disabled)
        self.copies(256, 3, 1, end, "four lanes each", LONGWIRE_TRANSFER_STREAMS=4)

    def copies(self, size, rounds, in_flight, end, way="", **more):
        label = f"{size} MiB, {in_flight} in flight" + (f", {way}" if way else "")
        if time.monotonic() > end:
            self.report.row(f"{label}: left out, the time is over")
            return
        words = [self.build / "bench" / "across_figures", size, rounds, in_flight]
        result = self.across(list(map(str, words)), LONGWIRE_TRACE="summary", **more)
        self.report.keep(f"copies {label}", "longwire", result)
        found = {name.split("_")[0]: float(value) for name, value, _ in FIGURE.findall(result.out)}
        upload, copy, back, download = (found.get(kind, float("nan"))
                                        for kind in ("upload", "copy", "back", "download"))
        wrong = "" if result.code == 0 else f"exit code {result.code}: {result.err[-300:]}"
        self.row(label, upload, copy, wrong,
                 f"back {back:.2f}, download {download:.2f}; of an upload's {copy / upload:.2f} "
                 f"and {back / upload:.2f}")
        for line in bridge_lines(result.err):
            self.report.row(f"    {line}")


def bridge_lines(said):
    """What the summary says of the pieces that each server sent and received."""
    for name, line in zip("ab", re.findall(r"bridges (sent .*)", said)):
        sent, received = line.split(", received ", 1)
        yield f"{name} {sent}"
        yield f"{name} received {received}"


def progress_of(result):
    """How far a rank has come, what it waits for, and what its session counted."""
    lines = result.err.splitlines()
    steps = [line for line in lines if FIGURE.match(line) or line.startswith("begins ")]
    return steps[-2:] + [line for line in lines if line.startswith("stands still")
                         or "threads: " in line or "waits for progress" in line]


def wrong_torch(result):
    if result.code != 0:
        return f"exit code {result.code}: {' / '.join(result.err.strip().splitlines()[-3:])}"
    return None if result.out.splitlines()[-1:] == ["PASS torch_across"] else "no verdict"


def run(build, report, libraries, only):
    os.environ["LONGWIRE_BUILD"] = str(build)
    with contextlib.ExitStack() as stack:
        both = [stack.enter_context(server.Server(
            driver="auto", build=build, devices=[place]))
            for place in range(2)]
        group = Group(build, report, libraries, both)
        report.row(f"{'across: program':40} {'native':>8} {'longwire':>8}")
        for part in ("programs", "torch", "launches", "copies", "ranks",
                     "collectives", "states"):
            if any(fnmatch.fnmatch(part, pattern) for pattern in only.split(",")):
                getattr(group, f"test_{part}")()
        for place, one in enumerate(both):
            (report.folder / f"across-server-{place}.log").write_text(
                one.log.read_text(errors="replace"))
    report.row(f"across: {group.bad} bad")
    return group.bad == 0
