#!/usr/bin/env python3
"""A host that is short of something: threads, processes, descriptors, memory, room on disk. What
needed it is refused, with a sentence that names the cause and what helps; nobody else's work ends,
and all is as before when the shortage is over.

pressure_test.py [--long] [TEST…]
"""
import errno
import subprocess
import sys
import time
import unittest

import pressed
import server

MOST = 4 if "--long" in sys.argv else 1  # of the cases of one kind
THREADS = "no process or thread can be started; raise the limits on them"
SPACE = "No space left on device; free some space on that file system"
DESCRIPTORS = "Too many open files; raise its limit on descriptors"
MEMORY = "Cannot allocate memory; free memory on this host"


def with_descriptors(most, command):
    """The command with a lower limit on descriptors."""
    return ["/bin/sh", "-c", f'ulimit -n {most}; exec "$0" "$@"', *map(str, command)]


class PressureTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(pressed.PressedServer(
            warm_workers=0, config="resume_grace: 5s\n"))
        cls.ways = {"tcp": cls.longwire.address, "local": f"unix:{cls.longwire.door}"}
        cls.neighbours = [cls.start_neighbour(way) for way in cls.ways]

    def setUp(self):
        self.addCleanup(self.longwire.relieve)

    def expect_good(self, way="tcp"):
        result = self.longwire.run("vector_add.static", server=self.ways[way])
        self.assertEqual(0, result.code, (result, self.longwire.log_tail()))

    @classmethod
    def start_neighbour(cls, way):
        """Somebody else's program: it works all the time, compares what it gets, and ends well."""
        process = subprocess.Popen(
            cls.longwire.command(cls.longwire.program("counted_training.static"), "stdin",
                                 server=cls.ways[way]),
            env=cls.longwire.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        cls.addClassCleanup(process.kill)
        if server.next_line(process) != "READY\n":
            raise AssertionError(process.communicate(), cls.longwire.log_tail())
        return process

    @classmethod
    def tearDownClass(cls):
        for process in cls.neighbours:
            out, err = process.communicate("", timeout=60)
            if process.returncode != 0 or err != "":
                raise AssertionError(process.returncode, out, err, cls.longwire.log_tail())

    def expect_neighbours(self):
        for process in self.neighbours:
            self.assertIsNone(process.poll(), self.longwire.log_tail())

    def check(self, refused, *words, way="tcp", **variables):
        """With neighbours at work a program is refused, by these words; then all is as before."""
        self.longwire.press(*refused)
        self.longwire.cause_of(self, *words, server=self.ways[way], **variables)
        self.longwire.relieve()
        self.expect_good(way)
        self.expect_neighbours()

    def test_no_thread_in_the_link(self):
        self.check(["longwire-link thread 11 -"], "longwire-link", THREADS)

    def test_no_thread_in_the_daemon(self):
        self.check(["longwired thread 11 -"], "starts no more threads", "TasksMax=")
        self.check(["longwired thread 11 -"], THREADS, way="local")

    def test_no_thread_in_the_worker(self):
        self.check(["longwire-worker thread 11 -"], "longwire-warden's log says why")
        self.assertIn("longwire-worker: ends, because the system refuses what it needs: " + THREADS,
                      self.longwire.log.read_text())

    def test_the_warden_cannot_fork(self):
        for way in self.ways:
            self.check(["longwire-warden fork 11 -"], "no worker can be started", THREADS, way=way)

    def test_the_program_cannot_fork(self):
        """It cannot start its link; with a link there already nothing is missing."""
        self.longwire.press("vector_add.static fork 11 -")
        self.longwire.cause_of(self, "/link cannot be started: " + THREADS,
                               LONGWIRE_RUNTIME_DIR=self.private(), **self.longwire.preload)

    def test_the_program_has_no_thread(self):
        self.check(["vector_add.static thread 11 -"], THREADS, **self.longwire.preload)

    def test_no_shared_memory(self):
        """Full (ENOSPC), or beyond a limit (ENOMEM)."""
        for number, words in ((errno.ENOSPC, SPACE), (errno.ENOMEM, MEMORY))[:MOST]:
            self.check([f"longwire-warden memfd {number} -"], "no worker can be started", words)
            self.check([f"longwire-link memfd {number} -"], "room for a session's rings", words)
            self.check([f"longwired memfd {number} longwire-gates"], "its limits cannot be", words)
            self.check([f"longwired mmap {number} longwire-ring"], "rings cannot be mapped", words)

    def test_no_descriptors(self):
        for program, call, words in (
                ("longwire-warden", "socketpair", "no worker can be started"),
                ("longwired", "eventfd", "its limits cannot be shared"),
                ("longwire-link", "memfd", "room for a session's rings"),
                ("longwire-warden", "pipe", "no worker can be started"),
                ("longwire-warden", "memfd", "no worker can be started"),
                ("longwired", "memfd", "its limits cannot be shared"))[:3 * MOST]:
            with self.subTest(program=program, call=call):
                self.check([f"{program} {call} {errno.EMFILE} -"], words, DESCRIPTORS)

    def test_a_program_without_descriptors(self):
        """From none at all to enough: right results or a sentence; most have the cause."""
        said = set()
        for way, most in ((way, most) for way in self.ways for most in range(3, 24, 8 // MOST)):
            command = with_descriptors(
                most, [self.longwire.program("vector_add.static")])
            result = server.run(command, self.longwire.environment(
                LONGWIRE_SERVER=self.ways[way], LONGWIRE_RUNTIME_DIR=self.private(),
                LD_LIBRARY_PATH=self.longwire.dist / "lib/longwire"))
            with self.subTest(way=way, most=most):
                if result.code == 0 or "shared" in result.err:
                    continue
                self.assertEqual(1, len(result.err.strip().splitlines()), result)
                said.add(result.err)
        self.assertTrue(any(DESCRIPTORS in sentence for sentence in said), said)

    def private(self):
        folder = self.longwire.runtime / f"private-{time.monotonic_ns()}"
        folder.mkdir(mode=0o700)
        return folder

    def test_a_folder_for_the_link_that_is_full_or_read_only(self):
        folder = self.private()
        for number, words in ((errno.ENOSPC, SPACE), (errno.EROFS, "Read-only file system")):
            self.longwire.press(f"longwire-link open {number} .lock")
            self.longwire.cause_of(self, "longwire-link did not start", words,
                                   LONGWIRE_RUNTIME_DIR=folder)

    def test_a_link_that_cannot_load_its_libraries(self):
        link = self.private() / "longwire-link"
        link.write_text("#!/bin/sh\necho longwire-link: no such library >&2\nexit 127\n")
        link.chmod(0o755)
        self.longwire.cause_of(self, "longwire-link did not start", "no such library",
                               name="vector_add.static", LONGWIRE_RUNTIME_DIR=self.private(),
                               **{"LONGWIRE_LINK": link})

    def test_a_clock_that_jumps(self):
        """Of every process: sessions go on, and new ones open."""
        day = 24 * 3600
        names = ["longwired", "longwire-link", "longwire-worker", "longwire-warden",
                 "longwire-keeper"]
        for seconds in (day, -day, 40 * 365 * day):
            self.longwire.press(*(f"{name} clock {seconds} -" for name in names))
            for way in self.ways:
                self.expect_good(way)
            self.expect_neighbours()


class DaemonStartTest(unittest.TestCase):
    """A daemon that cannot start says why, whatever it is."""

    def test_each_cause(self):
        with pressed.PressedServer() as longwire:
            longwire.end_daemon()
            for refused, words in (
                    (f"longwired open {errno.EROFS} .lock", "Read-only file system"),
                    (f"longwired open {errno.ENOSPC} .lock", SPACE),
                    (f"longwired socket {errno.EMFILE} -", DESCRIPTORS),
                    ("longwired thread 11 -", THREADS)):
                with self.subTest(refused=refused):
                    longwire.press(refused)
                    result = server.run(
                        [longwire.dist / "bin" / "longwired", "--listen", longwire.address,
                         "--local-socket", longwire.door, "--warden", longwire.warden_socket],
                        longwire.environment(**longwire.variables), timeout=20)
                    self.assertNotIn(result.code, (0, None), result)
                    self.assertIn(words, result.err)
                    self.assertNotIn("another longwired", result.err)


class CacheTest(unittest.TestCase):
    """The folder of module images is full, read-only or gone."""

    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(pressed.PressedServer())

    def load(self):
        result = self.longwire.run("vector_add.static")
        self.assertEqual(0, result.code, (result, self.longwire.log_tail()))

    def test_each(self):
        cache = self.longwire.runtime / "cache"
        images = next(path.parent for path in cache.rglob("images"))
        for number, words in ((errno.ENOSPC, SPACE), (errno.EROFS, "Read-only file system")):
            self.longwire.press(f"longwired open {number} /new/",
                                f"longwired write {number} /new/")
            self.load()
            server.wait_for(lambda: f"a module image is not cached: {words}"
                            in self.longwire.log.read_text(), 5, "the cause in the log")
        self.longwire.relieve()
        self.load()
        server.wait_for(lambda: any((images / "images").iterdir()), 5, "an image in the cache")
        subprocess.run(["rm", "-rf", images], check=True)
        self.load()
        self.load()
        server.wait_for(lambda: (images / "images").is_dir() and any((images / "images").iterdir()),
                        5, "an image in the cache that was made again")


class FilesTest(unittest.TestCase):
    """What commands write is there in full, or it is an error with its cause, and nothing is left
    of it."""

    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(pressed.PressedServer())

    def run_cli(self, *words):
        return server.run([self.longwire.dist / "bin" / "longwire", *words],
                          self.longwire.environment(**self.longwire.preload))

    def test_certificates(self):
        folder = self.longwire.runtime / "authority"
        self.longwire.press(f"longwire write {errno.ENOSPC} /authority/")
        result = self.run_cli("cert", "init", "--dir", folder)
        self.assertEqual(1, result.code, result)
        self.assertIn(SPACE, result.err)
        self.longwire.relieve()
        result = self.run_cli("cert", "init", "--dir", folder)
        self.assertEqual(0, result.code, result)

    def test_what_is_printed(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run(
                [self.longwire.dist / "bin" / "longwire", "status", "--server",
                 self.longwire.address, "--json"], env=self.longwire.environment(), stdout=full,
                stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(1, result.returncode, result)
        self.assertIn(SPACE, result.stderr)

    def test_a_timeline(self):
        full = self.longwire.runtime / "full.svg"
        full.symlink_to("/dev/full")
        result = self.run_cli("memory", "--server", self.longwire.address, "--timeline", full,
                              "--seconds", "0.1")
        self.assertEqual(1, result.code, result)
        self.assertIn(SPACE, result.err)


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--long"])
