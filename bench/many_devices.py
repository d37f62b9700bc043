"""A host with many devices: one program that uses all of them (device_figures), natively and
through Longwire; a tenant for each device under each placement; and what the idle server costs by
the number of its devices."""
import json
import os
import pathlib
import subprocess
import time

import tenants
from many_sessions import threads_of
from server import Server, wait_for
from sessions_apart import NativeOn, device_count, kernels_per_second
from tenants_beside import calibrate, figures, say

PLACEMENTS = ("pack", "spread", "least_loaded")
PROGRAM_SECONDS = 120
IDLE_SECONDS = 10
ROUNDS_SECONDS = 4


def one_program(build, driver, count, iterations, raw, out):
    """Copies, launches and kernels of one program on all devices; the least over the pairs."""
    program = build / "bench" / "device_figures"
    with Server(driver, build=build, software_devices=count) as longwire:
        remote = longwire.environment(LONGWIRE_DEVICES=count)
        sides = {"native": ([], dict(os.environ)), "tcp": (longwire.command(), remote),
                 "unix": (longwire.command(server=f"unix:{longwire.door}"), remote)}
        if driver == "software":
            del sides["native"]
        found = {}
        for name, (prefix, environment) in sides.items():
            done = subprocess.run([*prefix, program, iterations], env=environment, text=True,
                                  capture_output=True, timeout=PROGRAM_SECONDS)
            raw.write(f"$ {name}: device_figures\n{done.stdout}{done.stderr}\n")
            found[name] = figures(done.stdout) if done.returncode == 0 else {}
    say(out, f"{'one program, all devices':<26}" + "".join(f"{name:>12}" for name in found)
             + f"{'tcp':>10}{'unix':>8}")
    for row, values in rows_of(found).items():
        ratios = "".join(f"{value / values[0]:9.3f}" for value in values[1:])
        say(out, f"{row:<26}" + "".join(f"{value:12.2f}" for value in values) + ratios)


def rows_of(found):
    """{row: a value for each side}; of rows of pairs the slowest pair."""
    kinds = {"slowest pair, GB/s": ("peer_", ("peer_both", "peer_small"), min),
             "both ways, GB/s": ("peer_both_", (), min), "16 bytes, us": ("peer_small_", (), max),
             "launch on all + wait, us": ("launch_on_all", (), max),
             "long kernels, 1/s": ("kernels_on_all", (), min)}
    rows = {}
    for row, (prefix, but, worst) in kinds.items():
        values = [[value for name, value in side.items()
                   if name.startswith(prefix) and not name.startswith(but)]
                  for side in found.values()]
        rows[row] = [worst(side) if side else float("nan") for side in values]
    return rows


class RemoteTenant:
    """A tenant's programs, each on one device that the server chooses."""

    def __init__(self, longwire, tenant):
        self.longwire = longwire
        self.tenant = tenant

    def command(self, _, *words):
        return self.longwire.command(*map(str, words))

    def environment_of(self, _):
        return self.longwire.environment_of(self.tenant)


def tenant_server(build, driver, count, placement):
    blocks = {f"tenant{i}": {} for i in range(2 * count)}
    return tenants.TenantServer(blocks, {"placement": placement}, driver=driver, build=build,
                                warm_workers=1, software_devices=count)


def shared(build, driver, count, iterations, alone, raw, out):
    """As many tenants as devices, a program each, and twice as many."""
    load = build / "bench" / "tenant_load"
    alone *= count
    say(out, f"\n{'kernels of 21 ms':<26} {'1/s':>10}  of {count} devices, {alone:.1f} 1/s alone")
    for placement in PLACEMENTS:
        with tenant_server(build, driver, count, placement) as server:
            for many in (count, 2 * count):
                sides = [RemoteTenant(server, f"tenant{i}") for i in range(many)]
                total = kernels_per_second(sides, load, iterations["batch"], raw)
                say(out, f"{f'{placement}, {many} tenants':<26} {total:10.1f} {total / alone:8.3f}")


