"""NCCL (nccl_steps.py) and training (training_steps.py) on all devices of a host: natively, and
through Longwire over TCP and unix:, in turn; figures, their ratio to the native ones, and whether
results are equal."""
import os
import pathlib
import subprocess
import sys

import server
import tenants
from server import Server
from sessions_apart import device_count
from tenants_beside import figures, say

FOLDER = pathlib.Path(__file__).resolve().parent
SECONDS = 200  # of one run


def measured(prefix, words, environments, raw):
    """The figures of each of the jobs, which run at once, with these environments; what one printed
    before it failed is there, too."""
    running = [server.start_session([*prefix, sys.executable, FOLDER / words[0], *words[1:]],
                                    {**environment, "MASTER_PORT": str(server.free_port())})
               for environment in environments]
    found = []
    for process in running:
        result = server.finish(process, SECONDS)
        raw.write(f"$ {' '.join(map(str, process.args))}\n{result.out}{result.err[-4000:]}\n"
                  f"exit code {result.code}\n")
        found.append(figures(result.out))
    return found


def open_server(build, driver, count, jobs):
    options = {"driver": driver, "build": build, "warm_workers": jobs, "software_devices": count}
    if jobs == 1:
        return Server(**options)
    blocks = {f"job{i}": {"devices": count, "admin": True} for i in range(jobs)}
    return tenants.TenantServer(blocks, {"scheduler": {"policy": "weighted_fair"}}, **options)


def run(build, driver, raw, out, rounds, *words, jobs=1):
    """The better of the rounds for each figure: collectives are bounded by the slowest rank.
    words: a program and its arguments; jobs: how many of it at once, each a tenant's, which take
    turns."""
    count = device_count(driver, 2)
    with open_server(build, driver, count, jobs) as longwire:
        native = [dict(os.environ)] * jobs
        if jobs == 1:
            remote = [longwire.environment(LONGWIRE_DEVICES=count)]
            sides = {"native": ([], native), "tcp": (longwire.command(), remote),
                     "unix": (longwire.command(server=f"unix:{longwire.door}"), remote)}
        else:
            remote = [longwire.environment_of(f"job{i}", LONGWIRE_DEVICES=count)
                      for i in range(jobs)]
            sides = {"native": ([], native), "tls": (longwire.command(), remote)}
        columns = {name: {} for name in sides}
        for _ in range(rounds):
            for name, (prefix, environments) in sides.items():
                for found in measured(prefix, words, environments, raw):
                    for row, value in found.items():
                        columns[name].setdefault(row, []).append(value)
        if jobs > 1:
            counted = longwire.status_as("job0")["scheduler"]
            say(out, f"turns {counted['turns']}, overran {counted.get('overruns', 0)}")
    say(out, f"{'figure':<26}" + "".join(f"{name:>12}" for name in columns)
             + "".join(f"{name:>9}" for name in list(columns)[1:]))
    for row in columns["native"]:
        best = min if row.endswith("_step") else max
        values = [best(column[row]) if row in column else float("nan")
                  for column in columns.values()]
        ratios = "".join(f"{value / values[0]:9.3f}" for value in values[1:])
        say(out, f"{row:<26}" + "".join(f"{value:12.3f}" for value in values) + ratios)
    for name, column in columns.items():
        if column.get("devices", [0])[0] != count:
            say(out, f"{name}: did not run on all {count} devices; see the raw output")
