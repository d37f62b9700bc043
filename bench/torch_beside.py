"""PyTorch inference (latency critical) beside PyTorch training (best effort): natively, through
Longwire, with sessions that stay awake, and with the scheduler off; one run, a row for
each seed."""
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys

from tenants_beside import Native, Remote, figures, open_servers, say

LOAD = pathlib.Path(__file__).resolve().parent / "torch_load.py"
REQUESTS, SECONDS = 100, 4
# The requests come within the training's time: 100 of them take 5 s and what each one lasts.
BESIDE_SECONDS = 8


class Load:
    """One of the two programs, kept running between measurements."""

    def __init__(self, side, tenant, kind):
        self.process = subprocess.Popen(
            side.command(tenant, sys.executable, LOAD, kind),
            # On a host with several GPUs PyTorch counts them by NVML, not by the driver.
            env={**(side.environment_of(tenant) or os.environ), "CUDA_VISIBLE_DEVICES": "0"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if line != "READY\n":
            raise SystemExit(f"{kind} for {tenant} said {line!r} instead of READY")

    def begin(self, seed, amount):
        self.process.stdin.write(f"{seed} {amount}\n")
        self.process.stdin.flush()

    def figures(self):
        lines = iter(self.process.stdout.readline, "")
        return figures("".join(iter(lambda: next(lines, "\n"), "\n")))

    def run(self, seed, amount):
        self.begin(seed, amount)
        return self.figures()

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


def measure(side, name, seeds, out):
    serve, train = Load(side, "serving", "serve"), Load(side, "batch", "train")
    alone_steps = train.run(0, SECONDS)["train_steps"]
    ratios = []
    for seed in range(seeds):
        alone = serve.run(seed, REQUESTS)
        train.begin(seed, BESIDE_SECONDS)
        beside = serve.run(seed, REQUESTS)
        steps = train.figures()["train_steps"]
        ratios.append(beside["request_p99"] / alone["request_p99"])
        for row, found, note in (("alone", alone, f"{alone_steps:8.1f}"),
                                 ("beside training", beside, f"{steps:8.1f}")):
            say(out, f"{name + ', ' + row:<42} {seed:>4} {found['request_p50']:8.3f} "
                     f"{found['request_p99']:8.3f} {found['request_most']:8.3f} {note}")
    serve.end()
    train.end()
    say(out, f"{name}: P99 {statistics.median(ratios):.2f} x alone, worst {max(ratios):.2f}")


def run(build, driver, out, seeds):
    say(out, f"{'arrangement':<42} {'seed':>4} {'p50 ms':>8} {'p99 ms':>8} {'most ms':>8} "
             "train 1/s")
    measure(Native(), "native", seeds, out)
    with contextlib.ExitStack() as stack:
        for name, longwire in open_servers(stack, driver, build).items():
            measure(Remote(longwire), name, seeds, out)
