"""The group moving of tests/gpu/run, for a host with two GPUs: programs and a training with PyTorch
are moved between devices 0 and 1 and to disk and back while they run, and print what they print
unmoved."""
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
TRAININGS = (("torch_moving", ["torch_moving"]),)
# What these say on stderr depends on whether host or device comes first.
SAYS_MORE = ("managed_counts.static",)
SECONDS = 120
PAUSE = re.compile(r"stood still for (\d+) ms")
BLOCKS = 6  # of torch_moving.py


class Moves:
    """Moves the one session of a server, each time by another way."""

    def __init__(self, longwire):
        self.longwire, self.turn, self.said = longwire, 0, []

    def admin(self, *words):
        begun = time.monotonic()
        done = self.longwire.cli("admin", *map(str, words), timeout=SECONDS)
        self.said.append(f"{time.monotonic() - begun:6.2f} s  {(done.out + done.err).strip()}")
        return done.code == 0

    def move(self):
        sessions = self.longwire.status()["sessions"]
        if len(sessions) != 1 or not sessions[0].get("seats"):
            self.said.append("it has ended")
            return False
        session = sessions[0]
        other = 1 - session["seats"][0].get("device", 0)
        self.turn += 1
        if self.turn % 3 != 0:
            return self.admin("migrate", session["id"], other)
        if not self.admin("checkpoint", session["id"], f"turn-{self.turn}"):
            return False
        # What the other device refuses goes on where it was, or its program waits for ever.
        return self.admin("restore", f"turn-{self.turn}", other) or \
            self.admin("restore", f"turn-{self.turn}", 1 - other)


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


def run_training(longwire, label, words, report):
    still, _, wrong = train(longwire, words, None)
    report.keep(label, "unmoved", still)
    moves = Moves(longwire)
    result, moved, also_wrong = train(longwire, words, moves)
    report.keep(label, "moved", result)
    wrong = wrong or also_wrong
    if not wrong and result.out != still.out:
        wrong = "it printed other losses or parameters"
    if not wrong and moved == 0:
        wrong = "it never moved"
    size = re.search(r"^bytes (\d+)$", still.out, re.MULTILINE)
    report.row(f"{label}: {int(size[1]) >> 20 if size else 0} MiB, moved {moved} times of "
               f"{BLOCKS}: {'BAD ' + wrong if wrong else 'the same'}")
    for said in moves.said:
        report.row(f"    {said}")
    return not wrong


def run_program(longwire, name, report):
    command = longwire.command(longwire.program(name))
    alone = server.run(command, longwire.environment(), SECONDS)
    slowed = moving_sweep_test.Slowed(longwire, command)
    moves, moved = Moves(longwire), 0
    while slowed.process.poll() is None and len(moves.said) < 6:
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


def run(build, report, driver="auto"):
    """True if all print what they print unmoved, and the training moved."""
    good, moved = True, 0
    with tempfile.TemporaryDirectory(prefix="longwire-kept-") as folder:
        longwire = server.Server(driver=driver, build=build, software_devices=2,
                                 config=f"checkpoint_dir: {folder}/sessions\n")
        longwire.warden_options = ("--worker-addresses", "fixed")
        with longwire:
            known = {f"{name}.{variant}" for name, variant, _ in programs.list_programs(build)}
            for name in PROGRAMS:
                if name not in known:
                    continue
                right, often = run_program(longwire, name, report)
                good, moved = good and right, moved + often
            for label, words in TRAININGS if driver == "auto" else ():
                good &= run_training(longwire, label, words, report)
            report.row(longwire.log_tail(80))
    report.row(f"moving: programs moved {moved} times; {'right' if good else 'BAD'}")
    return good and moved > 0
