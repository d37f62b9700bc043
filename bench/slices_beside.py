"""Two latency-critical programs beside four best-effort ones, each a tenant of its own: natively
(the driver's time slices), through Longwire as it is, and under the policy time_slices, an example
in eBPF (policy/examples) that says which tenants are latency critical and how long each turn lasts.
Nothing in that server's configuration does; in another one's, sessions of the two stay awake
between requests besides. A row for each seed; figures of the slower of the two.

"later" are a program's requests but for the first quarter: the first ones also meet what the others
had queued before it came, which nobody takes back.
"outside" is the time of a request outside of its kernel: from launch to start, from end to return.
"""
import contextlib
import os
import statistics
import time

import awake_server
import tenants
from server import run as run_command, wait_for
from tenants_beside import BATCH_MS, REQUEST_MS, Native, Remote, calibrate, finish, say, start

CRITICAL = ["serving1", "serving2"]
OTHERS = ["batch1", "batch2", "batch3", "batch4"]
REQUESTS, PAUSE_US = 400, 5000
BATCH_SECONDS = 3
SLICE_US = 20000
POLICY = "time_slices"
WARM_WORKERS = len(CRITICAL) + len(OTHERS)
CONTEXT_SECONDS = 1  # that the driver may take for one
AWAKE_CORES = 6  # three for each session of another host


def built_in(driver, build):
    blocks = {name: {"priority": "latency_critical", "admin": True} for name in CRITICAL}
    return tenants.TenantServer(blocks | {name: {"priority": "best_effort"} for name in OTHERS},
                                driver=driver, build=build, warm_workers=WARM_WORKERS)


