"""Two sessions that take turns on a device that has no room for both: each has 80 GiB (4/7 of a
device with less than 120 free), touches all of it with a kernel, and finds what it left there. What
a turn costs, beside one that finds its memory there; the rate at which memory is moved, beside that
of pinned copies, natively where there is a GPU. Between turns both are idle for two seconds."""
import subprocess
import time

import drain_beside
import tenants
from server import wait_for

GIB = 1 << 30
MIB = 1 << 20
# Between turns: who has just come back stays for as long as that took.
PAUSE = 2


def pinned(command, environment, bytes_):
    """Bytes a second to the device and back; None if the program does not run."""
    process = subprocess.run(command, env=environment, input=f"pinned {bytes_}\n\n", text=True,
                             capture_output=True, timeout=300)
    for line in process.stdout.splitlines():
        if line.startswith("pinned "):
            return [bytes_ / float(word) for word in line.split()[1:]]
    return None


def run(build, driver, raw, rounds=3):
    software = driver == "software"
    memory = {"software_memory": GIB} if software else {}
    program = build / "bench" / "memory_holder"
    host = 1 if software else 64  # GiB: both have some of theirs there while they change places
    blocks = {"first": {}, "second": {"admin": True}}
    with tenants.TenantServer(blocks, {"memory": {"swap_host_memory": f"{host}GiB"}}, driver=driver,
                              build=build, warm_workers=2, **memory) as longwire:
        environment = longwire.environment_of("first")
        size = 64 * MIB if software else GIB
        for where, command in (("natively", [program]), ("", longwire.command(program))):
            rates = pinned(command, environment, size)
            if rates is None:
                continue
            say(raw, f"pinned copies {where or 'through Longwire'}: to the device "
                     f"{rates[0] / GIB:.1f} GiB/s, back {rates[1] / GIB:.1f} GiB/s")
        wait_for(lambda: device(longwire).get("swap_host_memory", 0) >= host * GIB, 300,
                 "the host's memory")
        measure(longwire, program, raw, 2 * MIB if software else 4096, rounds)


def say(raw, line):
    print(line, flush=True)
    raw.write(line + "\n")


def device(longwire):
    return longwire.status_as("second")["devices"][0]


def measure(longwire, program, raw, step, rounds):
    first = drain_beside.Program(longwire, program, "first")
    each = drain_beside.size(first.free, 80)
    row = drain_beside.row
    row(raw, "the first session allocates", each, first.tell("take", each))
    first.tell("touch", step)
    there = first.tell("touch", step)
    row(raw, "and touches what is there", each, there)
    second = drain_beside.Program(longwire, program, "second")
    seconds = second.tell("take", each)
    row(raw, "the second session allocates, and the first makes room", each, seconds)
    if seconds is None:
        return
    second.tell("touch", step)
    for _ in range(rounds):
        for name, session in (("first", first), ("second", second)):
            time.sleep(PAUSE)
            before = device(longwire)
            seconds = session.tell("touch", step)
            after = device(longwire)
            moved = [after.get(way, 0) - before.get(way, 0)
                     for way in ("swapped_out", "swapped_in")]
            row(raw, f"the {name} session's turn", each, seconds)
            say(raw, f"    out {moved[0] / GIB:.2f} GiB, in {moved[1] / GIB:.2f} GiB: together "
                     f"{sum(moved) / GIB / max(seconds - there, 1e-9):.1f} GiB/s")
    for session in (second, first):
        session.end()
