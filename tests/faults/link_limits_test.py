"""What a program has set for itself, or was given, is not passed on to the link that it starts, as
far as that can be; what can not reaches no other program."""
import ctypes
import os
import pathlib
import resource
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import server  # noqa: E402

CAP_SYS_NICE, CAP_SYS_RESOURCE = 23, 24
PR_CAPBSET_DROP = 24


def limited(*words):
    """Before the exec of a program: a shell's ulimit, by a user without privileges."""
    libc = ctypes.CDLL(None, use_errno=True)

    def limit():
        for capability in (CAP_SYS_NICE, CAP_SYS_RESOURCE):
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
        for what, value in words:
            if what == "nice":
                os.nice(value)
            else:
                resource.setrlimit(what, (value, value))
    return limit


class LinkLimitsTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(server.Server(warm_workers=2))

    def start(self, *limits, seconds=1):
        words = self.longwire.command(self.longwire.program("counted_training.static"), seconds)
        program = subprocess.Popen(list(map(str, words)), env=self.longwire.environment(),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True,
                                   preexec_fn=limited(*limits))
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        self.assertEqual("READY\n", server.next_line(program), program.poll())
        return program

    def expect_right(self, program):
        out, err = program.communicate(timeout=60)
        self.assertEqual(0, program.returncode, (out, err))

    def the_link(self, *others):
        links = self.longwire.processes()["longwire-link"]
        new = [pid for pid in links if pid not in others]
        self.assertEqual(1, len(new), new)
        return new[0]

    def test_soft_limits_are_left(self):
        """Also those of a shell's `ulimit -S`, and what else is the program's own."""
        def limit():
            for what in (resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
                resource.setrlimit(what, (64, resource.getrlimit(what)[1]))
            os.umask(0)
        words = self.longwire.command(self.longwire.program("counted_training.static"), 1)
        reading, writing = os.pipe()
        program = subprocess.Popen(list(map(str, words)), env=self.longwire.environment(),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True,
                                   pass_fds=[writing], cwd=self.longwire.runtime,
                                   preexec_fn=limit)
        os.close(writing)
        self.assertEqual("READY\n", server.next_line(program))
        link = self.the_link()
        for what in (resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
            soft, hard = resource.prlimit(link, what)
            self.assertEqual(hard, soft)
        self.assertNotEqual(os.getsid(program.pid), os.getsid(link))
        self.assertNotEqual(os.getpgid(program.pid), os.getpgid(link))
        self.assertEqual("/", os.readlink(f"/proc/{link}/cwd"))
        status = pathlib.Path(f"/proc/{link}/status").read_text()
        self.assertIn("Umask:\t0077", status)
        self.expect_right(program)
        self.assertEqual(b"", os.read(reading, 1))  # the link has no end of the pipe
        os.close(reading)

    def test_a_limit_on_time_ends_nobody_else(self):
        """As of `ulimit -t`: the hard limit, too, which a user cannot raise."""
        limit = (resource.RLIMIT_CPU, 1)
        first = self.start(limit, seconds=0.1)
        limited_link = self.the_link()
        self.assertEqual(1, resource.prlimit(limited_link, resource.RLIMIT_CPU)[1])
        others = [self.start(seconds=2) for _ in range(2)]
        link = self.the_link(limited_link)
        self.assertEqual(resource.RLIM_INFINITY,
                         resource.prlimit(link, resource.RLIMIT_CPU)[0])
        self.expect_right(first)
        os.kill(limited_link, signal.SIGXCPU)  # as the kernel does
        for other in others:
            self.expect_right(other)

    def test_a_limited_program_uses_a_link_without_limits(self):
        first = self.start(seconds=2)
        link = self.the_link()
        second = self.start((resource.RLIMIT_CPU, 60), seconds=0.5)
        self.assertEqual(link, self.the_link())
        self.expect_right(second)
        self.expect_right(first)

    def test_a_nice_program_slows_down_nobody_else(self):
        first = self.start(("nice", 7), seconds=0.5)
        slow = self.the_link()
        second = self.start(seconds=0.5)
        link = self.the_link(slow)
        self.assertEqual(max(0, os.getpriority(os.PRIO_PROCESS, second.pid)),
                         os.getpriority(os.PRIO_PROCESS, link))
        self.expect_right(first)
        self.expect_right(second)

    def test_small_files(self):
        """Links need shared memory, which counts as files; the program gets a sentence."""
        words = self.longwire.command(self.longwire.program("vector_add.static"))
        result = subprocess.run(list(map(str, words)), env=self.longwire.environment(),
                                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                timeout=60,
                                preexec_fn=limited((resource.RLIMIT_FSIZE, 1024)))
        self.assertEqual(1, result.returncode, result)
        self.assertIn("File too large", result.stderr)
        other = self.start(seconds=1)  # with a link that can
        again = self.start((resource.RLIMIT_FSIZE, 1024), seconds=0.2)
        self.expect_right(again)
        self.expect_right(other)


if __name__ == "__main__":
    unittest.main()
