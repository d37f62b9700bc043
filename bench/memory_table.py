"""What device memory costs a program: pairs of allocation and free, buffers that grow, and what of
free memory can be had in one piece; natively, through Longwire, and through it with every copy
made (LONGWIRE_DISABLE=remap). Prints medians of the rounds."""
import re
import statistics
import subprocess

from server import Server

FIGURE = re.compile(r"^(\w+)\s+([0-9.]+) (\S+)$", re.MULTILINE)
REMAPS = re.compile(r"(\d+) copies of (\d+) bytes made by mapping")
COLUMNS = ("native", "longwire", "copied")
SECONDS = "3"  # of filling, freeing and filling again


def run_once(command, environment, raw):
    """({name: (value, unit)}, what it said on standard error); nothing if it failed."""
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True,
                          timeout=570)
    raw.write(f"$ {' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}\n")
    if done.returncode != 0:
        return {}, done.stderr
    found = FIGURE.findall(done.stdout)
    return {name: (float(value), unit) for name, value, unit in found}, done.stderr


def ratio(above, below):
    return f"{above / below:10.2f}" if above is not None and below else f"{'-':>10}"


def run(build, driver, raw, rounds):
    program = build / "bench" / "memory_figures"
    results, remaps = {}, None
    with Server(driver, build=build) as server:
        ways = {"native": ([program, SECONDS], None),
                "longwire": (server.command(program, SECONDS),
                             server.environment(LONGWIRE_TRACE="summary")),
                "copied": (server.command(program, "growth"),
                           server.environment(LONGWIRE_DISABLE="remap"))}
        for _ in range(rounds):
            for column, (command, environment) in ways.items():
                found, said = run_once(command, environment, raw)
                for name, (value, unit) in found.items():
                    results.setdefault((name, unit), {}).setdefault(column, []).append(value)
                if column == "longwire":
                    remaps = REMAPS.search(said) or remaps
    lines = [f"{'figure':<24} {'native':>12} {'longwire':>12} {'copied':>12} unit  native/longwire"]
    for (name, unit), columns in results.items():
        values = [statistics.median(columns[column]) if column in columns else None
                  for column in COLUMNS]
        shown = " ".join(f"{'-':>12}" if value is None else f"{value:12.2f}" for value in values)
        lines.append(f"{name:<24} {shown} {unit:<5} {ratio(values[0], values[1])}")
    if remaps:
        lines.append(f"a run through Longwire made {remaps[1]} copies of {remaps[2]} bytes by "
                     "mapping")
    for line in lines:
        print(line, flush=True)
        raw.write(line + "\n")
