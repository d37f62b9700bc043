"""The group moving of tests/gpu/run, for a host with two GPUs: programs and a training with PyTorch
are moved between devices 0 and 1 and to disk and back while they run, and print what they print
unmoved."""
import contextlib
import pathlib
import re
import subprocess
import tempfile
import time

import frameworks
import moving_sweep_test
import programs
import server

PROGRAMS = ("vector_add.static", "device_launches.static", "grow_reservation.static",
            "managed_counts.static", "cluster_blocks.static", "driver_libraries.driver")
# Each with the ways that it takes, one after the other.
TRAININGS = (("1 GiB", ["torch_moving"], ("device", "device", "disk") * 2),
             ("1 GiB, two servers", ["torch_moving"], ("server",) * 4),
             ("40 GiB", ["torch_moving", "160"], ("device", "device", "disk")),
             ("40 GiB, two servers", ["torch_moving", "160"], ("server",) * 2))
# What these say on stderr depends on whether host or device comes first.
SAYS_MORE = ("managed_counts.static",)
SECONDS = 120
PAUSE = re.compile(r"stood still for (\d+) ms")
BLOCKS = 6  # of torch_moving.py


class Moves:
    """Moves the one session of these servers by each of the ways, once each."""

    def __init__(self, servers, ways, folder=None):
        self.servers, self.ways, self.folder = servers, ways, folder
        self.turn, self.said = 0, []

    def admin(self, longwire, *words):
        begun = time.monotonic()
        done = longwire.cli("admin", *map(str, words), timeout=SECONDS)
        self.said.append(f"{time.monotonic() - begun:6.2f} s  {(done.out + done.err).strip()}")
        return done.code == 0

    def move(self):
        if self.turn == len(self.ways):
            return False
        have = [(one, session) for one in self.servers for session in one.status()["sessions"]]
        if len(have) != 1 or not have[0][1].get("seats"):
            self.said.append("it has ended")
            return False
        longwire, session = have[0]
        other = 1 - session["seats"][0].get("device", 0)
        way = self.ways[self.turn]
        self.turn += 1
        if way == "server":
            there = next(one for one in self.servers if one is not longwire)
            return self.admin(longwire, "migrate", session["id"], there.address)
        if way == "device":
            return self.admin(longwire, "migrate", session["id"], other)
        if not self.admin(longwire, "checkpoint", session["id"], f"turn-{self.turn}"):
            return False
        # What the other device refuses goes on where it was, or its program waits for ever.
        restored = self.admin(longwire, "restore", f"turn-{self.turn}", other) or \
            self.admin(longwire, "restore", f"turn-{self.turn}", 1 - other)
        pathlib.Path(self.folder, "sessions", f"turn-{self.turn}").unlink(missing_ok=True)
        return restored


