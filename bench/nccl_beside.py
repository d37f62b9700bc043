"""NCCL and training on all devices of a host (nccl_steps.py): natively, and through Longwire over
TCP and unix:, in turn; figures, their ratio to the native ones, and whether results are equal."""
import os
import pathlib
import subprocess
import sys

from server import Server
from sessions_apart import device_count
from tenants_beside import figures, say

PROGRAM = pathlib.Path(__file__).resolve().parent / "nccl_steps.py"
SECONDS = 200  # of one run


def measured(command, environment, raw):
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
    raw.write(f"$ {' '.join(map(str, command))}\n{done.stdout}{done.stderr[-4000:]}\n")
    return figures(done.stdout) if done.returncode == 0 else {}


def run(build, driver, raw, out, rounds):
    """The better of the rounds for each figure: collectives are bounded by the slowest rank."""
    columns = {"native": {}, "tcp": {}, "unix": {}}
    count = device_count(driver, 2)
    with Server(driver, build=build, warm_workers=count, software_devices=count) as longwire:
        remote = longwire.environment(LONGWIRE_DEVICES=count)
        sides = {"native": ([], None), "tcp": (longwire.command(), remote),
                 "unix": (longwire.command(server=f"unix:{longwire.door}"), remote)}
        for _ in range(rounds):
            for name, (prefix, environment) in sides.items():
                found = measured([*prefix, sys.executable, PROGRAM],
                                 environment or dict(os.environ), raw)
                for row, value in found.items():
                    columns[name].setdefault(row, []).append(value)
    say(out, f"{'figure':<26}" + "".join(f"{name:>12}" for name in columns)
             + f"{'tcp':>10}{'unix':>8}")
    for row in columns["native"]:
        best = min if row.endswith("_step") else max
        values = [best(column[row]) if row in column else float("nan")
                  for column in columns.values()]
        ratios = "".join(f"{value / values[0]:9.3f}" for value in values[1:])
        say(out, f"{row:<26}" + "".join(f"{value:12.3f}" for value in values) + ratios)
    for name, column in columns.items():
        if column.get("devices", [0])[0] != count:
            say(out, f"{name}: did not run on all {count} devices; see the raw output")
