"""Programs and servers that are started with standard descriptors closed, and programs that close
or replace descriptors which they do not know: nothing of ours takes the place of what a program
prints to, and results are right or an error is reported."""
import itertools
import os
import pathlib
import signal
import subprocess
import unittest

import programs
import server

SUBSETS = [subset for count in range(4) for subset in itertools.combinations(range(3), count)]


def with_closed(numbers, command):
    """The command, started with these descriptors closed, by a shell."""
    closing = " ".join(f"{number}<&-" if number == 0 else f"{number}>&-" for number in numbers)
    return ["/bin/sh", "-c", f'exec "$0" "$@" {closing}', *map(str, command)]


def where_is(process, number):
    try:
        return os.readlink(f"/proc/{process}/fd/{number}")
    except FileNotFoundError:  # a worker that was just ending
        return "closed" if server.is_alive(process) else "/dev/null"


class DescriptorsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())
        cls.ways = {"tcp": cls.longwire.address, "local": f"unix:{cls.longwire.door}"}

    def run_program(self, way, mode, closed=(), **variables):
        """Code, report and what it printed of a program that says a line for each step."""
        report = self.longwire.runtime / "report"
        report.unlink(missing_ok=True)
        environment = self.longwire.environment(
            LONGWIRE_SERVER=self.ways[way], LD_LIBRARY_PATH=self.longwire.dist / "lib/longwire",
            **variables)
        command = [self.longwire.program("closed_descriptors.static"), report, mode]
        result = server.run(with_closed(closed, command), environment, timeout=60)
        return result, report.read_text() if report.exists() else "no report"

    def test_standard_ones_closed(self):
        for way, closed in itertools.product(self.ways, SUBSETS):
            with self.subTest(way=way, closed=closed):
                result, report = self.run_program(way, "print", closed)
                self.assertEqual(0, result.code, (report, result, self.longwire.log_tail()))
                self.assertIn("failures 0, first cudaSuccess, wrong: nothing", report)
                for number in closed:
                    self.assertNotIn("longwire", report.splitlines()[number])
                lines = [] if 1 in closed else [f"step {i}" for i in range(40)]
                self.assertEqual(lines, result.out.splitlines())
                self.assertEqual("", result.err)

    def test_a_link_that_such_a_program_starts(self):
        """Its own are open, whatever those of the program are."""
        for closed in (0,), (1, 2), (0, 1, 2):
            # Another list of what is switched off has another link.
            result, report = self.run_program("tcp", "print", closed,
                                              LONGWIRE_DISABLE="kept-calls," * len(closed))
            self.assertEqual(0, result.code, report)
        for link in self.longwire.processes()["longwire-link"]:
            for number in range(3):
                self.assertEqual("/dev/null", where_is(link, number))

    def test_programs_that_close_what_they_do_not_know(self):
        for way, mode in itertools.product(self.ways, ("before", "between", "after", "replaced")):
            with self.subTest(way=way, mode=mode):
                result, report = self.run_program(way, mode)
                self.assertEqual(0, result.code, (report, result, self.longwire.log_tail()))

    def test_programs_that_close_all_the_time(self):
        for way in self.ways:
            result, report = self.run_program(way, "beside")
            self.assertIn(result.code, (0, 3), (report, result))

    def test_a_session_that_ends_is_noticed_by_who_has_closed_everything(self):
        """The link dies: another one goes on. A worker or the daemon dies: an error, no waiting for
        ever."""
        for way in self.ways:
            with self.subTest(way=way), server.Server() as longwire:
                self.check_end(longwire, way)

    @staticmethod
    def kill_all(longwire, name):
        for pid in longwire.processes()[name]:
            os.kill(pid, signal.SIGKILL)

    def check_end(self, longwire, way):
        to = longwire.address if way == "tcp" else f"unix:{longwire.door}"
        process = subprocess.Popen(
            [longwire.program("closed_descriptors.static"), longwire.runtime / "report",
             "until-error"],
            env=longwire.environment(LONGWIRE_SERVER=to,
                                     LD_LIBRARY_PATH=longwire.dist / "lib/longwire"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.assertEqual("READY\n", server.next_line(process))
        server.next_line(process)
        if way == "tcp":
            self.kill_all(longwire, "longwire-link")
            server.wait_for(lambda: "resumed after" in longwire.log.read_text(), 5, "another link")
        self.kill_all(longwire, "longwire-worker" if way == "tcp" else "longwired")
        out, err = process.communicate(timeout=60)
        self.assertEqual(3, process.returncode, out + err)
        self.assertIn("longwire: ", err)

    def test_servers_that_are_started_so(self):
        for closed in SUBSETS[1:]:
            with self.subTest(closed=closed), ClosedServer(closed) as longwire:
                result = longwire.run("vector_add.static")
                self.assertIsNone(programs.what_is_wrong("vector_add", result))
                for name, pids in longwire.processes().items():
                    for pid, number in itertools.product(pids, range(3)):
                        self.assertRegex(where_is(pid, number), "^(/dev/null|pipe:.*|.*/log)$",
                                         (name, number))


class ClosedServer(server.Server):
    """The daemon alone is started, which starts the rest."""

    def __init__(self, closed):
        super().__init__()
        self.closed = closed

    def start_warden(self):
        pass

    def _start(self, name, *arguments):
        command = with_closed(self.closed, [self.dist / "bin" / name, *arguments])
        with open(self.log, "a") as log:
            self.children[name] = subprocess.Popen(
                command, env=self.environment(**self.variables), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log)


if __name__ == "__main__":
    unittest.main()
