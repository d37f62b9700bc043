"""Real servers for tests: a warden and a daemon on a free loopback port, in a folder of their own.

Everything runs from a build's dist/ as a user would run it, with the software device unless told
otherwise. LONGWIRE_RUNTIME_DIR points into the folder, so that links are never shared between
tests, and it marks the processes that belong to the test.
"""
import collections
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time

Result = collections.namedtuple("Result", "code out err seconds")

ACCEPTS = 0x10000  # __SO_ACCEPTCON among the flags in /proc/net/unix
TIMED_OUT = "no end within its time"


def build_folder():
    """The build to test: LONGWIRE_BUILD, or build/ beside the sources."""
    default = pathlib.Path(__file__).resolve().parents[2] / "build"
    return pathlib.Path(os.environ.get("LONGWIRE_BUILD", default)).resolve()


def wait_for(condition, seconds, what):
    """seconds: as long as it may take; a machine with other work is given three times that. A
    condition that costs something, as one that asks the server, is looked at half of the time."""
    seconds *= 3
    end = time.monotonic() + seconds
    while True:
        begun = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        if now > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(max(0.02, now - begun))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_alive(pid):
    """Whether the process runs; one that waits to be reaped does not."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def open_files(pid):
    """What its descriptors are, by their links in /proc; without those that it closes meanwhile."""
    targets = {}
    try:
        for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                targets[link] = os.readlink(link)
    except FileNotFoundError:
        pass  # the process has ended
    return targets


def start_session(command, environment):
    """Starts a command as the first process of a session of its own."""
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            errors="replace", start_new_session=True)


def run(command, environment, timeout=60):
    """Runs a command to its end; one that does not end is killed and has code None."""
    return finish(start_session(command, environment), timeout)


def finish(process, timeout):
    """Waits for what start_session() started; seconds are from here on."""
    start = time.monotonic()
    try:
        out, err = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        try:
            out, err = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            out, err = "", ""  # Somebody else still holds the pipe.
        code, err = None, err + f"\n{TIMED_OUT} of {timeout} s"
    return Result(code, out, err, time.monotonic() - start)


def next_line(process):
    """The next line of what a program says. Nothing behind it is taken: readline() keeps what came
    with the line, and communicate() does not return that."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(process.stdout.fileno(), 1)):
        line += byte
    return line.decode()


