"""The group across of tests/gpu/run, for hosts with two GPUs: two servers with a device each, and
programs that have both. Test programs and PyTorch must give the native bytes; launches on either
device must cost what they cost with one server."""
import contextlib
import fnmatch
import os
import re
import statistics

import frameworks
import programs
import server

SECONDS = 100
ROUNDS = 9  # a process's launches take one of two times, whichever server they go to
MOST = 1.15  # of a launch, beside one server: more is no noise
PROGRAMS = ("two_devices.static", "across_order.static", "across_copies.static",
            "across_pinned.static")
FIGURES = ("launch_enqueue", "launch_sustained", "launch_synchronize")
FIGURE = re.compile(r"^(\w+)\s+([0-9.]+) (\S+)$", re.MULTILINE)
# Ranks that are on several hosts have neither of these.
SOCKETS = {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1, "NCCL_IB_DISABLE": 1,
           "NCCL_SOCKET_IFNAME": "lo", "NCCL_DEBUG": "WARN", "GLOO_SOCKET_IFNAME": "lo",
           "MASTER_ADDR": "127.0.0.1", "WORLD_SIZE": 2}
# What NCCL's kernels and its proxy share has to come word by word (docs/nccl.md).
WORDS = {"NCCL_PROTO": "LL", "LONGWIRE_LIVE_WORDS": "independent", "NCCL_MAX_NCHANNELS": 1,
         "NCCL_BUFFSIZE": 262144, "NCCL_LL128_BUFFSIZE": 262144}
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
        for part, more in (("halves", {}), ("devices", SOCKETS | WORDS)):
            words = [*frameworks.command(TORCH), part]
            self.compare(f"torch {part}", words, wrong_torch, **environment, **more)

    def test_ranks(self):
        """Two processes, a rank each on a server of its own; natively on a device of its own."""
        for backend in ("gloo", "nccl"):
            sides = {}
            for where in ("native", "longwire"):
                port = server.free_port()
                running = [self.start_rank(where, rank, backend, port,
                                           **(WORDS if backend == "nccl" else {}))
                           for rank in range(2)]
                sides[where] = [server.finish(process, SECONDS) for process in running]
                for rank, result in enumerate(sides[where]):
                    self.report.keep(f"torch ranks {backend} {rank}", where, result)
            faults = [f"{where}: rank {rank}: {wrong_torch(result)}"
                      for where, results in sides.items()
                      for rank, result in enumerate(results) if wrong_torch(result)]
            texts = [result.out for results in sides.values() for result in results]
            if not faults and len(set(texts)) != 1:
                faults = ["ranks have different parameters"]
            self.row(f"torch ranks {backend}", *(max(one.seconds for one in results)
                                                 for results in sides.values()), "; ".join(faults))

    def test_collectives(self):
        """Natively too over sockets; NCCL natively as it likes, and by LL as through Longwire."""
        found = {}
        for where, more in (("native", {}), ("native, LL", WORDS), ("longwire", WORDS)):
            port = server.free_port()
            running = [self.start_rank(where.split(",")[0], rank, "nccl", port, "collectives",
                                       **more) for rank in range(2)]
            results = [server.finish(process, SECONDS) for process in running]
            for rank, result in enumerate(results):
                self.report.keep(f"collectives {rank}", where, result)
            found[where] = {name: float(value)
                            for name, value, _ in FIGURE.findall(results[0].err)}
            wrong = "; ".join(filter(None, map(wrong_torch, results)))
            self.row(f"collectives, {where}", results[0].seconds, results[1].seconds, wrong)
        for name, native in found["native"].items():
            values = [found[where].get(name, float("nan")) for where in ("native, LL", "longwire")]
            self.row(name, native, values[1], "",
                     f"us; by LL natively {values[0]:.1f}; {native / values[1]:.3f} of native's "
                     "speed")

    def start_rank(self, where, rank, backend, port, part="ranks", **more):
        words = [*frameworks.command(TORCH), part, *([backend] if part == "ranks" else [])]
        # Also natively NCCL shall not take both ranks for those of one host.
        variables = {**frameworks.environment(TORCH), **SOCKETS, "RANK": rank, "MASTER_PORT": port,
                     "NCCL_HOSTID": f"rank-{rank}", **more}
        one = self.both[rank]
        if where == "native":
            return server.start_session(list(map(str, words)), one.environment(
                CUDA_VISIBLE_DEVICES=rank, **variables))
        return server.start_session(one.command(*words), one.environment(**variables))

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
        words = [self.build / "bench" / "across_figures", "256", "9"]
        for label, disabled in (("server to server", ""), ("through the program", "bridges")):
            result = self.across(words, LONGWIRE_TRACE="summary", LONGWIRE_DISABLE=disabled)
            self.report.keep(f"copies {label}", "longwire", result)
            found = {name: float(value) for name, value, _ in FIGURE.findall(result.out)}
            upload, copy = (found.get(f"{kind}_256MiB", float("nan"))
                            for kind in ("upload", "copy"))
            wrong = "" if result.code == 0 else f"exit code {result.code}: {result.err[-300:]}"
            self.row(f"upload, copy {label}", upload, copy, wrong,
                     f"GB/s; ratio {copy / upload:.2f}")


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
                     "collectives"):
            if any(fnmatch.fnmatch(part, pattern) for pattern in only.split(",")):
                getattr(group, f"test_{part}")()
        for place, one in enumerate(both):
            (report.folder / f"across-server-{place}.log").write_text(
                one.log.read_text(errors="replace"))
    report.row(f"across: {group.bad} bad")
    return group.bad == 0
