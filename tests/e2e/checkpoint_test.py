"""Sessions that are suspended into a file and go on from it: their programs compute everything a
second time on the host and count their kernels on the device."""
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import unittest

import checkpoint_files
import counted_training
import server

LONG = "--long" in sys.argv
SEED = int(os.environ.get("LONGWIRE_SEED", "0")) or random.randrange(1 << 30)
KEY = "5f" * 32


class CheckpointTest(counted_training.TrainingCase):
    def setUp(self):
        self.random = random.Random(SEED)
        print(f"LONGWIRE_SEED={SEED}", file=sys.stderr)

    def serve(self, text="", **options):
        return checkpoint_files.serve(self, text, **options)

    def suspend(self, longwire, name, session=None):
        number = session or self.session(longwire)["id"]
        return longwire.cli("admin", "checkpoint", str(number), name)

    def suspended(self, longwire, name):
        done = self.suspend(longwire, name)
        self.assertEqual(0, done.code, (done, longwire.log_tail()))
        return longwire.kept / name

    def restore(self, longwire, name, *device):
        return longwire.cli("admin", "restore", name, *map(str, device))

    def restored(self, longwire, name, *device):
        done = self.restore(longwire, name, *device)
        self.assertEqual(0, done.code, (done, longwire.log_tail()))

    def refused(self, result, *reasons):
        self.assertEqual(1, result.code, result)
        for reason in reasons:
            self.assertIn(reason, result.err)

    def expect_right(self, longwire, program):
        """The program has found every value and every count as it computed them."""
        out, err = program.communicate(timeout=60)
        self.assertEqual(0, program.returncode, (out, err, longwire.log_tail()))
        self.assertRegex(out, r"RESULT [0-9a-f]{8} of \d+ steps, \d+ launches")
        server.wait_for(longwire.is_unused, 10, "the memory of all workers")
        self.assertEqual([], longwire.status().get("suspended", []))

    def test_to_disk_and_back_at_random_moments(self):
        longwire = self.serve()
        program = self.start(longwire)
        for turn in range(20 if LONG else 2):
            time.sleep(self.random.random() * 0.5)
            before = self.session(longwire)
            file = self.suspended(longwire, f"turn-{turn}")
            self.assertFalse(server.is_alive(before["worker_pid"]))
            server.wait_for(longwire.is_unused, 10, "the device's memory")
            (waits,) = longwire.status()["suspended"]
            self.assertEqual((before["id"], file.name, file.stat().st_size),
                             (waits["id"], waits["file"], waits["bytes"]))
            self.assertIn("suspended in", longwire.cli("status", "--server", longwire.address).out)
            self.assertEqual(0o600, stat.S_IMODE(file.stat().st_mode))
            self.assertIsNone(program.poll())
            device = self.random.choice(([], [0], [1]))
            self.restored(longwire, file.name, *device)
            self.assertFalse(file.exists())
            now = self.session(longwire)
            self.assertNotEqual(before["id"], now["id"])
            if device:
                self.assertEqual(device[0], now["seats"][0].get("device", 0))
        time.sleep(1)
        self.expect_right(longwire, program)

    def test_all_servers_processes_end_meanwhile(self):
        """As at a reboot: longwired, longwire-warden, keepers and workers are new."""
        longwire = self.serve()
        program = self.start(longwire)
        file = self.suspended(longwire, "reboot")
        for name in ("longwired", "longwire-warden"):
            child = longwire.children.pop(name)
            child.kill()
            child.wait()
        for name in ("longwire-keeper", "longwire-worker"):
            server.wait_for(lambda name=name: name not in longwire.processes(), 20, name)
        time.sleep(0.5)
        longwire.start_warden()
        longwire.start_daemon()
        self.assertEqual("reboot", longwire.status()["suspended"][0]["file"])
        self.restored(longwire, file.name)
        time.sleep(0.5)
        self.expect_right(longwire, program)

    def test_of_two_restores_one_wins_and_a_copy_is_void(self):
        longwire = self.serve()
        program = self.start(longwire)
        file = self.suspended(longwire, "one")
        shutil.copy(file, file.parent / "copy")
        results = []
        both = [threading.Thread(target=lambda name=name: results.append(
            self.restore(longwire, name))) for name in ("one", "copy")]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        self.assertEqual([0, 1], sorted(result.code for result in results), results)
        self.refused(self.restore(longwire, "copy"), "void")
        self.assertEqual(1, len(longwire.status()["sessions"]))
        self.expect_right(longwire, program)

    def test_a_damaged_file_is_refused_and_an_intact_one_restored(self):
        longwire = self.serve()
        program = self.start(longwire)
        file = self.suspended(longwire, "one")
        good = file.read_bytes()
        places = [0, len(good) - 1, self.random.randrange(len(good))]
        for place in places:
            file.write_bytes(good[:place] + bytes([good[place] ^ 4]) + good[place + 1:])
            self.refused(self.restore(longwire, "one"), "one is not restored")
        for end in (10, len(good) // 2):
            file.write_bytes(good[:end])
            self.refused(self.restore(longwire, "one"), "one is not restored")
        file.unlink()
        self.refused(self.restore(longwire, "one"), "No such file")
        self.assertEqual([], longwire.status()["sessions"])
        file.write_bytes(good)
        self.restored(longwire, "one")
        self.expect_right(longwire, program)

    def plant(self, longwire, file, place):
        """Flips a bit there, with digests that are right; returns what takes it back."""
        ticket = next((file.parent / ".suspended").iterdir())
        before = [(one, one.read_bytes()) for one in (file, ticket)]

        def put(contents):
            for one, content in contents:
                one.write_bytes(content)
            longwire.end_daemon()
            longwire.start_daemon()
        planted, digest = checkpoint_files.flip(before[0][1], place)
        put([(file, planted),
             (ticket, checkpoint_files.ticket_for(before[1][1], before[0][1], digest))])
        return lambda: put(before)

    def test_each_planted_answer_is_found(self):
        """One bit of one answer that the session got is another one in the file, whose digests are
        right: as if the new worker's driver answered otherwise. The device is not told apart by its
        number, so any device's answers are compared."""
        longwire = self.serve()
        program = self.start(longwire)
        file = self.suspended(longwire, "one")
        answers = checkpoint_files.answers(file.read_bytes())
        self.assertGreater(len(answers), 3)
        for place in self.random.sample(answers, min(len(answers), 30 if LONG else 2)):
            take_back = self.plant(longwire, file, place)
            self.refused(self.restore(longwire, "one"), "cannot be rebuilt",
                         "answers otherwise there")
            take_back()
        self.restored(longwire, "one")
        self.expect_right(longwire, program)

    def test_a_comparison_that_is_off_is_seen(self):
        """What the test before this one looks for is not found where nothing compares."""
        longwire = self.serve(variables=[("LONGWIRE_DISABLE", "moved_answers")])
        self.start(longwire)
        file = self.suspended(longwire, "one")
        self.plant(longwire, file, checkpoint_files.answers(file.read_bytes())[0])
        self.restored(longwire, "one")

    def test_encrypted(self):
        longwire = self.serve()
        key = longwire.kept.parent / "key"
        key.write_text(KEY + "\n")
        key.chmod(0o600)
        program = self.start(longwire)
        plain = self.suspended(longwire, "plain").read_bytes()
        self.assertTrue(b"counted_training" in plain)  # the program's name
        self.restored(longwire, "plain")

        def keep(text):
            longwire.config_file.write_text(longwire.config + text)
            self.assertEqual(0, longwire.cli("admin", "reload").code, longwire.log_tail())
        keep(f"checkpoint_key: {key}\n")
        sealed = self.suspended(longwire, "sealed").read_bytes()
        self.assertFalse(b"counted_training" in sealed)
        keep("")
        self.refused(self.restore(longwire, "sealed"), "encrypted", "checkpoint_key")
        keep(f"checkpoint_key: {key}\n")
        key.write_text("6f" * 32)
        self.refused(self.restore(longwire, "sealed"), "another key")
        key.write_text("too short")
        self.refused(self.restore(longwire, "sealed"), "64 hexadecimal digits")
        key.write_text(KEY)
        self.restored(longwire, "sealed")
        self.expect_right(longwire, program)

    def test_what_cannot_be_written_lets_the_session_go_on(self):
        longwire = self.serve()
        program = self.start(longwire)
        before = self.session(longwire)
        longwire.kept.mkdir(mode=0o700, exist_ok=True)
        (longwire.kept / "there").write_text("precious")
        for name, reason in (("../up", "no name for a file"), ("/tmp/x", "no name for a file"),
                             ("there", "is there already")):
            self.refused(self.suspend(longwire, name), reason)
        self.assertEqual("precious", (longwire.kept / "there").read_text())
        self.refused(self.suspend(longwire, "x", 5), "there is no session 5")
        # A disk that is full: longwired may write no file of more than 1 MiB.
        daemon, what = longwire.children["longwired"].pid, resource.RLIMIT_FSIZE
        before_limit = resource.prlimit(daemon, what)
        resource.prlimit(daemon, what, (1 << 20, before_limit[1]))
        self.refused(self.suspend(longwire, "full"), "cannot be written")
        resource.prlimit(daemon, what, before_limit)
        self.assertEqual(["there"], [one.name for one in longwire.kept.iterdir()
                                     if one.name != ".suspended"])
        self.assertEqual(before["worker_pid"], self.session(longwire)["worker_pid"])
        self.expect_right(longwire, program)

    def test_time_that_is_over(self):
        longwire = self.serve("checkpoint_grace: 2s\n")
        program = self.start(longwire)
        file = self.suspended(longwire, "one")
        _, err = program.communicate(timeout=60)
        self.assertEqual(3, program.returncode)
        self.assertIn("nobody restored it in time (checkpoint_grace)", err)
        self.assertFalse(file.exists())
        self.refused(self.restore(longwire, "one"), "No such file")

    def test_ended_while_it_is_suspended(self):
        """By its administrator, and by its program's end."""
        longwire = self.serve()
        program = self.start(longwire)
        session = self.session(longwire)["id"]
        file = self.suspended(longwire, "one")
        self.assertEqual(0, longwire.cli("admin", "kill", str(session)).code)
        self.assertFalse(file.exists())
        _, err = program.communicate(timeout=60)
        self.assertEqual(3, program.returncode)
        self.assertIn("administrator ended this session", err)
        program = self.start(longwire)
        file = self.suspended(longwire, "two")
        time.sleep(1)  # its link has heard that it waits
        program.kill()
        server.wait_for(lambda: not file.exists(), 20, "the end of the file")
        self.assertEqual([], longwire.status().get("suspended", []))

    def test_without_a_folder_nothing_is_suspended(self):
        with server.Server(software_devices=2) as longwire:
            program = self.start(longwire)
            self.refused(self.suspend(longwire, "one"), "checkpoint_dir")
            self.refused(self.restore(longwire, "one"), "checkpoint_dir")
            self.expect_right(longwire, program)

    def test_a_daemon_that_is_killed_at_each_step(self):
        """The session runs in its worker or is suspended, never both and never neither."""
        longwire = self.serve(warm_workers=0)
        program = self.start(longwire)
        outcomes = []
        begin = time.monotonic()
        self.suspended(longwire, "first")
        middle = time.monotonic()
        self.restored(longwire, "first")
        spans = {"checkpoint": middle - begin, "restore": time.monotonic() - middle}
        for turn in range(40 if LONG else 4):
            waiting = longwire.status().get("suspended", [])
            words = (["restore", waiting[0]["file"]] if waiting else
                     ["checkpoint", str(self.session(longwire)["id"]), f"turn-{turn}"])
            command = subprocess.Popen([longwire.dist / "bin" / "longwire", "admin", *words],
                                       env=longwire.environment(), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            time.sleep((0.2 + self.random.random()) * spans[words[0]])
            daemon = longwire.children.pop("longwired")
            daemon.send_signal(signal.SIGKILL)
            daemon.wait()
            longwire.start_daemon()
            command.communicate(timeout=60)
            now = longwire.status()
            waits = now.get("suspended", [])
            self.assertEqual(1, len(now["sessions"]) + len(waits), (now, longwire.log_tail()))
            outcomes.append((words[0], "suspended" if waits else "runs"))
            self.assertIsNone(program.poll(), outcomes)
        for one in longwire.status().get("suspended", []):
            self.restored(longwire, one["file"])
        time.sleep(0.5)
        self.expect_right(longwire, program)
        print(outcomes, file=sys.stderr)

    def test_a_new_worker_that_is_killed_at_a_restore(self):
        """The session stays suspended, until its ticket is gone: then it ends with an error."""
        longwire = self.serve(warm_workers=0)
        program = self.start(longwire)
        self.suspended(longwire, "one")
        begin = time.monotonic()
        self.restored(longwire, "one")
        span = time.monotonic() - begin
        for turn in range(20 if LONG else 3):
            name = f"turn-{turn}"
            self.suspended(longwire, name)
            server.wait_for(lambda: "longwire-worker" not in longwire.processes(), 20, "no worker")
            command = subprocess.Popen(
                [longwire.dist / "bin" / "longwire", "admin", "restore", name],
                env=longwire.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True)
            server.wait_for(lambda: longwire.processes().get("longwire-worker"), 20, "a worker")
            (victim,) = longwire.processes()["longwire-worker"]
            time.sleep(self.random.random() * span)
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass
            command.communicate(timeout=60)
            now = longwire.status()
            if now.get("suspended"):
                self.assertEqual([], now["sessions"])
                self.assertIsNone(program.poll())
                self.restored(longwire, name)
                continue
            break  # it was the session's only worker
        out, _ = program.communicate(timeout=60)
        self.assertIn(program.returncode, (0, 3), out)
        self.assertIn("ERROR" if program.returncode == 3 else "PASS counted_training", out)
        server.wait_for(longwire.is_unused, 10, "the memory of all workers")

    def test_an_old_worker_that_is_killed_while_it_is_suspended(self):
        """It ends with an error, or it is suspended and goes on with the right values."""
        for _ in range(10 if LONG else 2):
            longwire = self.serve(warm_workers=0)
            program = self.start(longwire)
            session = self.session(longwire)
            command = subprocess.Popen(
                [longwire.dist / "bin" / "longwire", "admin", "checkpoint", str(session["id"]),
                 "one"], env=longwire.environment(), stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True)
            time.sleep(self.random.random() * 0.5)
            try:
                os.kill(session["worker_pid"], signal.SIGKILL)
            except ProcessLookupError:
                pass
            command.communicate(timeout=60)
            suspended = longwire.status().get("suspended", [])
            self.assertEqual(command.returncode == 0, bool(suspended), longwire.log_tail())
            if suspended:
                self.restored(longwire, "one")
                self.expect_right(longwire, program)
                continue
            out, _ = program.communicate(timeout=60)
            self.assertEqual(3, program.returncode, out)
            # Killed early there is no file yet, and the folder is made with the first one.
            self.assertEqual([], [one for one in longwire.kept.glob("*")
                                  if one.name != ".suspended"])


if __name__ == "__main__":
    if LONG:
        sys.argv.remove("--long")
    unittest.main()
