"""Two tenants that together want more than the device's memory: one has a session whose turns
count, the other two sessions that work all the time. Each has 2/5 of the memory. What the turns of
the first tenant take, with the swapping that is built in and with the policy priority_swap, an
example in eBPF (policy/examples), in turn, five times each."""
import json
import statistics
import threading
import time

import drain_beside
import tenants
from server import plain, run as run_command, wait_for

GIB = 1 << 30
MIB = 1 << 20
TURNS, PAUSE = 12, 0.15  # of the first tenant, and the seconds between two
OTHERS_PAUSE = 0.1
POLICY, STAY_MS = "priority_swap", 1000
OPERATOR = "preferred"


def policy(longwire, *words):
    done = run_command([longwire.dist / "bin" / "longwire", "policy", *words, "--server",
                        longwire.address], longwire.environment_of(OPERATOR))
    if done.code != 0:
        raise SystemExit(f"longwire policy {' '.join(map(str, words))}: {done.err}")
    return done.out


def say(raw, line):
    print(line, flush=True)
    raw.write(line + "\n")


def swapped_out(longwire):
    return longwire.status_as(OPERATOR)["devices"][0].get("swapped_out", 0)


class Others:
    """The other tenant's sessions, which take turns until they are stopped."""

    def __init__(self, programs, step):
        self.over = threading.Event()
        self.turns = [0] * len(programs)
        self.threads = [threading.Thread(target=self.work, args=(number, program, step))
                        for number, program in enumerate(programs)]
        for thread in self.threads:
            thread.start()

    def work(self, number, program, step):
        while not self.over.is_set():
            program.tell("touch", step)
            self.turns[number] += 1
            time.sleep(OTHERS_PAUSE)

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def measure(longwire, program, step):
    """Seconds of the first tenant's turns, the longest, the others' turns a second, GiB out."""
    held = [drain_beside.Program(longwire, program, tenant)
            for tenant in (OPERATOR, "other", "other")]
    each = held[0].free * 2 // 5 // (2 * MIB) * (2 * MIB)
    for one in held:
        if one.tell("take", each) is None:
            raise SystemExit(f"{each} bytes are not there, also by swapping")
        one.tell("touch", step)
    before, begun = swapped_out(longwire), time.monotonic()
    others = Others(held[1:], step)
    turns = []
    for _ in range(TURNS):
        turns.append(held[0].tell("touch", step))
        time.sleep(PAUSE)
    passed = time.monotonic() - begun
    others.end()
    moved = (swapped_out(longwire) - before) / GIB
    for one in held:
        one.end()
    return sum(turns), max(turns), sum(others.turns) / passed, moved


def ended(longwire):
    found = map(plain, json.loads(policy(longwire, "list", "--json")))
    return next(one.get("ended", "") for one in found if one["name"] == POLICY)


def run(build, driver, raw, rounds=5):
    software = driver == "software"
    memory = {"software_memory": GIB} if software else {}
    host = 1 if software else 64  # GiB
    program = build / "bench" / "memory_holder"
    blocks = {OPERATOR: {"admin": True}, "other": {}}
    better, step = 0, 2 * MIB if software else 4096
    ratios = []
    with tenants.TenantServer(blocks, {"memory": {"swap_host_memory": f"{host}GiB"}}, driver=driver,
                              build=build, warm_workers=3, **memory) as longwire:
        wait_for(lambda: longwire.status_as(OPERATOR)["devices"][0].get("swap_host_memory", 0)
                 >= host * GIB, 300, "the host's memory")
        say(raw, f"{'':<22} {'turns of the first s':>20} {'longest s':>10} {'others 1/s':>10} "
                 f"{'out GiB':>8}")
        for _ in range(rounds):
            total = {}
            for name in ("built in", POLICY):
                if name == POLICY:
                    policy(longwire, "load", build / "policy" / "objects" / f"{POLICY}.o")
                    policy(longwire, "maps", POLICY, "priorities", "--set",
                           f"tenant:{OPERATOR}={STAY_MS}")
                figures = measure(longwire, program, step)
                total[name] = figures[0]
                say(raw, f"{name:<22} {figures[0]:20.2f} {figures[1]:10.2f} {figures[2]:10.2f} "
                         f"{figures[3]:8.2f}")
                if name == POLICY:
                    if ended(longwire):
                        raise SystemExit(f"the policy was unloaded: {ended(longwire)}")
                    raw.write(policy(longwire, "list") + policy(longwire, "maps", POLICY))
                    policy(longwire, "unload", POLICY)
            better += total[POLICY] < total["built in"]
            ratios.append(total[POLICY] / total["built in"])
        say(raw, f"the policy is better for the first tenant in {better} of {rounds} runs; its "
                 f"turns take {statistics.median(ratios):.2f} of the time, at worst "
                 f"{max(ratios):.2f}")
