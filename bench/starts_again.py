"""A program's starts one after the other through Longwire, beside its native start: how long each
took, and what it sent of its module images. The server is new at the first start; from the second
on it knows the images, and the driver finds what it compiled from PTX."""
import os
import pathlib
import re
import subprocess
import sys
import time

from server import Server

ROOT = pathlib.Path(__file__).resolve().parents[1]
TRAINING = ROOT / "tests" / "gpu" / "frameworks" / "torch_training.py"
IMAGES = re.compile(r"(\d+) module images of (\d+) bytes, (\d+) known to the server, "
                    r"(\d+) bytes of them sent")
TRIPS = re.compile(r"^longwire: (\d+) round trips of (\w+)$", re.MULTILINE)
LOADS = ("lwModuleLoad", "lwLinkAdd", "lwModuleFunctions")
STARTS = 3


def commands(build):
    yield "text (driver_ptx)", [build / "tests" / "apps" / "driver_ptx.driver"]
    yield "cudart (vector_add)", [build / "tests" / "apps" / "vector_add.static"]
    for model in ("cnn", "transformer"):
        yield f"torch training, {model}", [sys.executable, TRAINING, model, "fp32"]


def run(command, environment, raw):
    """(seconds, what it said on standard error), or None if it failed."""
    start = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    seconds = time.monotonic() - start
    raw.write(f"$ {' '.join(map(str, command))}: {done.returncode} after {seconds:.3f} s\n"
              f"{done.stdout}{done.stderr}\n")
    return (seconds, done.stderr) if done.returncode == 0 else None


def row(label, which, ran):
    if ran is None:
        return f"{label:<28} {which:<22} failed, see the raw output"
    seconds, said = ran
    text = f"{label:<28} {which:<22} {seconds:8.3f}"
    found = IMAGES.search(said)
    if found:
        trips = dict((name, int(count)) for count, name in TRIPS.findall(said))
        images, size, known, sent = map(int, found.groups())
        text += (f" {images:>7} {size:>12} {known:>7} {sent:>12}"
                 f" {sum(trips.get(name, 0) for name in LOADS):>7}")
    return text


def compiled_files(server):
    kept = server.runtime / "cache" / "compiled" / "tenants"
    return sum(file.is_file() for file in kept.rglob("*"))


def table(build, driver, raw):
    def say(line):
        print(line, flush=True)
        raw.write(line + "\n")

    say(f"{'program':<28} {'start':<22} {'seconds':>8} {'images':>7} {'bytes':>12} {'known':>7} "
        f"{'bytes sent':>12} {'trips':>7}")
    for label, command in commands(build):
        say(row(label, "native", run(command, dict(os.environ), raw)))
        for name, variables in (("", {}), (", no cache", {"LONGWIRE_DISABLE": "module-cache"})):
            with Server(driver, build=build) as server:
                for number in range(1, STARTS + 1):
                    environment = server.environment(LONGWIRE_TRACE="summary", **variables)
                    ran = run(server.command(*command), environment, raw)
                    say(row(label, f"longwire {number}{name}", ran))
                say(f"{'':<28} the driver keeps {compiled_files(server)} files of what it compiled")
                raw.write(server.log_tail(200) + "\n")
