"""Memory that another session keeps free: a tenant leaves it idle, another one asks for more than
what is left. The time of that allocation, beside one that finds its memory free."""
import re
import subprocess

import tenants

GIB = 1 << 30
LARGE = 120 * GIB


def size(free, gib):
    """As many GiB on a device with 140 of them, as large a part of a smaller one."""
    return gib * GIB if free >= LARGE else free * gib // 140 // (2 << 20) * (2 << 20)


class Program:
    def __init__(self, longwire, program, tenant):
        self.process = subprocess.Popen(
            longwire.command(program), env=longwire.environment_of(tenant),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.free = int(self.answer()[1])

    def answer(self):
        """The words of its next line; the program's end is an error."""
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"memory_holder ended: {self.process.communicate()[1]}")
        return line.split()

    def tell(self, *words):
        """Seconds that it took; None if it was out of memory."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        said = self.answer()
        return None if said[0] == "out" else float(said[1])

    def end(self):
        self.process.communicate("\n", timeout=120)


def row(out, what, bytes_, seconds):
    time = "out of memory" if seconds is None else f"{1e3 * seconds:10.2f} ms"
    line = f"{what:<58} {bytes_ / GIB:8.2f} GiB {time}"
    print(line, flush=True)
    out.write(line + "\n")


def run(build, driver, raw, rounds=3):
    program = build / "bench" / "memory_holder"
    blocks = {"first": {}, "second": {"admin": True}}
    memory = {} if driver != "software" else {"software_memory": GIB}
    for switched_off in ("", "drain"):
        variables = {"LONGWIRE_DISABLE": switched_off} if switched_off else {}
        with tenants.TenantServer(blocks, driver=driver, build=build, warm_workers=2,
                                  variables=variables, **memory) as longwire:
            for _ in range(rounds):
                measure(longwire, program, raw, switched_off)


def measure(longwire, program, raw, switched_off):
    off = ", drain off" if switched_off else ""
    first = Program(longwire, program, "first")
    idle, wanted = size(first.free, 60), size(first.free, 100)
    row(raw, f"the first tenant allocates on a free device{off}", idle, first.tell("take", idle))
    row(raw, f"and frees it, and lives on{off}", idle, first.tell("free"))
    second = Program(longwire, program, "second")
    row(raw, f"the second tenant allocates{off}", wanted, second.tell("take", wanted))
    second.tell("free")
    row(raw, f"the same again, out of its own lease{off}", wanted, second.tell("take", wanted))
    drained = sum(device.get("drained", 0) for device in longwire.status_as("second")["devices"])
    row(raw, f"drained on this server so far{off}", drained, 0.0)
    for end in (second, first):
        end.end()