def plain(value):
    """Protobuf's JSON with names as in the description and 64-bit numbers as numbers."""
    if isinstance(value, dict):
        return {re.sub("[A-Z]", lambda m: "_" + m.group().lower(), name): plain(inner)
                for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return int(value) if isinstance(value, str) and value.isdigit() else value


class Server:
    everywhere = {}  # variables of all servers, and of the programs on them
    everywhere_devices = None  # the devices of servers for which no other ones are named
    builds_long = False  # whether the programs that only `--long` builds are there

    def __init__(self, driver="software", warm_workers=1, build=None, config="",
                 software_devices=1, software_memory=None, variables=(), devices=None):
        self.build = pathlib.Path(build) if build else build_folder()
        self.dist = self.build / "dist"
        self.driver = driver
        self.warm_workers = warm_workers
        self.config = config  # the text of the daemon's file; what is set below wins over it
        # How many devices the software device pretends to be, and the bytes of each.
        self.variables = {"LONGWIRE_SOFTWARE_DEVICES": software_devices, **dict(variables)}
        if software_memory:
            self.variables["LONGWIRE_SOFTGPU_MEMORY"] = software_memory
        self.warden_options = ()  # more of them
        # The devices that are served, as the driver counts; else all. What the configuration says
        # of that is for a warden which the daemon starts.
        self.devices = devices or self.everywhere_devices
        self.children = {}

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="longwire-test-")
        self.runtime = pathlib.Path(self.folder.name)
        self.log = self.runtime / "log"
        self.config_file = self.runtime / "longwired.yaml"
        self.config_file.write_text(self.config)
        self.warden_socket = self.runtime / "warden"
        self.door = self.runtime / "door"
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        try:
            self.start_warden()
            self.start_daemon()
        except BaseException:
            print(self.log_tail())
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in ("longwired", "longwire-warden"):
            if name in self.children:
                self._end(self.children.pop(name))
        # A guard would start another link.
        for _, pids in sorted(self.processes().items(), key=lambda one: one[0] != "longwire-guard"):
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.folder.cleanup()

    def start_warden(self):
        self._start("longwire-warden", "--socket", self.warden_socket, "--driver", self.driver,
                    "--warm-workers", str(self.warm_workers),
                    "--compile-cache", self.runtime / "cache" / "compiled",
                    *(("--devices", ",".join(map(str, self.devices))) if self.devices else ()),
                    *self.warden_options)
        wait_for(lambda: self.accepts("longwire-warden", self.warden_socket), 20,
                 "the warden's socket")

    def start_daemon(self):
        self._start("longwired", "--config", self.config_file, "--listen", self.address,
                    "--local-socket", self.door, "--warden", self.warden_socket,
                    "--driver", self.driver,
                    "--warm-workers", str(self.warm_workers))
        wait_for(self.answers, 20, "the daemon's port")

    def end_daemon(self):
        self._end(self.children.pop("longwired"))

    def _start(self, name, *arguments):
        with open(self.log, "a") as log:
            self.children[name] = subprocess.Popen(
                [self.dist / "bin" / name, *arguments], env=self.environment(**self.variables),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @staticmethod
    def _end(process):
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 0.2).close()
        except OSError:
            return False
        return self.accepts_locally()

    def accepts_locally(self):
        return all(self.accepts("longwired", path)
                   for path in (self.door, self.runtime / "control"))

    def accepts(self, name, path):
        """Whether the process does at this unix socket, whose file is there before."""
        table = pathlib.Path(f"/proc/{self.children[name].pid}/net/unix").read_text()
        for line in table.splitlines()[1:]:
            _, _, _, flags, _, _, _, *where = line.split(maxsplit=7)
            if where == [str(path)] and int(flags, 16) & ACCEPTS:
                return True
        return False

    def must_log(self, pattern, seconds=10):
        """Waits until the log has it: a program may see an event before that is logged."""
        wait_for(lambda: re.search(pattern, self.log.read_text()), seconds,
                 f"{pattern!r} in the log of {self.address}")

    def log_tail(self, lines=25):
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "server's log:\n  " + "\n  ".join(text.splitlines()[-lines:])

    def environment(self, **more):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("LONGWIRE_", "LD_", "CUDA_"))}
        return {**clean, "LONGWIRE_RUNTIME_DIR": str(self.runtime),
                **{name: str(value) for name, value in {**self.everywhere, **more}.items()}}

    def program(self, name):
        """A test program's path; name has its variant: vector_add.static. One that only `--long`
        builds is refused: it may lie there from an earlier run and be missing in a new folder."""
        apps = self.build / "tests" / "apps"
        program, _, variant = str(name).rpartition(".")
        of_long = f"{program} {variant} long" in (apps / "programs.txt").read_text().splitlines()
        if of_long and not self.builds_long:
            raise AssertionError(f"{name} is built with --long only: name it in "
                                 "per_thread_programs of tests/apps/CMakeLists.txt")
        return apps / name

    def command(self, *words, server=None):
        """The words' program, run on this server (or another)."""
        return [self.dist / "bin" / "longwire", "run", "--server", server or self.address, "--",
                *words]

    def run(self, name, *arguments, timeout=60, server=None, **environment):
        return run(self.command(self.program(name), *arguments, server=server),
                   self.environment(**environment), timeout)

    def start(self, name, *arguments, server=None, **environment):
        """Starts a test program that says READY once it has used the device, and waits for that.
        One with the argument "stdin" goes on until communicate() is called."""
        stdin = subprocess.PIPE if "stdin" in arguments else subprocess.DEVNULL
        process = subprocess.Popen(self.command(self.program(name), *arguments, server=server),
                                   env=self.environment(**environment), stdin=stdin,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = next_line(process)
        if line != "READY\n":
            process.kill()
            raise AssertionError(f"{name} said {line!r}{process.communicate()}; {self.log_tail()}")
        return process

    def cli(self, *words, timeout=60):
        return run([self.dist / "bin" / "longwire", *words], self.environment(), timeout)

    def status(self):
        result = self.cli("status", "--server", self.address, "--json")
        if result.code != 0:
            raise AssertionError(f"longwire status ended with {result.code}: {result.err}")
        status = plain(json.loads(result.out))
        return {"devices": [], "sessions": [], **status}

    def is_unused(self):
        """Whether no session is open and the memory of all earlier ones has come back."""
        status = self.status()
        return not status["sessions"] and not any(device["leased"] for device in status["devices"])

    def processes(self):
        """Longwire's and the test's own live processes of this server: name → process ids."""
        mark = f"LONGWIRE_RUNTIME_DIR={self.runtime}".encode()
        parents, names, ours = {}, {}, set()
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            pid = int(entry.name)
            try:
                stat = (entry / "stat").read_text()
                name = (entry / "comm").read_text().strip()
                exe = pathlib.Path(os.readlink(entry / "exe")).name
                names[pid] = name if name == "longwire-guard" else exe  # a link's program, too
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    ours.add(pid)
            except OSError:
                continue
            state, parent = stat.rsplit(")", 1)[1].split()[:2]
            if state not in "ZX":
                parents[pid] = int(parent)
        # Workers and keepers may have an empty environment: they are found by their parents.
        grown = True
        while grown:
            more = {pid for pid, parent in parents.items() if parent in ours and pid not in ours}
            grown = bool(more)
            ours |= more
        found = collections.defaultdict(list)
        for pid in sorted(ours & set(parents)):
            if pid != os.getpid():
                found[names[pid]].append(pid)
        return found
