"""The same programs over every wire: natively, TCP, TCP with TLS, unix:, and TCP over longer and
narrower wires (relay.h), in turn, and what calls over TCP stand on (floor.py, rested_floor.cc);
medians of the rounds, then the worst. `rested` and `sizes` are tables of the same form."""
import contextlib
import re
import statistics
import subprocess
import time

import awake_server
import floor
import relays
import tenants
from server import Server
from tenants_beside import say

# Relays: round-trip time in ms, Gbit/s.
RELAYS = {"rtt0.2": (0.2, 0), "rtt1": (1, 0), "rtt10": (10, 0), "rtt30": (30, 0),
          "1gbit": (0, 1), "10gbit": (0, 10), "lan": (0.2, 10), "site": (1, 10)}
AWAKE = ["tcp-awake", "tls-awake", "unix-awake"]  # the tenant's sessions stay awake
ALL_COLUMNS = ["floor", "native", "tcp", "tls", "unix", *AWAKE, *RELAYS]
COLUMNS = [name for name in ALL_COLUMNS if name not in ("lan", "site", *AWAKE)]
GROUPS = ["start", "calls", "copies"]
SIZES_COLUMNS = ["floor", "native", "tcp", "tls", "unix", "lan", "site"]
RESTED_COLUMNS = ["floor", "native", "tcp", "tcp-awake", "tls", "tls-awake", "unix", "unix-awake",
                  "lan", "site"]
FIGURE = re.compile(r"^(\w+)\s+(-?[0-9.]+) (\S+)$", re.M)
PROGRAM_SECONDS = 120


class Column:
    """What one wire needs to run a program, and the figures that it gave."""

    def __init__(self, command, environment=None):
        self.command = command
        self.environment = environment
        self.figures = {}  # name -> (unit, values)

    def run(self, words, raw):
        command = list(map(str, self.command(*words)))
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              timeout=PROGRAM_SECONDS)
        raw.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}\n")
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed: {done.stderr}")
        return [(name, float(value), unit) for name, value, unit in FIGURE.findall(done.stdout)]

    def gather(self, words, raw):
        """Runs a program and keeps its figures."""
        for name, value, unit in self.run(words, raw):
            self.figures.setdefault(name, (unit, []))[1].append(value)

    def round(self, program, groups, raw):
        for group in groups:
            if group == "start":
                self.run([program, group], raw)  # a link may have to be started: not counted
                time.sleep(1)                    # and the next worker started ahead
            self.gather([program, group], raw)

    def value(self, name, choose):
        unit, values = self.figures.get(name, ("", []))
        return choose(unit, values) if values else None


class Floor(Column):
    """Programs that speak with nobody but themselves."""

    def __init__(self, build, programs):
        super().__init__(lambda name, *words: [build / "bench" / name, *words])
        self.programs = programs

    def round(self, program, groups, raw):
        for words in self.programs:
            self.gather(words, raw)


def median(_, values):
    return statistics.median(values)


def worst(unit, values):
    return min(values) if unit.endswith("/s") else max(values)


def print_table(columns, title, choose, out):
    rows = {name: unit for column in columns.values()
            for name, (unit, _) in column.figures.items()}
    say(out, f"\n{title}")
    say(out, f"{'figure':<32} {'unit':<5}" + "".join(f"{name:>11}" for name in columns))
    for row, unit in rows.items():
        cells = (column.value(row, choose) for column in columns.values())
        say(out, f"{row:<32} {unit:<5}" + "".join(
            f"{'-':>11}" if cell is None else f"{cell:11.2f}" for cell in cells))


def awake_column(stack, name, build, driver):
    options = {"driver": driver, "build": build, "warm_workers": 2}
    if name == "tls-awake":
        tls = stack.enter_context(awake_server.with_tls(**options))
        return Column(tls.command, tls.environment_of("bench"))
    plain = stack.enter_context(awake_server.PlainServer(**options))
    address = f"unix:{plain.door}" if name == "unix-awake" else plain.address
    return Column(lambda *words: plain.command(*words, server=address), plain.environment())


def open_columns(stack, names, build, driver, program, floor_programs):
    """The chosen columns with their servers and relays, entered into the stack."""
    plain = stack.enter_context(Server(driver, build=build, warm_workers=2))
    columns = {}

    def remote(address):
        return Column(lambda *words: plain.command(*words, server=address), plain.environment())

    for name in names:
        if name == "floor":
            columns[name] = Floor(build, floor_programs)
        elif name == "native":
            if subprocess.run([build / "dist" / "lib" / "longwire" / "bench" / "driver_figures",
                               "start"], capture_output=True).returncode == 0:
                columns[name] = Column(lambda *words: words)
            else:
                columns[name] = None
        elif name == "tcp":
            columns[name] = remote(plain.address)
        elif name == "unix":
            columns[name] = remote(f"unix:{plain.door}")
        elif name in AWAKE:
            columns[name] = awake_column(stack, name, build, driver)
        elif name == "tls":
            tls = stack.enter_context(tenants.TenantServer({"bench": {}}, driver=driver,
                                                           build=build, warm_workers=2))
            columns[name] = Column(tls.command, tls.environment_of("bench"))
        else:
            rtt, gbit = RELAYS[name]
            relay = stack.enter_context(relays.RelayTo(build, plain.port, rtt, gbit))
            columns[name] = remote(relay.address)
    return columns


def run(build, driver, raw, out, rounds, names, groups, seconds):
    program = build / "dist" / "lib" / "longwire" / "bench" / "driver_figures"
    measure(build, driver, raw, out, rounds, names or COLUMNS, groups, seconds, program,
            floor.PROGRAMS)


def run_rested(build, driver, raw, out, rounds, names, group, seconds):
    """A table of rested_figures' group: requests after a rest, or copies of every size."""
    floors = [["rested_floor"]] if group == "rested" else floor.PROGRAMS
    program = build / "bench" / "rested_figures"
    usual = RESTED_COLUMNS if group == "rested" else SIZES_COLUMNS
    measure(build, driver, raw, out, rounds, names or usual, [group], seconds, program, floors)


def measure(build, driver, raw, out, rounds, names, groups, seconds, program, floor_programs):
    """`seconds`: no new round begins for a column when the slowest so far would not fit."""
    end = time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        columns = open_columns(stack, names, build, driver, program, floor_programs)
        done = dict.fromkeys(columns, 0)
        longest = dict.fromkeys(columns, 0)
        for _ in range(rounds):
            for name, column in columns.items():
                begin = time.monotonic()
                if column is None or begin + longest[name] > end:
                    continue
                column.round(program, groups, raw)
                longest[name] = max(longest[name], time.monotonic() - begin)
                done[name] += 1
        empty = Column(None)
        columns = {name: column or empty for name, column in columns.items()}
        say(out, "rounds: " + ", ".join(f"{name} {count}" for name, count in done.items()))
        print_table(columns, "medians of the rounds", median, out)
        print_table(columns, "worst of the rounds", worst, out)
