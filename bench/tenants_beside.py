"""Latency-critical requests beside four best-effort programs: natively (the driver's time slices),
through Longwire, with sessions that stay awake, and with its scheduler off; one run, a row for each
seed. Each row's last 99th percentile is divided by the native one of requests alone, too.

Latency critical: kernels of 1.1 ms, each waited for, about 5 ms between them. Best effort: kernels
of 21 ms, back to back."""
import contextlib
import re
import statistics
import subprocess

import server
import tenants

REQUEST_MS, BATCH_MS = 1.1, 21
REQUESTS, PAUSE_US = 500, 5000
BATCH_SECONDS = 3.5


# Longwire's columns: what the tenant of requests has, and the scheduler.
ARRANGEMENTS = {"longwire": ({}, True), "longwire, awake": ({"awake": "100ms"}, True),
                "longwire, scheduler off": ({}, False)}


def open_servers(stack, driver, build):
    """{name: a server}, entered into the stack."""
    servers = {}
    for name, (more, enabled) in ARRANGEMENTS.items():
        blocks = {"serving": {"priority": "latency_critical", "admin": True, **more},
                  "batch": {"priority": "best_effort"}}
        servers[name] = stack.enter_context(
            tenants.TenantServer(blocks, {"scheduler": {"enabled": enabled}}, driver=driver,
                                 build=build, warm_workers=2))
    return servers


class Native:
    """The programs on this host's own driver."""
    longwire = None

    def command(self, tenant, *words):
        return list(map(str, words))

    def environment_of(self, tenant):
        return None


class Remote:
    def __init__(self, longwire):
        self.longwire = longwire

    def command(self, tenant, *words):
        return self.longwire.command(*map(str, words))

    def environment_of(self, tenant):
        return self.longwire.environment_of(tenant)


def figures(text):
    return {name: float(value) for name, value in re.findall(r"^(\w+) (-?[0-9.]+) ", text, re.M)}


def finish(process, raw):
    out, err = process.communicate(timeout=120)
    raw.write(f"$ {' '.join(map(str, process.args))}\n{out}{err}\n")
    if process.returncode != 0:
        raise SystemExit(f"{process.args} failed: {err}")
    return figures(out)


def start(side, tenant, *words):
    return subprocess.Popen(side.command(tenant, *words), env=side.environment_of(tenant),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def measure(side, load, iterations, seed, others, raw):
    """The requests' figures and the kernels per second of the programs beside them."""
    batches = [start(side, "batch", load, "batch", iterations["batch"], BATCH_SECONDS)
               for _ in range(others)]
    request = start(side, "serving", load, "request", iterations["request"], REQUESTS, PAUSE_US,
                    seed)
    found = finish(request, raw)
    found["batch"] = sum(finish(batch, raw)["batch_kernels"] for batch in batches)
    return found


def calibrate(side, load, raw, tenant="serving"):
    return {name: str(int(finish(start(side, tenant, load, "calibrate", length),
                                 raw)["iterations"]))
            for name, length in (("request", REQUEST_MS), ("batch", BATCH_MS))}


def run(build, driver, raw, out, seeds=5):
    load = build / "bench" / "tenant_load"
    with contextlib.ExitStack() as stack:
        native = Native()
        sides = {"native": native}
        for name, longwire in open_servers(stack, driver, build).items():
            sides[name] = Remote(longwire)
        iterations = calibrate(native, load, raw)
        alone = finish(start(native, "batch", load, "batch", iterations["batch"], 2), raw)
        say(out, f"one best-effort program alone, native: {alone['batch_kernels']:.1f} kernels/s")
        say(out, f"{'arrangement':<34} {'seed':>4} {'p50 ms':>8} {'p99 ms':>8} {'most ms':>8} "
                 f"{'p99/alone':>9} {'/native':>9} {'batch 1/s':>9}")
        ratios = {}
        for seed in range(seeds):
            native_alone = None
            for name, side in sides.items():
                reference = None
                for others in (0, 4):
                    found = measure(side, load, iterations, seed, others, raw)
                    reference = reference or found["request_p99"]
                    native_alone = native_alone or found["request_p99"]
                    ratio = found["request_p99"] / reference
                    row = f"{name}{', beside four' if others else ', alone'}"
                    ratios.setdefault(row, []).append(ratio)
                    say(out, f"{row:<34} {seed:>4} {found['request_p50']:8.3f} "
                             f"{found['request_p99']:8.3f} {found['request_most']:8.3f} "
                             f"{ratio:9.2f} {found['request_p99'] / native_alone:9.2f} "
                             f"{found['batch']:9.1f}")
        for row, values in ratios.items():
            if "beside" in row:
                say(out, f"{row}: P99 {statistics.median(values):.2f} x alone (median of "
                         f"{seeds} seeds), worst {max(values):.2f}")


def say(out, line):
    print(line, flush=True)
    out.write(line + "\n")
