"""One launch and its wait, or one request, after a rest, hop by hop: which thread wakes which, when
it runs, and its messages, as the kernel's tracing sees them. For root, where tracefs can be
mounted; nothing of Longwire knows of it."""
import os
import pathlib
import re
import subprocess
import time

import awake_server
from server import Server

TRACING = pathlib.Path("/sys/kernel/tracing")
EVENTS = ["sched/sched_waking", "sched/sched_switch", "syscalls/sys_enter_sendmsg",
          "syscalls/sys_exit_sendmsg", "syscalls/sys_exit_recvmsg"]
LINE = re.compile(r"\s*.+-(\d+)\s+\[\d+\]\s+\S+\s+([\d.]+): (\w+)(:|\(| ->)\s*(.*)")
CALLS = {"sys_sendmsg": "sends", "sys_sendmsg ->": "has sent",
         "sys_recvmsg ->": "has received"}
REST_MS, REQUESTS = 50, 60
STARTS_IN = 3  # seconds


class NoTracing(Exception):
    """The kernel's tracing cannot be had here."""


def threads(processes):
    """Thread id → name, of {process name: ids}."""
    names = {}
    for name, pids in processes.items():
        short = name.removeprefix("longwire-").split(".")[0]
        for pid in pids:
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                try:
                    own = (task / "comm").read_text().strip()
                    names[int(task.name)] = f"{short} {own} {task.name}"
                except OSError:
                    pass
    return names


def prepare():
    if not (TRACING / "events").exists():
        subprocess.run(["mount", "-t", "tracefs", "nodev", str(TRACING)], check=False)
    if os.geteuid() != 0 or not (TRACING / "events/sched/sched_waking").exists():
        raise NoTracing("hop traces need root and a kernel with tracefs")
    (TRACING / "trace_clock").write_text("mono")
    (TRACING / "buffer_size_kb").write_text("16384")


def record(seconds):
    """The kernel's text of what all threads of the host did."""
    (TRACING / "tracing_on").write_text("0")
    (TRACING / "trace").write_text("")
    on = [event for event in EVENTS if (TRACING / "events" / event).exists()]
    for event in on:
        (TRACING / "events" / event / "enable").write_text("1")
    (TRACING / "tracing_on").write_text("1")
    time.sleep(seconds)
    (TRACING / "tracing_on").write_text("0")
    for event in on:
        (TRACING / "events" / event / "enable").write_text("0")
    return (TRACING / "trace").read_text()


def parse(text):
    """[(µs, thread, event, its text)], in time's order. An arrow marks the end of a system
    call."""
    found = (LINE.match(line) for line in text.splitlines())
    return [(float(hit[2]) * 1e6, int(hit[1]), hit[3] + hit[4].strip(":("), hit[5])
            for hit in found if hit]


def of(field, text):
    return int(re.search(rf"\b{field}=(-?\d+)", text)[1])


def requests(events, program):
    """[(duration, its events)]: from when the program's main thread is woken after its rest until
    it rests again. Some kernels do not tell when an idle processor begins to run a thread."""
    spans, out, start = [], None, None
    for i, (when, _, event, text) in enumerate(events):
        if event == "sched_waking" and of("pid", text) == program and out is not None:
            if when - events[out][0] > REST_MS * 500:
                if start is not None:
                    spans.append((start, out))
                start = i
        if event == "sched_switch" and of("prev_pid", text) == program:
            out = i
    return sorted((events[b][0] - events[a][0], events[a:b + 1]) for a, b in spans)


def describe(events, names):
    """Lines of one request."""
    start = events[0][0]
    for when, thread, event, text in events:
        if event == "sched_switch":
            runs = names.get(of("next_pid", text))
            said = f"{runs} runs" if runs else None
        elif event == "sched_waking":
            woken = names.get(of("pid", text))
            said = f"  {names.get(thread, 'the kernel')} wakes {woken}" if woken else None
        elif thread not in names:
            continue
        else:
            said = f"  {names.get(thread, thread)} {CALLS[event]}" if event in CALLS else None
            if text.startswith("0xffff"):
                said = None  # there was nothing to receive
        if said:
            yield f"{when - start:8.0f}  {said}"


def trace(longwire, command, title):
    """Lines: the median request of `command` (it rests REST_MS before each) on this server."""
    prepare()
    with subprocess.Popen(command, env=longwire.environment(),
                          stdout=subprocess.DEVNULL) as program:
        time.sleep(STARTS_IN)
        names = threads(longwire.processes())
        names |= threads({"program": [program.pid]})
        text = record(REST_MS * REQUESTS / 2000)
        program.wait()
    found = requests(parse(text), program.pid)
    if not found:
        return [f"== {title}: no request was seen", *text.splitlines()[:40]]
    took, events = found[len(found) // 2]
    return [f"== {title}: {len(found)} requests after {REST_MS} ms, us: "
            + ", ".join(f"{span:.0f}" for span, _ in found),
            f"the median one, {took:.0f} us", *describe(events, names), ""]


def run(build, driver, raw):
    """Traces over TCP and unix:, without and with `awake`; the text goes to `raw`, and to print."""
    options = {"driver": driver, "build": build, "warm_workers": 2}
    program = build / "bench" / "rested_figures"
    for kind, make in {"": lambda: Server(**options),
                       "-awake": lambda: awake_server.PlainServer(**options)}.items():
        with make() as longwire:
            for work in ["launches", "requests"]:
                for way, address in {"tcp": longwire.address,
                                     "unix": f"unix:{longwire.door}"}.items():
                    command = longwire.command(program, work, server=address)
                    try:
                        lines = trace(longwire, command, f"{way}{kind}, {work}")
                    except NoTracing as missing:
                        lines = [str(missing)]
                    print("\n".join(lines), flush=True)
                    raw.write("\n".join(lines) + "\n")
