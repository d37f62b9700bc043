"""Sessions that move between two devices of a server while their programs run: each computes
everything a second time on the host and counts its kernels on the device."""
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

import counted_training
import server
from two_servers import Step

LONG = "--long" in sys.argv
SEED = int(os.environ.get("LONGWIRE_SEED", "0")) or random.randrange(1 << 30)


class MovingTest(counted_training.TrainingCase):
    def setUp(self):
        self.random = random.Random(SEED)
        print(f"LONGWIRE_SEED={SEED}", file=sys.stderr)

    def serve(self, **options):
        return self.enterContext(server.Server(software_devices=2, **options))

    def migrate(self, longwire, session, device):
        return longwire.cli("admin", "migrate", str(session), str(device))

    def expect_right(self, longwire, program):
        """The program has found every value and every count as it computed them."""
        out, err = program.communicate(timeout=60)
        self.assertEqual(0, program.returncode, (out, err, longwire.log_tail()))
        self.assertRegex(out, r"RESULT [0-9a-f]{8} of \d+ steps, \d+ launches")
        server.wait_for(longwire.is_unused, 10, "the memory of both workers")

    def test_there_and_back_at_random_moments(self):
        longwire = self.serve()
        program = self.start(longwire)
        for _ in range(30 if LONG else 6):
            time.sleep(self.random.random() * 0.5)
            session = self.session(longwire)
            here = session["seats"][0].get("device", 0)
            moved = self.migrate(longwire, session["id"], 1 - here)
            self.assertEqual(0, moved.code, (moved, longwire.log_tail()))
            now = self.session(longwire)
            self.assertEqual(1 - here, now["seats"][0].get("device", 0))
            self.assertNotEqual(session["worker_pid"], now["worker_pid"])
            self.assertFalse(server.is_alive(session["worker_pid"]))
        time.sleep(0.3)
        self.expect_right(longwire, program)

    def test_what_cannot_move_goes_on(self):
        longwire = self.serve()
        program = self.start(longwire)
        session = self.session(longwire)
        here = session["seats"][0].get("device", 0)
        for device, reason in ((here, f"it is on device {here} already"),
                               (7, "the server has no device 7")):
            began = time.monotonic()
            refused = self.migrate(longwire, session["id"], device)
            self.assertEqual(1, refused.code)
            self.assertIn(reason, refused.err)
            self.assertLess(time.monotonic() - began, 10)
        self.assertIn("there is no session 5", self.migrate(longwire, 5, 0).err)
        self.assertEqual(session["worker_pid"], self.session(longwire)["worker_pid"])
        self.expect_right(longwire, program)

    def test_a_device_that_is_drained_meanwhile(self):
        """Who drains it does not see the session yet, so it does not come there."""
        longwire = self.serve()
        program = self.start(longwire)
        session = self.session(longwire)
        here = session["seats"][0].get("device", 0)
        with Step(longwire, "ahead") as stop:
            move = subprocess.Popen(
                [longwire.dist / "bin" / "longwire", "admin", "migrate", str(session["id"]),
                 str(1 - here)], env=longwire.environment(), stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True)
            self.addCleanup(move.kill)
            self.assertTrue(stop.reached(move), longwire.log_tail())
            drained = longwire.cli("admin", "drain", str(1 - here))
            self.assertEqual(0, drained.code, drained)
        _, err = move.communicate(timeout=60)
        self.assertEqual(1, move.returncode, err)
        self.assertIn(f"device {1 - here} is drained since the move began", err)
        self.assertEqual(here, self.session(longwire)["seats"][0].get("device", 0))
        self.assertIn(f"device {1 - here} is cordoned; longwire admin uncordon {1 - here}",
                      self.migrate(longwire, session["id"], 1 - here).err)
        self.assertEqual(0, longwire.cli("admin", "uncordon", str(1 - here)).code)
        self.assertEqual(0, self.migrate(longwire, session["id"], 1 - here).code)
        self.expect_right(longwire, program)

    def test_a_local_program_is_refused(self):
        longwire = self.serve()
        program = self.start(longwire, server=f"unix:{longwire.door}")
        session = self.session(longwire)
        refused = self.migrate(longwire, session["id"], 1 - session["seats"][0].get("device", 0))
        self.assertEqual(1, refused.code)
        self.assertIn("uses the worker's rings itself", refused.err)
        self.expect_right(longwire, program)

    def test_a_device_with_ten_sessions_is_drained(self):
        """All go on on the other device, and the first one is empty."""
        longwire = self.serve(config="placement: pack\n")
        programs = [self.start(longwire) for _ in range(10)]

        def on(device):
            return [one for one in longwire.status()["sessions"]
                    if one["seats"][0].get("device", 0) == device]
        here = on(1) == []  # packed: all are on one
        device = 0 if here else 1
        self.assertEqual(10, len(on(device)))
        drained = longwire.cli("admin", "drain", str(device), timeout=120)
        self.assertEqual(0, drained.code, (drained, longwire.log_tail()))
        self.assertEqual(10, drained.out.count("has moved to device"), drained.out)
        self.assertEqual(([], 10), (on(device), len(on(1 - device))))
        empty = {one.get("ordinal", 0): one["leased"] for one in longwire.status()["devices"]}
        server.wait_for(lambda: not {one.get("ordinal", 0): one["leased"] for one in
                                     longwire.status()["devices"]}[device], 10,
                        f"the memory of device {device}: {empty}")
        for program in programs:
            out, err = program.communicate(timeout=60)
            self.assertEqual(0, program.returncode, (out, err, longwire.log_tail()))
            self.assertRegex(out, r"RESULT [0-9a-f]{8} of \d+ steps, \d+ launches")
        longwire.cli("admin", "drain", str(device), "--off")
        server.wait_for(longwire.is_unused, 10, "the memory of all workers")

    def test_a_daemon_that_is_killed_meanwhile(self):
        """The session goes on in one of the two workers, also where the client knows it by a number
        that it had before; killed between the end of one and the beginning of the other, it ends
        with an error."""
        for _ in range(10 if LONG else 2):
            with server.Server(software_devices=2, warm_workers=0) as longwire:
                program = self.start(longwire)
                session = self.session(longwire)
                here = session["seats"][0].get("device", 0)
                self.assertEqual(0, self.migrate(longwire, session["id"], 1 - here).code)
                move = self.begin(longwire, self.session(longwire)["id"], here)
                time.sleep(self.random.random())
                daemon = longwire.children.pop("longwired")
                daemon.kill()
                daemon.wait()
                longwire.start_daemon()
                move.communicate(timeout=60)
                time.sleep(0.3)
                out, err = program.communicate(timeout=60)
                if program.returncode != 3:
                    self.assertEqual(0, program.returncode, (out, err, longwire.log_tail()))
                    self.assertIn("PASS counted_training", out)
                server.wait_for(longwire.is_unused, 10, "the memory of both workers")

    def begin(self, longwire, session, device):
        return subprocess.Popen(
            [longwire.dist / "bin" / "longwire", "admin", "migrate", str(session), str(device)],
            env=longwire.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def slow(self, pid, move):
        """Lets the process run for a moment now and then, until the move has ended."""
        while move.poll() is None:
            for number, rest in ((signal.SIGSTOP, 0.7), (signal.SIGCONT, 0.001)):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    return
                time.sleep(rest)
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def move_slowly(self, longwire, said):
        """How long the session stood still; *said*: what status said of it."""
        session = self.session(longwire)
        move = self.begin(longwire, session["id"], 1 - session["seats"][0].get("device", 0))
        new = None
        while new is None:
            new = next((pid for pid in longwire.processes().get("longwire-worker", [])
                        if pid != session["worker_pid"]), None)
        slowing = threading.Thread(target=self.slow, args=(new, move))
        slowing.start()
        while move.poll() is None:
            listed = longwire.cli("status")
            said |= set(re.findall(r"(runs on|stands still) while", listed.out))
            if move.poll() is None:
                self.assertIn("there is no session 5", longwire.cli("admin", "kill", "5").err)
        slowing.join()
        out, err = move.communicate()
        self.assertEqual(0, move.returncode, (err, longwire.log_tail()))
        return int(re.search(r"stood still for (\d+) ms", out)[1])

    def test_a_move_that_takes_longer_than_the_grace(self):
        """Its client waits, and other commands are answered meanwhile."""
        longwire = self.serve(warm_workers=0, config="resume_grace: 1s\n")
        program = self.start(longwire)
        said = set()
        # How much a slowed worker does in its moments is chance.
        longest = 0
        for _ in range(6):
            longest = max(longest, self.move_slowly(longwire, said))
            if longest > 1200:
                break
        self.assertGreater(longest, 1200)
        # How soon the first status is answered is chance, too: it may stand still by then.
        self.assertIn("stands still", said)
        time.sleep(0.3)
        self.expect_right(longwire, program)

    def stop_at_the_switch(self, longwire):
        """A move whose new worker waits for the end of the old one, which is stopped and killed for
        that after 5 s; and the new worker."""
        for _ in range(20):
            session = self.session(longwire)
            old = session["worker_pid"]
            with Step(longwire, "ahead") as stop:
                move = self.begin(longwire, session["id"],
                                  1 - session["seats"][0].get("device", 0))
                self.assertTrue(stop.reached(move), longwire.log_tail())
                [new] = [pid for pid in longwire.processes()["longwire-worker"] if pid != old]
                os.kill(new, signal.SIGSTOP)
            server.wait_for(lambda: "stands still" in longwire.cli("status").out, 20, "the hold")
            time.sleep(0.5)  # the old one writes what it has, which is little
            os.kill(old, signal.SIGSTOP)
            os.kill(new, signal.SIGCONT)
            server.wait_for(lambda number=session["id"]: self.session(longwire)["id"] != number, 5,
                            "the switch")
            if server.is_alive(old):
                return move, new
            _, err = move.communicate(timeout=60)
            self.assertEqual((0, ""), (move.returncode, err), longwire.log_tail())
        self.fail("each move was faster than the test")

    def small(self, longwire):
        """A program whose state goes into a socket at once."""
        program = subprocess.Popen(
            longwire.command(sys.executable, str(pathlib.Path(__file__).with_name(
                "memory_client.py"))), env=longwire.environment(PYTHONDONTWRITEBYTECODE=1),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        self.assertEqual("READY\n", server.next_line(program), longwire.log_tail())
        return program

    def test_a_program_that_ends_at_the_switch(self):
        """Between the old worker's end and the new one's beginning: nothing has failed."""
        longwire = self.serve(warm_workers=0)
        found = None
        # A slow host may be at the switch no more when the program has ended.
        for _ in range(10):
            program = self.small(longwire)
            move, _ = self.stop_at_the_switch(longwire)
            out, err = program.communicate(timeout=60)
            self.assertEqual((0, "", ""), (program.returncode, out, err))
            out, err = move.communicate(timeout=60)
            self.assertEqual((0, ""), (move.returncode, err), longwire.log_tail())
            self.assertNotIn("does not move", longwire.log.read_text())
            server.wait_for(longwire.is_unused, 10, "the memory of both workers")
            found = re.search(r"session \d+ has ended as it moved to device \d: its program was at "
                              "its end", out)
            if found:
                break
        self.assertIsNotNone(found, out)

    def test_a_worker_that_ends_at_the_switch(self):
        """That is an error, of the program too."""
        longwire = self.serve(warm_workers=0)
        self.small(longwire)
        move, new = self.stop_at_the_switch(longwire)
        os.kill(new, signal.SIGKILL)
        _, err = move.communicate(timeout=60)
        self.assertEqual(1, move.returncode)
        self.assertIn("its new worker ended at the switch: ", err)
        server.wait_for(longwire.is_unused, 10, "the memory of both workers")

    def test_a_worker_that_is_killed_meanwhile(self):
        """A new worker that dies changes nothing; without its old one the session ends."""
        longwire = self.serve(warm_workers=0)
        program = self.start(longwire)
        for _ in range(6 if LONG else 3):
            session = self.session(longwire)
            device = 1 - session["seats"][0].get("device", 0)
            move = self.begin(longwire, session["id"], device)
            old = session["worker_pid"]
            victim = None
            while victim is None:
                workers = longwire.processes().get("longwire-worker", [])
                victim = next((pid for pid in workers if pid != old), None)
            time.sleep(self.random.random() * 0.1)
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass
            _, err = move.communicate(timeout=60)
            if not longwire.status()["sessions"]:
                break
            now = self.session(longwire)["worker_pid"]
            self.assertNotEqual(victim, now)
            if move.returncode != 0:
                self.assertEqual(old, now, err)
        # Killed after the switch it was the session's only worker: then it is an error, and never a
        # wrong value.
        out, _ = program.communicate(timeout=60)
        self.assertIn(program.returncode, (0, 3), out)
        self.assertIn("ERROR" if program.returncode == 3 else "PASS counted_training", out)
        server.wait_for(longwire.is_unused, 10, "the memory of both workers")


if __name__ == "__main__":
    if LONG:
        sys.argv.remove("--long")
    unittest.main()
