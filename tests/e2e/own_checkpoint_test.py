"""Programs that lock, checkpoint, restore and unlock themselves by the driver's API
(cuCheckpointProcess…): what the server has of them meanwhile, and what is refused."""
import os
import signal
import subprocess
import time
import unittest

import checkpoint_files
import server

RUNNING, LOCKED, CHECKPOINTED = range(3)
SUCCESS, INVALID_VALUE, ILLEGAL_STATE, NOT_READY, NOT_SUPPORTED = 0, 1, 401, 600, 801


class Program:
    """tests/apps/driver_own_checkpoint.cc"""

    def __init__(self, case, longwire, **more):
        self.case, self.longwire = case, longwire
        self.process = subprocess.Popen(
            longwire.command(longwire.program("driver_own_checkpoint.driver"), **more),
            env=longwire.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        case.addCleanup(self.process.communicate)
        case.addCleanup(self.process.kill)
        case.assertEqual("READY", self.hear(), longwire.log_tail())

    def hear(self):
        return server.next_line(self.process).strip()

    def begin(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def does(self, words, code, state):
        self.begin(words)
        said = self.hear()
        if not said:
            self.case.fail((self.process.communicate(timeout=20), self.longwire.log_tail()))
        self.case.assertEqual(f"{code} {state}", said, (words, self.longwire.log_tail()))

    def ends(self):
        """What it said on standard error, once it has found all values right."""
        out, err = self.process.communicate(timeout=60)
        self.case.assertEqual((0, "PASS driver_own_checkpoint"), (self.process.returncode,
                                                                  out.strip()), err)
        return err


class OwnCheckpointTest(unittest.TestCase):
    def serve(self, text="checkpoint_own_sessions: 2\n", **options):
        return checkpoint_files.serve(self, text, **options)

    def files(self, longwire):
        return [one for one in longwire.kept.iterdir() if one.name != ".suspended"]

    def device_of(self, longwire):
        (session,) = longwire.status()["sessions"]
        return session["seats"][0].get("device", 0)

    def uuid(self, longwire, device):
        return next(one["uuid"] for one in longwire.status()["devices"]
                    if one.get("ordinal", 0) == device)

    def test_each_state_and_what_the_server_has_meanwhile(self):
        longwire = self.serve()
        program = Program(self, longwire)
        here = self.device_of(longwire)
        for words in ("checkpoint", "restore", "unlock"):
            program.does(words, ILLEGAL_STATE, RUNNING)
        program.does("lock", SUCCESS, LOCKED)
        program.does("lock", ILLEGAL_STATE, LOCKED)
        program.does("restore", ILLEGAL_STATE, LOCKED)
        program.does("count", SUCCESS, LOCKED)  # its calls wait from here on
        self.assertEqual(1, len(longwire.status()["sessions"]))
        program.does("checkpoint", SUCCESS, CHECKPOINTED)
        server.wait_for(longwire.is_unused, 10, "the device's memory")
        (waits,) = longwire.status()["suspended"]
        (file,) = self.files(longwire)
        self.assertEqual((waits["file"], waits["bytes"]), (file.name, file.stat().st_size))
        self.assertGreater(waits["bytes"], 8 << 20)  # what the program has
        for words in ("lock", "checkpoint", "unlock"):
            program.does(words, ILLEGAL_STATE, CHECKPOINTED)
        program.does("restore", SUCCESS, LOCKED)
        self.assertEqual(([], here), (self.files(longwire), self.device_of(longwire)))
        time.sleep(0.3)
        program.does("counted", NOT_READY, LOCKED)
        program.does("unlock", SUCCESS, RUNNING)
        program.does("join", SUCCESS, RUNNING)
        program.does("count", SUCCESS, RUNNING)
        program.does("join", SUCCESS, RUNNING)
        self.assertEqual("", program.ends())
        server.wait_for(longwire.is_unused, 10, "the memory of all workers")

    def test_on_another_device_and_back(self):
        longwire = self.serve()
        program = Program(self, longwire)
        first = here = self.device_of(longwire)
        for _ in range(2):
            program.does("lock 10000", SUCCESS, LOCKED)
            program.does("checkpoint", SUCCESS, CHECKPOINTED)
            own, other = self.uuid(longwire, first), self.uuid(longwire, 1 - here)
            nobody = "GPU-" + other[4:].translate(str.maketrans("0123456789abcdef",
                                                                "f0123456789abcde"))
            program.does(f"restore {nobody} {own}", INVALID_VALUE, CHECKPOINTED)
            program.does(f"restore {own} {nobody}", NOT_SUPPORTED, CHECKPOINTED)
            program.does(f"restore {own} {other}", SUCCESS, LOCKED)
            here = 1 - here
            self.assertEqual(here, self.device_of(longwire), longwire.log_tail())
            program.does("unlock", SUCCESS, RUNNING)
            program.does("count", SUCCESS, RUNNING)
            program.does("join", SUCCESS, RUNNING)
        self.assertIn("this server has no device " + nobody, program.ends())

    def test_a_lock_waits_for_work_until_its_timeout(self):
        longwire = self.serve()
        program = Program(self, longwire)
        program.does("hold", SUCCESS, RUNNING)
        began = time.monotonic()
        program.does("lock 300", NOT_READY, RUNNING)
        self.assertGreater(time.monotonic() - began, 0.3)
        program.does("count", SUCCESS, RUNNING)  # behind what is held; its calls do not wait
        program.does("counted", NOT_READY, RUNNING)
        program.does("let", SUCCESS, RUNNING)
        program.does("lock 20000", SUCCESS, LOCKED)
        program.does("unlock", SUCCESS, RUNNING)
        program.does("join", SUCCESS, RUNNING)
        program.ends()

    def test_arguments_and_other_processes(self):
        longwire = self.serve()
        program = Program(self, longwire)
        program.does(f"pid {os.getpid()}", NOT_SUPPORTED, RUNNING)
        for pid in (0, -1):
            program.does(f"pid {pid}", INVALID_VALUE, RUNNING)
        program.does("reserved", INVALID_VALUE, RUNNING)
        program.does("lock", SUCCESS, LOCKED)
        program.does("reserved", INVALID_VALUE, LOCKED)
        program.does("checkpoint", SUCCESS, CHECKPOINTED)
        program.does("reserved", INVALID_VALUE, CHECKPOINTED)
        program.does("restore", SUCCESS, LOCKED)
        program.does("unlock", SUCCESS, RUNNING)
        self.assertIn("can lock, checkpoint and restore itself only", program.ends())

    def test_what_the_server_does_not_allow(self):
        for text, reason in (("", "checkpoint_own_sessions"),
                             ("checkpoint_own_sessions: 2\ncheckpoint_own_bytes: 4MiB\n",
                              "checkpoint_own_bytes")):
            longwire = self.serve(text)
            program = Program(self, longwire)
            program.does("lock", SUCCESS, LOCKED)
            program.does("checkpoint", NOT_SUPPORTED, LOCKED)
            self.assertEqual([], self.files(longwire) if longwire.kept.exists() else [])
            program.does("unlock", SUCCESS, RUNNING)
            program.does("count", SUCCESS, RUNNING)
            program.does("join", SUCCESS, RUNNING)
            self.assertIn(reason, program.ends())

    def test_a_tenants_number(self):
        longwire = self.serve("checkpoint_own_sessions: 1\n")
        one, other = Program(self, longwire), Program(self, longwire)
        for program in (one, other):
            program.does("lock", SUCCESS, LOCKED)
        one.does("checkpoint", SUCCESS, CHECKPOINTED)
        other.does("checkpoint", NOT_SUPPORTED, LOCKED)
        one.does("restore", SUCCESS, LOCKED)
        other.does("checkpoint", SUCCESS, CHECKPOINTED)
        other.does("restore", SUCCESS, LOCKED)
        for program in (one, other):
            program.does("unlock", SUCCESS, RUNNING)
        one.ends()
        self.assertIn("as many sessions suspended", other.ends())

    def test_an_administrator_and_the_local_socket(self):
        longwire = self.serve()
        program = Program(self, longwire)
        (session,) = longwire.status()["sessions"]
        refused = longwire.cli("admin", "checkpoint", str(session["id"]), "own-name")
        self.assertEqual(1, refused.code)
        self.assertIn("begin with own-", refused.err)
        program.does("lock", SUCCESS, LOCKED)
        # What an administrator suspends, an administrator restores.
        self.assertEqual(0, longwire.cli("admin", "checkpoint", str(session["id"]), "his").code)
        program.does("checkpoint", SUCCESS, CHECKPOINTED)
        program.does("restore", NOT_SUPPORTED, CHECKPOINTED)
        self.assertEqual(0, longwire.cli("admin", "restore", "his").code)
        program.does("restore", SUCCESS, LOCKED)
        program.does("unlock", SUCCESS, RUNNING)
        self.assertIn("an administrator of the server has suspended", program.ends())
        local = Program(self, longwire, server=f"unix:{longwire.door}")
        local.does("lock", SUCCESS, LOCKED)
        local.does("checkpoint", NOT_SUPPORTED, LOCKED)
        local.does("unlock", SUCCESS, RUNNING)
        self.assertIn("local socket", local.ends())

    def test_a_daemon_that_is_killed_meanwhile(self):
        """The program hears what has become of it: it runs or it is suspended."""
        longwire = self.serve()
        program = Program(self, longwire)
        program.does("lock", SUCCESS, LOCKED)
        state = LOCKED
        for turn in range(4):
            program.begin("checkpoint" if state == LOCKED else "restore")
            time.sleep(0.03 * (1 + turn))
            daemon = longwire.children.pop("longwired")
            daemon.send_signal(signal.SIGKILL)
            daemon.wait()
            longwire.start_daemon()
            code, state = map(int, program.hear().split())
            now = longwire.status()
            suspended = len(now.get("suspended", []))
            self.assertEqual(1, len(now["sessions"]) + suspended, (now, longwire.log_tail()))
            self.assertEqual(CHECKPOINTED if suspended else LOCKED, state, longwire.log_tail())
            self.assertIn(code, (SUCCESS, NOT_SUPPORTED))
        if state == CHECKPOINTED:
            program.does("restore", SUCCESS, LOCKED)
        program.does("unlock", SUCCESS, RUNNING)
        program.does("count", SUCCESS, RUNNING)
        program.does("join", SUCCESS, RUNNING)
        program.ends()


if __name__ == "__main__":
    unittest.main()
