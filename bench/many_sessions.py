"""What sessions cost: a launch with its synchronize while eight do so at once, the memory of
programs and of the link that serves them, and processor time while nobody does anything."""
import contextlib
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

from server import Server
from tenants_beside import figures, say

SESSIONS = 8
LAUNCHES = 5000
# The server makes a warm worker for each that a session took: work on processors and device that
# lasts, for eight, some seconds.
SETTLE_SECONDS = 6
REST_SECONDS = 3  # until memory is given back
IDLE_SECONDS = 20
LARGE_COPY = 64 << 20
LANES = 8  # as many as on 16 processors
MIB = 1024  # of kB
MPS = "nvidia-cuda-mps-control"
# Names of threads that others start in our processes.
THREADS = {"driver's": ("cuda",),
           "gRPC's": ("grpc", "timer_manager", "event_engine", "default-exec", "resolver-exec")}


class Session:
    """A program that does what its lines say (driver_figures session)."""

    def __init__(self, command, environment=None):
        self.process = subprocess.Popen(list(map(str, command)), env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if line != "READY\n":
            raise SystemExit(f"{command} said {line!r} instead of READY")

    def begin(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def figures(self):
        lines = iter(self.process.stdout.readline, "")
        return figures("\n".join(" ".join(line.split()) for line in
                                 iter(lambda: next(lines, "\n"), "\n")))

    def run(self, line):
        self.begin(line)
        return self.figures()

    def end(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def memory(pid):
    """Resident and proportional kB."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()[1:]}
    return sizes["Rss"], sizes["Pss"]


def whose(thread):
    """Libraries name their threads; one without a name of its own counts as ours."""
    return next((who for who, names in THREADS.items() if thread.startswith(names)), "ours")


def threads_of(pids):
    """Of the processes' threads by whose they are: nanoseconds that they ran, how often they woke
    up."""
    found = {}
    for pid in pids:
        for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
            try:
                ran = int((thread / "schedstat").read_text().split()[0])
                status = (thread / "status").read_text()
            except OSError:
                continue  # the thread has ended
            lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
            sums = found.setdefault(whose(lines["Name"].strip()), [0, 0])
            sums[0] += ran
            sums[1] += int(lines["voluntary_ctxt_switches"])
    return found


def latency(open_session, count, out, name):
    """Each launches and waits, all at once; the figures of all."""
    sessions = [open_session() for _ in range(count)]
    time.sleep(SETTLE_SECONDS)
    for session in sessions:
        session.run("launch 200")
    for session in sessions:
        session.begin(f"launch {LAUNCHES}")
    found = [session.figures() for session in sessions]
    p50 = statistics.median(each["launch_synchronize_p50"] for each in found)
    p99 = max(each["launch_synchronize_p99"] for each in found)
    say(out, f"{name:<10} {count:>8} {p50:10.1f} {p99:10.1f}")
    return sessions, p99


@contextlib.contextmanager
def mps():
    """NVIDIA's service through which processes use a device at the same time, not in turns."""
    with tempfile.TemporaryDirectory(prefix="longwire-mps-") as folder:
        variables = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}

        def control(*words, said=None):
            subprocess.run([MPS, *words], env={**os.environ, **variables}, input=said, text=True,
                           capture_output=True, timeout=30, check=True)
        before = Server.everywhere
        control("-d")
        Server.everywhere = {**before, **variables}
        try:
            yield
        finally:
            Server.everywhere = before
            control(said="quit\n")


def say_latencies(kinds, out):
    """Leaves the sessions of the last kind open."""
    for name, open_session in kinds:
        alone, one = latency(open_session, 1, out, name)
        alone[0].end()
        sessions, eight = latency(open_session, SESSIONS, out, name)
        say(out, f"{name}: P99 of {SESSIONS} is {eight / one:.2f} x that of one")
        if name != kinds[-1][0]:
            end_all(sessions)
    return sessions


def end_all(sessions):
    for session in sessions:
        session.end()


def say_memory(longwire, sessions, state, out):
    link = longwire.processes().get("longwire-link", [])
    for what, pids in (("program with shim", [each.process.pid for each in sessions]),
                       ("link, a session", link)):
        if not pids:
            continue
        resident, proportional = (sum(values) / len(sessions) / MIB
                                  for values in zip(*map(memory, pids)))
        say(out, f"{what:<20} {state:<22} {resident:10.1f} {proportional:10.1f}")


def say_idle(longwire, count, out):
    """Of `count` sessions' processes, the programs among them, which inherit the server's
    environment; without sessions whole processes."""
    processes = longwire.processes()
    before = {name: threads_of(pids) for name, pids in processes.items()}
    time.sleep(IDLE_SECONDS)
    for name, pids in processes.items():
        for who, (ran, woken) in threads_of(pids).items():
            ran_before, woken_before = before[name].get(who, (0, 0))
            say(out, f"{name:<20} {who:<10} "
                     f"{(ran - ran_before) / 1e6 / IDLE_SECONDS / max(count, 1):10.3f} "
                     f"{(woken - woken_before) / IDLE_SECONDS / max(count, 1):10.2f}")


def ways(longwire, program, native):
    """How sessions begin, by name."""
    at_the_door = f"unix:{longwire.door}"

    def remote(server=None):
        return Session(longwire.command(program, "session", server=server),
                       longwire.environment(LONGWIRE_TRANSFER_STREAMS=LANES))

    kinds = [("unix", lambda: remote(at_the_door)), ("longwire", remote)]
    if native:
        kinds.insert(0, ("native", lambda: Session([program, "session"],
                                                   {**os.environ, **Server.everywhere})))
    return kinds


def run(build, driver, raw, out):
    program = build / "dist" / "lib" / "longwire" / "bench" / "driver_figures"
    native = subprocess.run([program, "start"], capture_output=True).returncode == 0
    say(out, f"{'launch+sync':<10} {'sessions':>7} {'p50 us':>10} {'p99 us':>10}")
    if native and shutil.which(MPS):
        with mps(), Server(driver, build=build, warm_workers=SESSIONS) as longwire:
            say(out, "under MPS")
            end_all(say_latencies(ways(longwire, program, native), out))
            say(out, "in turns")
    # As many sessions as connect at once from one address.
    with Server(driver, build=build, warm_workers=SESSIONS) as longwire:
        sessions = say_latencies(ways(longwire, program, native), out)
        say(out, f"\n{'memory':<20} {'after':<22} {'rss MiB':>10} {'pss MiB':>10}")
        say_memory(longwire, sessions, "launches", out)
        for session in sessions:
            session.run(f"copy {LARGE_COPY}")
        say_memory(longwire, sessions, "a copy of 64 MiB", out)
        time.sleep(REST_SECONDS)
        say_memory(longwire, sessions, "a rest after it", out)
        say(out, f"\n{SESSIONS} idle sessions, a second and session")
        say(out, f"{'process':<20} {'threads':<10} {'ms':>10} {'wake-ups':>10}")
        say_idle(longwire, len(sessions), out)
        end_all(sessions)
        time.sleep(SETTLE_SECONDS)
        say(out, "\nwithout a session, a second and kind of process")
        say_idle(longwire, 0, out)