def train(longwire, words, moves):
    """(what it printed, how often it moved, why it is wrong)."""
    script = frameworks.FOLDER / f"{words[0]}.py"
    process = subprocess.Popen(
        longwire.command("python3", script, "stdin", *words[1:]),
        env=longwire.environment(CUBLAS_WORKSPACE_CONFIG=":4096:8", LONGWIRE_TRACE="summary",
                                 PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    moved, out = 0, ""
    for block in range(BLOCKS):
        line = server.next_line(process)
        while line and not line.startswith("READY"):
            out += line
            line = server.next_line(process)
        if not line:
            break
        # Once while it waits, once in the midst of its steps.
        if moves and block % 2 == 0:
            moved += moves.move()
        process.stdin.write("\n")
        process.stdin.flush()
        if moves and block % 2 == 1:
            time.sleep(0.1)
            moved += moves.move()
    try:
        rest, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        rest, err = process.communicate()
    result = server.Result(process.returncode, out + rest, err, 0.0)
    wrong = None if process.returncode == 0 and "PASS" in rest else \
        f"exit code {process.returncode}: {(rest + err).strip()[-600:]}"
    return result, moved, wrong


def run_training(servers, label, words, ways, report, folder=None):
    longwire = servers[0]
    still, _, wrong = train(longwire, words, None)
    report.keep(label, "unmoved", still)
    moves = Moves(servers, ways, folder)
    result, moved, also_wrong = train(longwire, words, moves)
    report.keep(label, "moved", result)
    wrong = wrong or also_wrong
    if not wrong and result.out != still.out:
        wrong = "it printed other losses or parameters"
    if not wrong and moved == 0:
        wrong = "it never moved"
    size = re.search(r"^bytes (\d+)$", still.out, re.MULTILINE)
    report.row(f"{label}: {int(size[1]) >> 20 if size else 0} MiB, moved {moved} times of "
               f"{len(ways)}: {'BAD ' + wrong if wrong else 'the same'}")
    for said in moves.said:
        report.row(f"    {said}")
    return not wrong


def run_program(longwire, name, folder, report):
    command = longwire.command(longwire.program(name))
    alone = server.run(command, longwire.environment(), SECONDS)
    slowed = moving_sweep_test.Slowed(longwire, command)
    moves, moved = Moves([longwire], ("device", "device", "disk") * 2, folder), 0
    while slowed.process.poll() is None and moves.turn < len(moves.ways):
        if longwire.status()["sessions"]:
            moved += moves.move()
    result = slowed.finish()
    if name in SAYS_MORE:
        result = result._replace(err="")
    wrong = programs.what_is_wrong(name.rpartition(".")[0], result)
    if not wrong and result.out != alone.out:
        wrong = f"it said {result.out!r} and unmoved {alone.out!r}"
    report.row(f"{name}: moved {moved} times: {'BAD ' + wrong if wrong else 'the same'}")
    for said in moves.said:
        report.row(f"    {said}")
    server.wait_for(lambda: not longwire.status()["sessions"], 20, "the session's end")
    return not wrong, moved


def floors(build, folder, report):
    """What PCIe, one connection and the disk of this host do, in the same run."""
    shown = re.compile(r"^(?:\w+_256MiB|tcp_one_connection)\s.*$", re.MULTILINE)
    for words in (["dist/lib/longwire/bench/driver_figures", "copies"], ["bench/raw_tcp"]):
        done = subprocess.run([build / words[0], *words[1:]], capture_output=True, text=True,
                              check=False)
        for line in shown.findall(done.stdout):
            report.row(f"    floor: {line}")
    for label, words in (("write", ["if=/dev/urandom", f"of={folder}/floor", "conv=fsync"]),
                         ("write again", ["if=" + f"{folder}/floor", f"of={folder}/floor2",
                                          "conv=fsync"])):
        done = subprocess.run(["dd", "bs=8M", "count=128", *words], capture_output=True, text=True,
                              check=False)
        report.row(f"    floor: {label}: {done.stderr.strip().splitlines()[-1]}")
    for name in ("floor", "floor2"):
        (pathlib.Path(folder) / name).unlink(missing_ok=True)


def run_trainings(build, longwire, folder, report):
    floors(build, folder, report)
    good = True
    for label, words, ways in TRAININGS:
        if "server" not in ways:
            good &= run_training([longwire], label, words, ways, report, folder)
    return good


def run_between_servers(build, report):
    """A device of each of two servers, which take each other's sessions."""
    good = True
    with contextlib.ExitStack() as stack:
        both = []
        for place in range(2):
            one = server.Server(driver="auto", build=build,
                                config=f"devices: [{{device: {place}}}]\nmoves_from: [any]\n")
            one.warden_options = ("--worker-addresses", "fixed")
            both.append(stack.enter_context(one))
        for label, words, ways in TRAININGS:
            if "server" in ways:
                good &= run_training(both, label, words, ways, report)
        for one in both:
            report.row(one.log_tail(40))
    return good


def run(build, report, driver="auto"):
    """True if all print what they print unmoved, and the training moved."""
    good, moved = driver != "auto" or run_between_servers(build, report), 0
    with tempfile.TemporaryDirectory(prefix="longwire-kept-") as folder:
        longwire = server.Server(driver=driver, build=build, software_devices=2,
                                 config=f"checkpoint_dir: {folder}/sessions\n")
        longwire.warden_options = ("--worker-addresses", "fixed")
        with longwire:
            known = {f"{name}.{variant}" for name, variant, _ in programs.list_programs(build)}
            for name in PROGRAMS:
                if name not in known:
                    continue
                right, often = run_program(longwire, name, folder, report)
                good, moved = good and right, moved + often
            if driver == "auto":
                good &= run_trainings(build, longwire, folder, report)
            report.row(longwire.log_tail(40))
    report.row(f"moving: programs moved {moved} times; {'right' if good else 'BAD'}")
    return good and moved > 0