def weights(build, driver, count, raw, out):
    """Two programs over all devices, with turns in the ratio of 1 and 3: rounds of kernels that
    meet (tests/apps/all_devices.cu)."""
    blocks = {"one": {"weight": 1, "devices": count, "admin": True},
              "three": {"weight": 3, "devices": count}}
    say(out, f"\n{'two programs over all':<26} {'alone':>10} {'one':>10} {'three':>10} "
             f"{'ratio':>8} {'turns':>8} {'overran':>8}")
    for turn in ("5ms", "50ms"):
        settings = {"scheduler": {"policy": "weighted_fair", "turn": turn},
                    "software_device": {"count": count, "memory": "1GiB"}}
        with tenants.TenantServer(blocks, settings, driver=driver, build=build, warm_workers=0,
                                  software_devices=count) as server:
            def rounds(*names):
                programs = [subprocess.Popen(
                    server.command(build / "tests" / "apps" / "all_devices.static"), text=True,
                    env=server.environment_of(name, LONGWIRE_DEVICES=count),
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE) for name in names]
                for program in programs:
                    program.stdout.readline()
                time.sleep(ROUNDS_SECONDS)
                for program in programs:
                    program.stdin.close()
                said = [program.stdout.read() for program in programs]
                raw.write("".join(said))
                return [int(text.split("ROUNDS")[1].split()[0]) for text in said]
            [alone] = rounds("one")
            one, three = rounds("one", "three")
            counted = server.status_as("one")["scheduler"]
        say(out, f"{f'turns of {turn}':<26} {alone:10} {one:10} {three:10} {three / one:8.2f} "
                 f"{counted['turns']:8} {counted.get('overruns', 0):8}")


def say_idle(build, driver, number, out):
    """Start until all warm workers are there, then threads, descriptors, memory, processor time."""
    config = json.dumps({"devices": [{"device": i} for i in range(number)],
                         "software_device": {"count": number}})
    begun = time.monotonic()
    with Server(driver, build=build, config=config, software_devices=number) as longwire:
        wait_for(lambda: len(longwire.processes().get("longwire-worker", [])) >= number, 30,
                 "warm workers")
        ready = time.monotonic() - begun
        time.sleep(3)  # until their contexts are made
        pids = [pid for pids in longwire.processes().values() for pid in pids]
        before = sum(ran for ran, _ in threads_of(pids).values())
        time.sleep(IDLE_SECONDS)
        spent = sum(ran for ran, _ in threads_of(pids).values()) - before
        folders = [pathlib.Path(f"/proc/{pid}") for pid in pids]
        threads = sum(len(list((folder / "task").iterdir())) for folder in folders)
        descriptors = sum(len(list((folder / "fd").iterdir())) for folder in folders)
        memory = sum(int(line.split()[1]) for folder in folders
                     for line in (folder / "smaps_rollup").read_text().splitlines()
                     if line.startswith("Pss:"))
    say(out, f"{number:<26} {ready:10.2f} {len(pids):10} {threads:8} {descriptors:12} "
             f"{memory / 1024:10.1f} {spent / 1e6 / IDLE_SECONDS:10.2f}")


def run(build, driver, raw, out, software_devices=2):
    count = device_count(driver, software_devices)
    load = build / "bench" / "tenant_load"
    with tenant_server(build, driver, count, "spread") as server:
        remote = RemoteTenant(server, "tenant0")
        iterations = calibrate(remote, load, raw)
        one = remote if driver == "software" else NativeOn(0)
        alone = kernels_per_second([one], load, iterations["batch"], raw)
    one_program(build, driver, count, iterations["request"], raw, out)
    shared(build, driver, count, iterations, alone, raw, out)
    weights(build, driver, count, raw, out)
    say(out, f"\n{'idle server, devices':<26} {'ready s':>10} {'processes':>10} {'threads':>8} "
             f"{'descriptors':>12} {'Pss MiB':>10} {'ms a s':>10}")
    for number in sorted({1, max(1, count // 2), count}):
        say_idle(build, driver, number, out)
