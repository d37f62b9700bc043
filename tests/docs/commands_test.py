"""Every command in the pages (commands.py): those that nothing else tests are run here as they
stand, in a network of their own, where the names and ports of the pages lead to the software
device."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

import commands

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("LONGWIRE_BUILD", HERE.parents[1] / "build")).resolve()
BIN = BUILD / "dist" / "bin"
NAMES = "127.0.0.1 localhost gpu1.example.org gpu1 gpu-host.example\n"
MARK = "LONGWIRE_TEST_OWN_NETWORK"
DEFAULT_SERVER = "longwired --listen 127.0.0.1:7411 --driver software"


def enter_own_network():
    """What this process leaves ends with it."""
    if MARK in os.environ:
        return
    os.environ[MARK] = "1"
    hosts = tempfile.NamedTemporaryFile("w", delete=False)
    hosts.write(NAMES)
    hosts.close()
    os.execvp("unshare", ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
                          "--mount-proc", "sh", "-c",
                          f"mount --bind {hosts.name} /etc/hosts; rm {hosts.name}; "
                          'ip link set lo up; exec "$@"', "sh", sys.executable, *sys.argv])


class Reader:
    """Somebody who types what a page says."""

    def __init__(self, case):
        self.home = pathlib.Path(case.enterContext(tempfile.TemporaryDirectory()))
        for name, target in (("build", BUILD), ("app", BUILD / "tests/apps/vector_add.static"),
                             ("deploy", commands.ROOT / "deploy")):
            (self.home / name).symlink_to(target)
        (self.home / "longwired.yaml").write_text("listen: 127.0.0.1:7411\ndriver: software\n")
        (self.home / "runtime").mkdir(mode=0o700)
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("LONGWIRE_", "LD_"))}
        self.environment = {**clean, "PATH": f"{BIN}:{clean['PATH']}", "HOME": str(self.home),
                            "LONGWIRE_RUNTIME_DIR": str(self.home / "runtime"),
                            "LONGWIRE_BIN": str(BIN)}
        self.daemon = None
        case.addCleanup(self.end_daemon)

    def type(self, line):
        return subprocess.run(["bash", "-euc", line], cwd=self.home, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                              check=False)

    def end_daemon(self):
        if self.daemon is None:
            return
        self.daemon.terminate()
        self.daemon.wait(30)
        self.daemon = None

    def start_daemon(self, line):
        self.end_daemon()
        log = self.home / "log"
        with open(log, "w") as out:
            self.daemon = subprocess.Popen(["bash", "-euc", "exec " + line.rstrip("& ")],
                                           cwd=self.home, env=self.environment, stdout=out,
                                           stderr=out, stdin=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while "ready, version" not in log.read_text():
            if time.monotonic() > end or self.daemon.poll() is not None:
                raise AssertionError(f"{line}: {log.read_text()}")
            time.sleep(0.05)


class CommandsTest(unittest.TestCase):
    def stands_for(self, command):
        for words, meaning in commands.STANDS_FOR.items():
            command = command.replace(words, meaning)
        return command

    def read(self, page, reader):
        for command in commands.commands(page):
            if commands.reason(command) or commands.other_test(page, command):
                continue
            with self.subTest(page=page, command=command):
                prepared = reader.type(commands.BEFORE.get((page, command), ""))
                self.assertEqual(0, prepared.returncode, prepared.stderr)
                if command.startswith("longwired "):
                    reader.start_daemon(self.stands_for(command))
                    continue
                if reader.daemon is None:
                    reader.start_daemon(DEFAULT_SERVER)
                result = reader.type(self.stands_for(command))
                self.assertEqual(0, result.returncode, result.stdout + result.stderr)

    def test_what_the_pages_say(self):
        count = 0
        for page in commands.pages():
            count += sum(1 for _ in commands.commands(page))
            reader = Reader(self)
            self.read(page, reader)
            reader.end_daemon()
        self.assertGreater(count, 70, "the pages' commands are not found any more")

    def test_other_tests_are_there(self):
        """Each entry is of a command that a page has, and its test has these words."""
        known = [(page, one) for page in commands.pages() for one in commands.commands(page)]
        for (page, pattern), (file, words) in commands.TESTED.items():
            with self.subTest(page=page, pattern=pattern):
                self.assertTrue(any(of == page and re.match(pattern, one) for of, one in known))
                self.assertIn(words, (HERE.parent / file).read_text())
        for pattern in commands.NOT_RUN:
            self.assertTrue(any(re.match(pattern, one) for _, one in known), pattern)
        for page, command in commands.BEFORE:
            self.assertIn((page, command), known)


if __name__ == "__main__":
    enter_own_network()
    unittest.main()
