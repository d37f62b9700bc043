"""NVIDIA's samples that tests/gpu/run tries, as tests/gpu/build_samples built them.

A sample is right if it ends as natively and says the same about itself: most print times and
rates, so what is compared is the exit code and the words of its verdict. What is known to differ
stands in samples-differences.txt with the reason.
"""
import json
import os
import pathlib
import re

SECONDS = 60
DIFFERENCES = pathlib.Path(__file__).resolve().parent / "samples-differences.txt"
VERDICT = re.compile(r"pass(?:ed)?|fail(?:ed|ure)?|success(?:ful(?:ly)?)?|incorrect|"
                     r"mismatch(?:es)?|error|waived|exiting", re.IGNORECASE)


def verdict(text):
    """The words by which a program says how it went, in their order."""
    return [word.lower() for word in VERDICT.findall(text)]


def arguments_of(checkout, name):
    """What NVIDIA's own runner starts the sample with: a list for each run."""
    file = checkout / "test_args.json"
    known = json.loads(file.read_text()).get(name, {}) if file.exists() else {}
    if known.get("skip"):
        return []
    return [run.get("args", []) for run in known.get("runs", [known])]


def least_devices(checkout, name):
    file = checkout / "test_args.json"
    known = json.loads(file.read_text()).get(name, {}) if file.exists() else {}
    return known.get("min_gpus", 1)


def is_program(path):
    return (path.is_file() and os.access(path, os.X_OK) and ".so" not in path.name and
            "CMakeFiles" not in path.parts and path.open("rb").read(4) == b"\x7fELF")


def list_samples(checkouts, devices):
    """(label, words of the command) of each run of each sample that was built."""
    found = []
    for checkout in map(pathlib.Path, checkouts):
        programs = sorted(path for folder in checkout.rglob("build") if folder.is_dir()
                          for path in folder.rglob("*") if is_program(path))
        for program in programs:
            if least_devices(checkout, program.name) > devices:
                continue
            runs = arguments_of(checkout, program.name)
            for number, words in enumerate(runs):
                label = program.name + (f".{number}" if len(runs) > 1 else "")
                # They look for their data beside themselves or above.
                found.append((label, ["env", "-C", program.parent, program, *words]))
    return found


def known_differences():
    """{name: reason} of the reviewed list."""
    lines = DIFFERENCES.read_text().splitlines()
    pairs = [line.split(":", 1) for line in lines if line and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, reason in pairs}


def difference(native, remote):
    """What a user would see, or None."""
    if native.code != remote.code:
        return f"exit code {remote.code}, natively {native.code}"
    if verdict(native.out) != verdict(remote.out):
        return "it says something else about itself"
    return None