def by_policy(driver, build, critical=None):
    """All tenants are alike in its configuration, but for what `critical` has of those two."""
    blocks = {name: {"admin": name == CRITICAL[0]} for name in CRITICAL + OTHERS}
    for name in CRITICAL:
        blocks[name].update(critical or {})
    entry = {"name": POLICY, "file": str(build / "policy" / "objects" / f"{POLICY}.o")}
    config = {"policies": [entry]}
    if critical:
        config["scheduler"] = {"awake_cores": min(AWAKE_CORES, os.cpu_count() // 2)}
    return tenants.TenantServer(blocks, config, driver=driver, build=build,
                                warm_workers=WARM_WORKERS)


def policy(longwire, *words):
    done = run_command([longwire.dist / "bin" / "longwire", "policy", *words, "--server",
                        longwire.address], longwire.environment_of(CRITICAL[0]))
    if done.code != 0:
        raise SystemExit(f"longwire policy {' '.join(words)}: {done.err}")
    return done.out


def fill(longwire):
    values = [("critical", name, 1) for name in CRITICAL]
    values += [("slices", name, SLICE_US) for name in OTHERS]
    for name, tenant, value in values:
        policy(longwire, "maps", POLICY, name, "--set", f"tenant:{tenant}={value}")


def settle(servers):
    """Until all servers' warm workers are there that replace those of the measurement before: while
    the driver makes a context, the device stands still for all."""
    for longwire in servers:
        wait_for(lambda: len(longwire.processes().get("longwire-worker", [])) == WARM_WORKERS, 60,
                 "warm workers")
    time.sleep(CONTEXT_SECONDS)


def measure(side, load, iterations, seed, others, raw, critical):
    """The figures of the slower program of those that answer requests, and what the others did."""
    batches = [start(side, name, load, "batch", iterations["batch"], BATCH_SECONDS)
               for name in OTHERS[:others]]
    requests = [start(side, name, load, "request", iterations["request"], REQUESTS, PAUSE_US,
                      10 * seed + place) for place, name in enumerate(critical)]
    found = [finish(request, raw) for request in requests]
    worst = {name: max(one[name] for one in found) for name in found[0]}
    worst["batch"] = sum(finish(batch, raw)["batch_kernels"] for batch in batches)
    return worst


def row(raw, name, seed, found):
    say(raw, f"{name:<43} {seed:>4} {found['request_p50']:8.3f} {found['request_p99']:8.3f} "
             f"{found['request_later_p99']:9.3f} {found['request_variance']:10.5f} "
             f"{found['outside_p50']:11.3f} {found['outside_p99']:11.3f} {found['batch']:9.1f}")


def measure_all(sides, load, iterations, seeds, raw):
    say(raw, f"{'arrangement':<43} {'seed':>4} {'p50 ms':>8} {'p99 ms':>8} {'later p99':>9} "
             f"{'variance':>10} {'outside p50':>11} {'outside p99':>11} {'batch 1/s':>9}")
    found = {}
    servers = [side.longwire for side in sides.values() if side.longwire]
    for seed in range(seeds):
        one = measure(sides["native"], load, iterations, seed, 0, raw, CRITICAL[:1])
        found.setdefault("native, one alone", []).append(one)
        row(raw, "native, one alone", seed, one)
        for name, side in sides.items():
            for others in (0, len(OTHERS)):
                settle(servers)
                title = f"{name}, two{' beside four' if others else ' alone'}"
                figures = measure(side, load, iterations, seed, others, raw, CRITICAL)
                found.setdefault(title, []).append(figures)
                row(raw, title, seed, figures)
    return found


def ratios(found, title, figure, reference):
    return [one[figure] / max(other[figure], 1e-9)
            for one, other in zip(found[title], found[reference])]


def conclude(found, alone, names, raw):
    beside = "native, two beside four"
    for name in names:
        title = f"{name}, two beside four"
        p99 = {reference: ratios(found, title, "request_p99", reference)
               for reference in ("native, one alone", "native, two alone", beside)}
        say(raw, f"{title}, median (worst) of {len(found[title])} seeds:")
        for reference, values in p99.items():
            later = ratios(found, title, "request_later_p99", reference)
            say(raw, f"  P99 {statistics.median(values):.2f} ({max(values):.2f}) x {reference}, "
                     f"later {statistics.median(later):.2f} ({max(later):.2f})")
        for figure, words in (("request_variance", "variance"), ("outside_p99", "P99 outside"),
                              ("request_later_variance", "variance later")):
            values = [100 * (1 - value) for value in ratios(found, title, figure, beside)]
            say(raw, f"  {words} {statistics.median(values):.1f} % ({min(values):.1f} %) lower "
                     f"than {beside}")
        rates = ratios(found, title, "batch", beside)
        whole = [one["batch"] / alone for one in found[title]]
        say(raw, f"  best effort {statistics.median(rates):.2f} ({min(rates):.2f}) x {beside}, "
                 f"{statistics.median(whole):.2f} x one alone")


def run(build, driver, raw, seeds=5):
    load = build / "bench" / "tenant_load"
    with contextlib.ExitStack() as stack:
        sides = {"native": Native()}
        sides["longwire"] = Remote(stack.enter_context(built_in(driver, build)))
        ruled = stack.enter_context(by_policy(driver, build))
        awake = stack.enter_context(by_policy(driver, build, awake_server.AWAKE))
        fill(ruled)
        fill(awake)
        sides["longwire, time_slices"] = Remote(ruled)
        sides["longwire, time_slices, awake"] = Remote(awake)
        if driver == "software":  # it has no native side; what is built in is compared with
            sides["native"] = sides["longwire"]
        raw.write(policy(ruled, "list"))
        first = Remote(ruled) if driver == "software" else sides["native"]
        iterations = calibrate(first, load, raw, CRITICAL[0])
        alone = finish(start(sides["native"], OTHERS[0], load, "batch", iterations["batch"], 2),
                       raw)
        say(raw, f"requests of {REQUEST_MS} ms, best-effort kernels of {BATCH_MS} ms; one of those "
                 f"programs alone: {alone['batch_kernels']:.1f} kernels/s")
        found = measure_all(sides, load, iterations, seeds, raw)
        conclude(found, alone["batch_kernels"], [name for name in sides if name != "native"], raw)
        for server in (ruled, awake):
            told = policy(server, "list")
            say(raw, told.strip())
            if "UNLOADED" in told:
                raise SystemExit("the policy was unloaded: these figures are not its own")
