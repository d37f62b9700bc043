"""The group moving of tests/gpu/run, for a host with two GPUs: programs and a training with PyTorch
are moved between devices 0 and 1, between two servers with a device each, and to disk and back
while they run, and print what they print unmoved. Parts, for --only: servers, programs, small, big,
training. Without --only all but the last two: big measures moves of 40 GiB within four minutes
(big_moves.py); training moves a training of 40 GiB, and takes longer than all others."""
import contextlib
import fnmatch
import pathlib
import re
import subprocess
import tempfile
import time

import big_moves
import frameworks
import moving_sweep_test
import programs
import server

PROGRAMS = ("vector_add.static", "device_launches.static", "grow_reservation.static",
            "managed_counts.static", "cluster_blocks.static", "driver_libraries.driver")
# Each with its part, and the ways that it takes, one after the other.
TRAININGS = (("small", "1 GiB", ["torch_moving"], ("device", "device", "disk") * 2),
             ("servers", "1 GiB, two servers", ["torch_moving"], ("server",) * 4),
             ("training", "40 GiB", ["torch_moving", "160"], ("device", "device", "disk")),
             ("training", "40 GiB, two servers", ["torch_moving", "160"], ("server",) * 3))
# What these say on stderr depends on whether host or device comes first.
SAYS_MORE = ("managed_counts.static",)
SECONDS = 120
STILL = re.compile(r"prepared for (\d+) ms and stood still for (\d+) ms")
BLOCKS = 6  # of torch_moving.py


class Moves:
    """Moves the one session of these servers by each of the ways, once each."""

    def __init__(self, servers, ways, folder=None):
        self.servers, self.ways, self.folder = servers, ways, folder
        self.turn, self.said, self.refused = 0, [], False

    def admin(self, longwire, *words):
        begun = time.monotonic()
        leased = sum(device["leased"] for one in self.servers for device in one.status()["devices"])
        done = longwire.cli("admin", *map(str, words), timeout=SECONDS)
        took = time.monotonic() - begun
        still = STILL.search(done.out)
        rate = leased / (int(still[2]) / 1000 if still else took) / 1e9
        self.said.append(f"{took:6.2f} s  {leased >> 20} MiB, {rate:.2f} GB/s"
                         f"{' while it stood still' if still else ''}: "
                         f"{(done.out + done.err).strip()}")
        self.refused |= done.code != 0
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
    if moves.refused:
        for one in servers:
            report.row(one.log_tail(60))
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


def trainings(parts, between_servers):
    return [(label, words, ways) for part, label, words, ways in TRAININGS
            if part in parts and ("server" in ways) == between_servers]


def run_trainings(build, longwire, folder, report, chosen):
    if chosen:
        floors(build, folder, report)
    return all([run_training([longwire], *training, report, folder) for training in chosen])


def run_between_servers(build, report, chosen):
    """A device of each of two servers, which take each other's sessions."""
    good = True
    with contextlib.ExitStack() as stack:
        both = []
        for place in range(2):
            one = server.Server(driver="auto", build=build, devices=[place],
                                config="moves_from: [any]\n")
            one.warden_options = ("--worker-addresses", "fixed")
            both.append(stack.enter_context(one))
        for training in chosen:
            good &= run_training(both, *training, report)
        for one in both:
            report.row(one.log_tail(40))
    return good


def run_programs(build, longwire, folder, report):
    """Whether all are right, and how often they moved."""
    known = {f"{name}.{variant}" for name, variant, _ in programs.list_programs(build)}
    good, moved = True, 0
    for name in PROGRAMS:
        if name in known:
            right, often = run_program(longwire, name, folder, report)
            good, moved = good and right, moved + often
    report.row(f"moving: programs moved {moved} times")
    return good and moved > 0


def run(build, report, driver="auto", only="*"):
    """True if all print what they print unmoved, and moved."""
    known = ["servers", "programs", "small"] + ["big", "training"] * (only != "*")
    parts = {part for part in known
             if any(fnmatch.fnmatch(part, pattern) for pattern in only.split(","))}
    if driver != "auto":
        parts &= {"programs", "big"}
    good = bool(parts)
    if "big" in parts:
        good &= big_moves.run(build, report, driver)
    if not parts - {"big"}:
        return good
    between = trainings(parts, True)
    if between:
        good &= run_between_servers(build, report, between)
    with tempfile.TemporaryDirectory(prefix="longwire-kept-") as folder:
        longwire = server.Server(driver=driver, build=build, software_devices=2,
                                 config=f"checkpoint_dir: {folder}/sessions\n")
        longwire.warden_options = ("--worker-addresses", "fixed")
        with longwire:
            if "programs" in parts:
                good &= run_programs(build, longwire, folder, report)
            good &= run_trainings(build, longwire, folder, report, trainings(parts, False))
            report.row(longwire.log_tail(40))
    report.row(f"moving: {'right' if good else 'BAD'}")
    return good
