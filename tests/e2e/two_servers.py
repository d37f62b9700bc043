"""Two servers, a program that is moved between them, and where their daemons can be stopped in a
move between servers (server/daemon/moving/step_point.h)."""
import subprocess
import time

import counted_training
import server

# In the order in which a move comes there: of the server that has the session, and of the other.
HERE = ("offered", "ahead", "held", "written", "prepared", "noted", "ended", "begun")
THERE = ("there-started", "there-ahead", "there-rebuilt", "there-prepared", "there-noted",
         "there-begun")


class Step:
    """The daemon of *longwire* stands still where it comes to this step, until let go."""

    def __init__(self, longwire, step):
        self.wish = longwire.runtime / f"stop-at-{step}"
        self.said = longwire.runtime / f"at-{step}"

    def __enter__(self):
        self.wish.touch()
        return self

    def __exit__(self, *_):
        self.let_go()

    def reached(self, move, seconds=30):
        server.wait_for(lambda: self.said.exists() or move.poll() is not None, seconds, self.said)
        return self.said.exists()

    def let_go(self):
        self.wish.unlink(missing_ok=True)
        self.said.unlink(missing_ok=True)


class TwoServers(counted_training.TrainingCase):
    def begin(self, longwire, session, to):
        move = subprocess.Popen(
            [longwire.dist / "bin" / "longwire", "admin", "migrate", str(session), to],
            env=longwire.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(move.communicate)
        self.addCleanup(move.kill)
        return move

    def migrate(self, longwire, session, to):
        return longwire.cli("admin", "migrate", str(session), str(to), timeout=120)

    def logs(self):
        return "\n".join(one.log_tail(40) for one in self.both)

    def owner(self):
        """The one server that has the program's session now."""
        have = [one for one in self.both if one.status()["sessions"]]
        self.assertEqual(1, len(have), self.logs())
        return have[0]

    def expect_one_owner(self, seconds):
        """At no moment both have a session of the one program."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            have = [one.status()["sessions"] for one in self.both]
            self.assertLessEqual(sum(map(len, have)), 1, (have, self.logs()))

    def notes(self):
        return [note.name for one in self.both for note in one.runtime.glob("warden.moves/*")]

    def is_empty(self):
        """Nothing is left of any session at either server but what forwards a late link."""
        return (all(one.is_unused() for one in self.both) and
                all(len(one.processes().get("longwire-worker", [])) <=
                    one.warm_workers * one.variables["LONGWIRE_SOFTWARE_DEVICES"]
                    for one in self.both))

    def expect_empty(self, seconds=20):
        server.wait_for(self.is_empty, seconds, f"what is left of sessions: {self.logs()}")

    def expect_right(self, program):
        """The program has found every value and every count as it computed them."""
        out, err = program.communicate(timeout=90)
        self.assertEqual(0, program.returncode, (out, err, self.logs()))
        self.assertRegex(out, r"RESULT [0-9a-f]{8} of \d+ steps, \d+ launches")

    def expect_steps(self, program, longwire, seconds=30):
        """The program works: bytes of it arrive at that server."""
        def bytes_up():
            sessions = longwire.status()["sessions"]
            return sessions[0]["bytes_up"] if sessions else 0
        seen = [bytes_up()]
        server.wait_for(lambda: program.poll() is not None or bytes_up() > seen[0] + 4096, seconds,
                        f"steps of the program {self.logs()}")

    def kill(self, longwire, stop=None):
        """Its daemon; the next one does not stop there."""
        daemon = longwire.children.pop("longwired")
        daemon.kill()
        daemon.wait()
        if stop:
            stop.let_go()

    def restart(self, longwire, stop=None):
        self.kill(longwire, stop)
        longwire.start_daemon()
