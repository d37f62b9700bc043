"""What each optimisation that can be switched off gains: the same programs with it and without
it, in turn, and the medians of both. Every process has the switch: program, link, daemon, warden,
worker.

A row for each figure of each program that may depend on the switch. "gain" is how much more the
figure costs without it, in percent; a rate that falls is a gain, too. "spread" is how far the runs
with everything on lie apart, in percent: what is below it says nothing."""
import concurrent.futures
import contextlib
import statistics
import time

from server import Server
from tenants_beside import say
from torch_wire import program as torch_program
from wire_table import Column

# What each switch may change. Not here: drain, shared-registered, stored-pointers and swap, which
# change what works, and not only what it costs.
DEPENDS = {
    "answers-first": ("calls", "eight"),
    "attributes-with-load": ("start", "whole"),
    "batch-rates": ("copies",),
    "early-copies": ("calls", "copies"),
    "early-reuse": ("uncached", "grown"),
    "early-wakes": ("calls", "eight"),
    "info-pages": ("calls",),
    "joined-credits": ("copies", "uploads"),
    "joined-ends": ("calls", "copies"),
    "kept-limits": ("calls", "attention"),
    "late-comparisons": ("calls", "mirrored"),
    "launch-chains": ("calls", "torch"),
    "launch-runs": ("calls", "torch"),
    "launch-samples": ("calls", "torch"),
    "log-beside-lanes": ("copies",),
    "module-cache": ("start", "whole"),
    "own-polling": ("calls", "eight"),
    "piece-by-piece": ("copies", "uploads"),
    "predicted-spins": ("calls", "eight"),
    "pulls-with-waits": ("calls", "mirrored"),
    "quiet-ends": ("calls", "eight"),
    "remap": ("grown",),
    "shared-pinned": ("unix",),
    "speculative-uploads": ("uploads", "torch"),
    "staged-copies": ("unix",),
    "striped-transfers": ("copies",),
    "timer-slack": ("calls", "eight"),
    "trim-rings": ("calls", "copies", "eight"),
    "unasked-progress": ("calls", "torch"),
}
AT_ONCE = 8


class Side:
    """A server with the switch, or without it, and its programs' figures."""

    def __init__(self, stack, build, driver, switched_off):
        variables = {"LONGWIRE_DISABLE": switched_off} if switched_off else {}
        self.server = stack.enter_context(Server(driver, build=build, warm_workers=2,
                                                 variables=variables))
        self.environment = self.server.environment(CUDA_VISIBLE_DEVICES="0",
                                                   CUBLAS_WORKSPACE_CONFIG=":4096:8", **variables)
        self.figures = Programs(build)
        self.columns = {}

    def column(self, workload):
        address = f"unix:{self.server.door}" if workload == "unix" else self.server.address
        if workload not in self.columns:
            environment = {**self.environment}
            if workload == "uncached":
                environment["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
            self.columns[workload] = Column(
                lambda *words: self.server.command(*words, server=address), environment)
        return self.columns[workload]

    def run(self, workload, raw):
        column = self.column(workload)
        if workload == "eight":
            with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
                found = list(threads.map(lambda _: column.run([self.figures.driver, "calls"], raw),
                                         range(AT_ONCE)))
            for name, unit in {(name, unit) for one in found for name, _, unit in one}:
                values = [value for one in found for of, value, _ in one if of == name]
                column.figures.setdefault(name, (unit, []))[1].append(statistics.median(values))
            return
        if workload == "whole":  # a PyTorch program from its start to its end
            begin = time.monotonic()
            column.run(self.words(workload), raw)
            seconds = time.monotonic() - begin
            column.figures.setdefault("whole_run", ("s", []))[1].append(seconds)
            return
        if workload == "start":
            column.run([self.figures.driver, "start"], raw)  # its link may have to be started
            time.sleep(1)
        column.gather(self.words(workload), raw)

    def words(self, workload):
        steps = {"torch": ["mlp", "cnn", "forward"], "attention": ["gpt"], "uncached": ["cnn"],
                 "whole": ["mlp"]}
        if workload in steps:
            return torch_program(*steps[workload])
        if workload == "grown":
            return [self.figures.memory]
        return [self.figures.driver, "copies" if workload == "unix" else workload]


class Programs:
    def __init__(self, build):
        self.driver = build / "dist" / "lib" / "longwire" / "bench" / "driver_figures"
        self.memory = build / "bench" / "memory_figures"


def gain(unit, on, off):
    """In percent of the value with the optimisation."""
    more = on / off if unit.endswith("/s") else off / on
    return (more - 1) * 100


def rows(out, switch, workload, on, off):
    for name, (unit, values) in on.column(workload).figures.items():
        if unit == "1" or name not in off.column(workload).figures:  # a result, not a figure
            continue
        without = statistics.median(off.column(workload).figures[name][1])
        value = statistics.median(values)
        if value == 0 or without == 0:
            continue
        spread = (max(values) / min(values) - 1) * 100
        say(out, f"{switch:<22} {workload:<10} {name:<28} {value:10.2f} {without:10.2f} {unit:<5} "
                 f"{gain(unit, value, without):8.1f} {spread:8.1f}")


def run(build, driver, raw, out, rounds, switches, seconds):
    """A switch that would begin after `seconds` is left out, and named."""
    end = time.monotonic() + seconds
    say(out, f"{'switch':<22} {'program':<10} {'figure':<28} {'with':>10} {'without':>10} "
             f"{'unit':<5} {'gain %':>8} {'spread %':>8}")
    for switch in switches:
        if time.monotonic() > end:
            say(out, f"{switch}: left out, no time")
            continue
        with contextlib.ExitStack() as stack:
            on, off = (Side(stack, build, driver, which) for which in ("", switch))
            for workload in DEPENDS[switch]:
                try:
                    for _ in range(rounds):
                        for side in (on, off):
                            side.run(workload, raw)
                except (SystemExit, OSError) as failed:
                    say(out, f"{switch} {workload}: {failed}")
                    continue
                rows(out, switch, workload, on, off)
