"""Steps of PyTorch and JAX natively, through Longwire over TCP, and training over longer wires, in
turn; how often a step waited for the server; and whether the losses are the native ones.
"uncached": a step with an allocation and a free of the driver's for every tensor
(PYTORCH_NO_CUDA_MEMORY_CACHING)."""
import contextlib
import os
import pathlib
import re
import sys

import relays
import server
from tenants_beside import say
from wire_table import RELAYS, Column, median, worst

FOLDER = pathlib.Path(__file__).resolve().parent
ONE_SYNCHRONIZE = ["mlp", "gpt", "cnn", "forward", "compiled", "replayed", "jax"]
NAMED_ONLY = ["compiled", "replayed", "jax"]  # compilers take longer than what is measured
TRAIN_STEPS = 200
UNCACHED = "cnn"
KINDS = [*ONE_SYNCHRONIZE, "train", "uncached"]
BY_DEFAULT = [kind for kind in KINDS if kind not in NAMED_ONLY]
COUNTS = re.compile(r"calls sent, (\d+) round trips, (\d+) waits for progress")
# Steps of the two runs whose difference is what a step costs.
FEW, MANY = 50, 150


def program(kind, *words):
    steps = "jax_steps.py" if kind == "jax" else "torch_steps.py"
    return [sys.executable, FOLDER / steps, kind, *words]


def by_program(kinds):
    """The kinds that one process measures, for each process."""
    torch = [kind for kind in kinds if kind != "jax"]
    return [together for together in (torch, ["jax"] if "jax" in kinds else []) if together]


def waits(column, kind, raw):
    """Round trips and waits for progress of a step, by the difference of two runs."""
    counts = []
    for steps in (FEW, MANY):
        done = server.run(list(map(str, column.command(*program(kind, "--steps", steps)))),
                          {**column.environment, "LONGWIRE_TRACE": "summary"}, 120)
        raw.write(done.err)
        found = COUNTS.findall(done.err)
        if done.code != 0 or not found:
            raise SystemExit(f"{kind} failed: {done.err}")
        counts.append([sum(map(int, numbers)) for numbers in zip(*found)])
    return [(many - few) / (MANY - FEW) for few, many in zip(*counts)]


def row(out, name, column, native, unit="ms"):
    value, most = column.value(name, median), column.value(name, worst)
    if value is None:
        return
    base = native.value(name, median) if native else None
    ratio = f"{value / base:7.3f}" if base else f"{'-':>7}"
    say(out, f"{name:<14} {column.name:<15} {value:10.3f} {most:10.3f} {unit:<4} {ratio}")


def run(build, driver, raw, out, rounds, kinds):
    with contextlib.ExitStack() as stack:
        longwire = stack.enter_context(server.Server(driver, build=build, warm_workers=2))
        # On a host with several GPUs PyTorch counts them by NVML, not by the driver.
        environment = longwire.environment(CUDA_VISIBLE_DEVICES="0",
                                           CUBLAS_WORKSPACE_CONFIG=":4096:8")
        columns = {}
        if os.path.exists("/dev/nvidiactl"):
            columns["native"] = Column(lambda *words: words, environment)
        columns["tcp"] = Column(longwire.command, environment)
        for name in ("rtt1", "rtt30") if "train" in kinds else ():
            relay = stack.enter_context(relays.RelayTo(build, longwire.port, *RELAYS[name]))
            columns[name] = Column(
                lambda *words, address=relay.address: longwire.command(*words, server=address),
                environment)
        uncached = {f"{name}-uncached": Column(columns[name].command, {
                        **environment, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})
                    for name in ("native", "tcp") if name in columns and "uncached" in kinds}
        for name, column in {**columns, **uncached}.items():
            column.name = name
        for _ in range(rounds):
            for column in uncached.values():
                column.gather(program(UNCACHED), raw)
            for name, column in columns.items():
                waited = [] if name in RELAYS else [k for k in ONE_SYNCHRONIZE if k in kinds]
                for together in by_program(waited):
                    column.gather(program(*together), raw)
                if "train" in kinds:
                    column.gather(program("train", "--steps", TRAIN_STEPS), raw)
        native = columns.get("native")
        say(out, f"{'step':<14} {'wire':<15} {'median':>10} {'worst':>10} unit  /native")
        steps = [kind for kind in KINDS if kind in kinds and kind != "uncached"]
        for kind in steps:
            shown = [*columns.values(), *uncached.values()]
            for column in shown:
                row(out, f"{kind}_step", column, native)
            results = {column.value(f"{kind}_result", median) for column in shown}
            results.discard(None)
            say(out, f"{kind}: results {'equal' if len(results) == 1 else 'DIFFERENT'}")
        for kind in steps:
            trips, progress = waits(columns["tcp"], kind, raw)
            say(out, f"{kind}: {trips:.2f} round trips, {progress:.2f} waits for progress a step")
