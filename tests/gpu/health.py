"""What Longwire says of the devices beside what nvidia-smi says, in one run: the group health of
tests/gpu/run. Both are asked one after the other while a program works; what moves by itself may
differ by what nvidia-smi's own answers differ by.
"""
import json
import subprocess
import time

import server

# Of longwire status, nvidia-smi's name, and how far apart two answers of the same moment may be:
# a part of the figure, and at least so much.
FIGURES = (("power_watts", "power.draw.instant", 0.25, 40),
           ("power_limit_watts", "enforced.power.limit", 0, 0.1),
           ("temperature_celsius", "temperature.gpu", 0, 3),
           ("sm_clock_mhz", "clocks.sm", 0.15, 60),
           ("memory_clock_mhz", "clocks.mem", 0.02, 10),
           ("gpu_utilization_percent", "utilization.gpu", 0, 30),
           ("memory_utilization_percent", "utilization.memory", 0, 30),
           ("ecc_corrected", "ecc.errors.corrected.volatile.total", 0, 0),
           ("ecc_uncorrected", "ecc.errors.uncorrected.volatile.total", 0, 0))
ROUNDS = 5


def nvidia_smi():
    """By UUID: nvidia-smi's names and its numbers; None for what it does not know."""
    names = [name for _, name, _, _ in FIGURES]
    out = subprocess.run(["nvidia-smi", f"--query-gpu=uuid,{','.join(names)}",
                          "--format=csv,noheader,nounits"], check=True, capture_output=True,
                         text=True).stdout
    devices = {}
    for line in out.splitlines():
        uuid, *values = [value.strip() for value in line.split(",")]
        devices[uuid] = {name: None if value.startswith("[") else float(value)
                         for name, value in zip(names, values)}
    return devices


def differences(ours, theirs, before):
    """`before`: theirs of a moment earlier; a figure may lie anywhere between, give or take."""
    for name, smi, part, least in FIGURES:
        said, value, earlier = ours.get(name), theirs[smi], before[smi]
        if value is None or said is None:
            if (value is None) != (said is None):
                yield f"{name}: longwire {said}, nvidia-smi {value}"
            continue
        room = max(least, part * value)
        low, high = sorted((value, value if earlier is None else earlier))
        if not low - room <= said <= high + room:
            yield f"{name}: longwire {said}, nvidia-smi {earlier} and then {value}"


def run(build, report):
    with server.Server(driver="auto", build=build) as longwire:
        process = longwire.start("steady.static", "60")
        try:
            return compare(longwire, report)
        finally:
            process.kill()
            process.communicate()


def compare(longwire, report):
    server.wait_for(lambda: longwire.status()["devices"][0]["health"], 20, "the first figures")
    wrong = []
    for number in range(ROUNDS):
        before = nvidia_smi()
        time.sleep(1.2)  # the keeper asks each second
        status = longwire.status()
        after = nvidia_smi()
        for device in status["devices"]:
            uuid = device["uuid"]
            if uuid not in after:
                wrong.append(f"nvidia-smi knows no {uuid}")
                continue
            found = list(differences(device["health"], after[uuid], before[uuid]))
            wrong += found
            report.row(f"health: {number} {uuid} {'BAD ' + '; '.join(found) if found else 'equal'}")
        report.row(json.dumps(status["devices"][0]["health"]))
    report.row(f"health: {len(wrong)} differences")
    return not wrong
