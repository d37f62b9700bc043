"""Each test program that ends by itself, moved at random moments between two devices, and to disk
and back: it prints what it prints unmoved, or its session is refused with a reason that
moving_refused.txt has for it, and goes on where it is.

    moving_sweep_test.py [--long] [NAME...]   some programs; all; or those
"""
import os
import pathlib
import random
import signal
import sys
import tempfile
import threading
import time
import unittest

import programs
import server

LONG = "--long" in sys.argv
NAMED = [word for word in sys.argv[1:] if not word.startswith("-")]
SEED = int(os.environ.get("LONGWIRE_SEED", "0")) or (random.randrange(1 << 30) if LONG else 20)
REFUSED = pathlib.Path(__file__).with_name("moving_refused.txt")
# Every day.
SAMPLE = ("async_allocation", "cluster_blocks", "device_launches", "grow_reservation",
          "graph_nodes", "driver_context_events")
# Of several processes that want one device, which they may not get where there are two. Their
# sessions share memory and do not move (driver_external_memory has that, too).
SEVERAL = ("ipc_memory", "ipc_descriptors")
VARIANTS = ("static", "driver")
TRIES = 3  # moves of a program
SLICE, REST = 0.004, 0.15  # seconds that a slowed program runs, and stands
# What may be said of any session: it ended before or while it was moved, was never quiet, or was at
# something that is over soon. A program may also end while its session is suspended, which ends
# that and removes the file.
PASSING = ("cannot be read: No such file", "the file is void", "there is no session", "busy:",
           "it ended meanwhile", "a worker ended meanwhile", "its new worker ended at the switch",
           "one of its streams is captured just now", "it links code just now")


def reasons():
    """Program → the parts of reasons for which its session may stay where it is."""
    found = {}
    for line in REFUSED.read_text().splitlines():
        name, reason = line.split(": ", 1)
        found.setdefault(name, []).append(reason)
    return found


def candidates():
    every = sorted({(name, variant) for name, variant, kind in
                    programs.list_programs(server.build_folder())
                    if kind == "any" and variant in VARIANTS and name not in SEVERAL})
    names = NAMED or SAMPLE
    return every if LONG and not NAMED else [one for one in every if one[0] in names]


class Slowed:
    """A program that stands most of the time once its session is open, so that a short one is
    moved at its moments, too."""

    def __init__(self, longwire, command):
        self.log = open(longwire.log, "rb")
        self.log.seek(0, os.SEEK_END)
        self.done = False
        self.process = server.start_session(command, longwire.environment())
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _signal(self, number):
        if self.process.poll() is None:
            os.kill(self.process.pid, number)

    def _run(self):
        while self.process.poll() is None and b"opened for " not in self.log.read():
            time.sleep(0.001)
        while self.process.poll() is None and not self.done:
            self._signal(signal.SIGSTOP)
            time.sleep(REST)
            self._signal(signal.SIGCONT)
            time.sleep(SLICE)

    def finish(self):
        self.done = True
        self.thread.join()
        self.log.close()
        return server.finish(self.process, 300)


class MovingSweepTest(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(SEED)
        print(f"LONGWIRE_SEED={SEED}", file=sys.stderr)
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="longwire-kept-"))
        self.longwire = self.enterContext(server.Server(
            software_devices=2, config=f"checkpoint_dir: {folder}/sessions\n"))
        self.turn = 0

    def admin(self, *words):
        return self.longwire.cli("admin", *map(str, words), timeout=120)

    def sessions(self):
        return self.longwire.status()["sessions"]

    def is_unused(self):
        return self.longwire.is_unused()

    def move(self, session):
        """None if it has moved, else why not."""
        here = session["seats"][0].get("device", 0)
        if self.random.random() < 0.5:
            done = self.admin("migrate", session["id"], 1 - here)
            return None if done.code == 0 else done.err
        self.turn += 1
        name = f"turn-{self.turn}"
        done = self.admin("checkpoint", session["id"], name)
        if done.code != 0:
            return done.err
        done = self.admin("restore", name, 1 - here)
        return None if done.code == 0 else done.err

    def run_moved(self, command):
        """(result, how often it moved, why it did not)."""
        slowed = Slowed(self.longwire, command)
        moved, why = 0, []
        while slowed.process.poll() is None and moved + len(why) < TRIES:
            sessions = self.sessions()
            if len(sessions) != 1 or not sessions[0].get("seats"):
                continue
            time.sleep(self.random.random() * 0.1)
            refused = self.move(sessions[0])
            moved += refused is None
            why += [] if refused is None else [refused]
        return slowed.finish(), moved, why

    def test_programs(self):
        known = reasons()
        wrong, moved_at_all = [], []
        for name, variant in candidates():
            command = self.longwire.command(self.longwire.program(f"{name}.{variant}"))
            alone = server.run(command, self.longwire.environment(), 300)
            self.assertIsNone(programs.what_is_wrong(name, alone), (name, alone))
            result, moved, why = self.run_moved(command)
            sentence = programs.what_is_wrong(name, result)
            if sentence is None and result.out != alone.out and name not in VARYING:
                sentence = f"it said {result.out!r} and unmoved {alone.out!r}"
            if sentence:
                wrong.append(f"{name}: moved {moved} times: {sentence}")
            for reason in why:
                if not any(part in reason for part in (*PASSING, *known.get(name, ()))):
                    wrong.append(f"{name}: a reason that {REFUSED.name} has not: {reason}")
            if moved:
                moved_at_all.append(name)
            said = "; ".join(sorted(set(map(short, why)))) + " WRONG" * bool(sentence)
            print(f"{name}.{variant}: moved {moved} times, {len(why)} times not ({said})",
                  file=sys.stderr, flush=True)
            server.wait_for(lambda: not self.sessions(), 20, "the session's end")
        self.assertEqual([], wrong, self.longwire.log_tail())
        server.wait_for(self.is_unused, 20, "the memory of all workers")
        if LONG and not NAMED:
            self.assertGreaterEqual(len(moved_at_all), 30, moved_at_all)
        else:
            self.assertTrue(moved_at_all)


def short(reason):
    return reason.strip().splitlines()[-1].split(": ", 1)[-1]


# These print what no two runs have in common: times, addresses, numbers of processes.
VARYING = ()

if __name__ == "__main__":
    sys.argv[1:] = []
    unittest.main()
