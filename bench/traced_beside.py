"""What a trace costs: steps of a small network (torch_steps.py mlp) and launches, run and traced
(`longwire trace -o`) in turn; medians of both and their ratio."""
import pathlib
import statistics
import sys
import tempfile

import server
from tenants_beside import figures, say

TORCH = pathlib.Path(__file__).resolve().parent / "torch_steps.py"
SECONDS = 120


def programs(build):
    driver_figures = build / "dist" / "lib" / "longwire" / "bench" / "driver_figures"
    return {"mlp": [sys.executable, TORCH, "mlp", "--steps", "1000"],
            "calls": [driver_figures, "calls"]}


def run(build, driver, raw, out, rounds):
    found = {}
    with server.Server(driver, build=build) as longwire, tempfile.TemporaryDirectory() as folder:
        command = longwire.command()
        traced = [command[0], "trace", "-o", f"{folder}/trace.json", "--server", longwire.address,
                  "--"]
        for kind, words in programs(build).items():
            for _ in range(rounds):
                for side, prefix in (("run", command), ("traced", traced)):
                    result = server.run([*prefix, *words], longwire.environment(), SECONDS)
                    raw.write(f"$ {side} {kind}\n{result.out}{result.err[-2000:]}\n")
                    lines = "\n".join(" ".join(line.split()) for line in result.out.splitlines())
                    for name, value in figures(lines).items():
                        row = found.setdefault(f"{kind} {name}", {"run": [], "traced": []})
                        row[side].append(value)
    say(out, f"{'figure':<36} {'run':>12} {'traced':>12} {'ratio':>8}")
    for name, row in found.items():
        plain, with_trace = (statistics.median(row[side] or [float("nan")])
                             for side in ("run", "traced"))
        say(out, f"{name:<36} {plain:12.4f} {with_trace:12.4f} {with_trace / plain:8.3f}")
