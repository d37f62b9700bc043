"""The table of docs/errors.md: a process gets a signal; what its program, the neighbours and the
operator see."""
import concurrent.futures
import os
import pathlib
import signal
import sys
import time
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "e2e"))
import enrolment_test  # noqa: E402
import process_ends  # noqa: E402
import server  # noqa: E402

LAUNCH_FAILED = 719
STOPPED = 0.7  # seconds


class TableTest(unittest.TestCase):
    def test_the_page_has_the_same_rows(self):
        page = (TESTS.parent / "docs" / "errors.md").read_text().splitlines()
        start = page.index("| process | signal | its program | neighbours | operator |") + 2
        rows = process_ends.as_page()
        self.assertEqual(rows, page[start:start + len(rows)])

    def test_each_row_names_a_test(self):
        for row in process_ends.ROWS:
            self.assertTrue((TESTS / row.shown_by).exists(), row)


class ProcessEndsTest(unittest.TestCase):
    """A victim over TCP; neighbours: one of the same link, one without a link."""

    def setUp(self):
        self.longwire = self.enterContext(server.Server(warm_workers=3,
                                                        config="resume_grace: 20s\n"))
        self.victim = self.train()
        self.same_link = self.train()
        self.other = self.train(f"unix:{self.longwire.door}")

    def train(self, address=None, seconds="stdin"):
        program = self.longwire.start("counted_training.static", str(seconds), server=address)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        return program

    def expect_right(self, *programs):
        for program in programs:
            out, err = program.communicate(timeout=60)
            said = (out, err, self.longwire.log_tail())
            self.assertEqual(0, program.returncode, said)
            self.assertEqual("", err, said)

    def expect_neighbours_right(self):
        self.expect_right(self.same_link, self.other)

    def pids(self, name):
        return self.longwire.processes()[f"longwire-{name}"]

    def worker_of(self, program):
        """`longwire run` becomes the program."""
        sessions = self.longwire.status()["sessions"]
        return next(one["worker_pid"] for one in sessions if one["client_pid"] == program.pid)

    @staticmethod
    def send(pid, number):
        """To a process that may just have ended."""
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    @staticmethod
    def stop_for_a_while(pid):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(STOPPED)
        os.kill(pid, signal.SIGCONT)

    def log_has(self, words, seconds=5):
        server.wait_for(lambda: words in self.longwire.log.read_text(), seconds, words)

    def test_program(self):
        self.stop_for_a_while(self.victim.pid)
        self.expect_right(self.victim)
        for number in (signal.SIGKILL, signal.SIGTERM):
            doomed = self.train(seconds=60)
            before = self.longwire.log.read_text().count("ended after")
            doomed.send_signal(number)
            doomed.communicate()
            server.wait_for(lambda: self.longwire.log.read_text().count("ended after") > before,
                            1, "the session's end")
        self.expect_neighbours_right()

    def test_link(self):
        link, = self.pids("link")
        self.stop_for_a_while(link)
        os.kill(link, signal.SIGKILL)
        server.wait_for(lambda: self.pids("link") not in ([], [link]), 5, "another link")
        self.log_has("resumed after")
        for pid in self.pids("link"):
            self.send(pid, signal.SIGTERM)
        self.expect_right(self.victim, self.same_link, self.other)

    def kill_programs_of_the_link(self, *more):
        """The link, which is stopped meanwhile, says nothing of it."""
        for pid in self.pids("link"):
            os.kill(pid, signal.SIGSTOP)
        for program in self.victim, self.same_link:
            program.kill()
            program.communicate()
        for name in *more, "link":
            for pid in self.pids(name):
                os.kill(pid, signal.SIGKILL)

    def test_link_and_its_program(self):
        """What they held is free at once, long before the grace is over."""
        self.kill_programs_of_the_link()
        server.wait_for(lambda: len(self.longwire.status()["sessions"]) < 2, 2, "the sessions' end")
        self.expect_right(self.other)
        self.longwire.must_log("its program and its link have ended")
        server.wait_for(lambda: not self.pids("link") and not self.pids("guard"), 15,
                        "the end of the link that came for that")

    def test_link_guard_and_program(self):
        self.kill_programs_of_the_link("guard")
        self.expect_right(self.other)
        self.assertEqual(2, len(self.longwire.status()["sessions"]))
        self.assertEqual(0, self.longwire.run("vector_add.static").code)
        server.wait_for(lambda: not self.longwire.status()["sessions"], 1, "the sessions' end")
        self.longwire.must_log("its program and its link have ended")

    def test_guard(self):
        for number in signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL:
            for pid in self.pids("guard"):
                os.kill(pid, number)
        self.expect_right(self.victim, self.same_link, self.other)
        self.assertEqual(0, self.longwire.run("vector_add.static").code)

    def test_worker(self):
        self.stop_for_a_while(self.worker_of(self.victim))
        self.expect_right(self.victim)
        for number in (signal.SIGKILL, signal.SIGTERM):
            doomed = self.train(seconds=60)
            os.kill(self.worker_of(doomed), number)
            struck = time.monotonic()
            out, err = doomed.communicate(timeout=60)
            self.assertLess(time.monotonic() - struck, 3 * 2)
            # And no call succeeded any more.
            self.assertEqual(3, doomed.returncode, (out, err))
            self.assertIn(f"ERROR {LAUNCH_FAILED}", out)
            self.assertIn("the session has ended", err)
            self.log_has(f"signal {int(number)}")
        self.expect_neighbours_right()


class HeldStarterTest(unittest.TestCase):
    def test_a_worker_ends_while_the_warden_waits_for_another(self):
        """Its end comes before the answer that is awaited, and nothing comes after that."""
        longwire = self.enterContext(server.Server())
        door = f"unix:{longwire.door}"
        doomed = longwire.start("counted_training.static", "60", server=door)
        worker = longwire.status()["sessions"][0]["worker_pid"]
        starter, = longwire.processes()["longwire-starter"]
        os.kill(starter, signal.SIGSTOP)
        self.addCleanup(os.kill, starter, signal.SIGCONT)
        os.kill(worker, signal.SIGKILL)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            late = pool.submit(longwire.start, "counted_training.static", "60", server=door)
            time.sleep(STOPPED)  # for it, or for the next warm one, the warden asks the starter
            os.kill(starter, signal.SIGCONT)
            for program in (doomed, late.result()):
                self.addCleanup(program.communicate)
                self.addCleanup(program.kill)
            out, err = doomed.communicate(timeout=20)
        self.assertEqual(3, doomed.returncode, (out, err))


class SignerEndsTest(unittest.TestCase):
    def test_signer(self):
        with enrolment_test.EnrolServer({"alpha": {}}) as longwire:
            longwire.start_signer()
            for number in (signal.SIGSTOP, signal.SIGKILL):
                longwire.children["longwire-signer"].send_signal(number)
                result = server.run(
                    list(map(str, longwire.command(longwire.program("vector_add.static")))),
                    longwire.environment_of("alpha"))
                self.assertEqual(0, result.code, result)


if __name__ == "__main__":
    unittest.main()
