"""The group devices of tests/gpu/run: the tests of many devices (tests/e2e/many_devices_test.py) on
all GPUs of this host, and that status, metrics and NVML show each of them."""
import contextlib
import io
import json
import os
import subprocess
import unittest

import many_devices_test
import server

LEFT = 12 << 30  # bytes on each GPU for the tests, so that swapping a part of it takes seconds
TURNS = 1000


@contextlib.contextmanager
def little_memory(build, count):
    """Another program holds the rest of each GPU's memory."""
    holders = []
    try:
        for device in range(count):
            holder = subprocess.Popen(["env", f"CUDA_VISIBLE_DEVICES={device}",
                                       build / "bench" / "memory_holder"], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            holders.append(holder)
            free = int(server.next_line(holder).split()[1])
            holder.stdin.write(f"take {max(1 << 20, free - LEFT)}\n")
            holder.stdin.flush()
            server.next_line(holder)
        yield
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate()


def run_case(case, report):
    said = io.StringIO()
    runner = unittest.TextTestRunner(stream=said, verbosity=2)
    result = runner.run(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    print(said.getvalue(), file=report.raw, flush=True)
    bad = len(result.failures) + len(result.errors)
    report.row(f"devices: {case.__name__}: {result.testsRun - bad} right, {bad} bad")
    return bad == 0 and result.testsRun > 0


def shows_every_device(build, report, count):
    """By UUID, as nvidia-smi lists them."""
    listed = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], text=True,
                            capture_output=True, check=True).stdout.split()
    with server.Server(driver="auto", build=build) as longwire:
        status = [device["uuid"] for device in longwire.status()["devices"]]
        process = subprocess.run(longwire.command("nvidia-smi", "-L"), text=True, timeout=60,
                                 env=longwire.environment(LONGWIRE_DEVICES=count),
                                 capture_output=True)
        top = json.loads(longwire.cli("top", "--once", "--json", "--server",
                                      longwire.address).out)
    wrong = [what for what, right in
             {"status": sorted(status) == sorted(listed),
              "NVML": all(uuid in process.stdout for uuid in listed),
              "top": len(top["devices"]) == count}.items() if not right]
    report.row(f"devices: {count} shown by status, NVML and top: {'BAD ' if wrong else 'equal'}"
               f"{', '.join(wrong)}")
    print(process.stdout, process.stderr, json.dumps(top), file=report.raw, flush=True)
    return not wrong


def run(build, report, count):
    os.environ["LONGWIRE_BUILD"] = str(build)
    many_devices_test.Host.driver = "auto"
    many_devices_test.Host.devices = count
    many_devices_test.Host.ranks = count
    many_devices_test.Host.turns = TURNS
    many_devices_test.Host.memory = LEFT * 3 // 4
    many_devices_test.Host.swap = "8GiB"
    good = [shows_every_device(build, report, count)]
    for name in ("FairTest", "RanksTest", "StrictTest", "LossesTest"):
        good.append(run_case(getattr(many_devices_test, name), report))
    with little_memory(build, count):
        good.append(run_case(many_devices_test.SwapTest, report))
    return all(good)
