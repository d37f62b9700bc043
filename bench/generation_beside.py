"""Text generated token by token by Transformers, natively and through Longwire in turn.

Each token's attention has a length that is new to cuDNN, which compiles a kernel for it by NVRTC.
Every round begins with empty compile caches, one for each side, and has a second start that finds
them full."""
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from server import Server

PROGRAM = (pathlib.Path(__file__).resolve().parents[1] / "tests" / "gpu" / "frameworks" /
           "text_generation.py")
TOKENS = "96"
TOKEN = re.compile(r"^token_(\w+) ([0-9.]+) ms$", re.MULTILINE)


def generate(command, environment, raw):
    """{"median": ms, "mean": ms} of a token, and what was generated; (None, None) if it failed."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    raw.write(f"$ {' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}\n")
    if done.returncode != 0:
        return None, None
    return {name: float(value) for name, value in TOKEN.findall(done.stderr)}, done.stdout


def run(build, driver, raw, rounds):
    def say(line):
        print(line, flush=True)
        raw.write(line + "\n")

    figures = {}
    command = [sys.executable, PROGRAM, TOKENS]
    with Server(driver, build=build) as server:
        sides = {"native": (command, dict(os.environ)),
                 "longwire": (server.command(*command), server.environment())}
        for _ in range(rounds):
            said = set()
            with tempfile.TemporaryDirectory(prefix="longwire-caches-") as folder:
                for start in ("first", "second"):
                    for side, (words, environment) in sides.items():
                        cache = {"CUDA_CACHE_PATH": f"{folder}/{side}"}
                        found, text = generate(words, environment | cache, raw)
                        if found is None:
                            say(f"{side}: it failed, see the raw output")
                            return
                        said.add(text)
                        for name, value in found.items():
                            figures.setdefault((start, name, side), []).append(value)
            if len(said) != 1:
                say("the texts differ")
    say(f"{'ms a token':<24} {'native':>10} {'longwire':>10} {'ratio':>7}")
    for start in ("first", "second"):
        for name in ("median", "mean"):
            native, remote = (statistics.median(figures[start, name, side]) for side in sides)
            say(f"{start + ' start, ' + name:<24} {native:10.2f} {remote:10.2f} "
                f"{remote / native:6.2f} x")
