"""A warden and a daemon on loopback for the length of a `with` block."""
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time


class Server:
    def __init__(self, dist, driver="auto"):
        self.dist = pathlib.Path(dist).resolve()
        self.driver = driver
        self.folder = tempfile.TemporaryDirectory(prefix="longwire-")
        self.processes = []

    def environment(self):
        return dict(os.environ, LONGWIRE_RUNTIME_DIR=self.folder.name)

    def run_command(self, server=None):
        return [self.dist / "bin" / "longwire", "run", "--server",
                server or f"127.0.0.1:{self.port}", "--"]

    def __enter__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        warden = os.path.join(self.folder.name, "warden")
        self.door = os.path.join(self.folder.name, "door")
        log = open(os.path.join(self.folder.name, "log"), "w")
        self.log = log.name
        self._start(log, "longwire-warden", "--socket", warden, "--driver", self.driver)
        self._wait_for(lambda: os.path.exists(warden))
        self._start(log, "longwired", "--listen", f"127.0.0.1:{self.port}", "--door", self.door,
                    "--warden", warden, "--driver", self.driver)
        self._wait_for(self._answers)
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        self.folder.cleanup()

    def _start(self, log, name, *arguments):
        self.processes.append(subprocess.Popen(
            [self.dist / "bin" / name, *arguments], env=self.environment(), stdout=log, stderr=log))

    def _answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 0.2).close()
            return True
        except OSError:
            return False

    @staticmethod
    def _wait_for(condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError("the server did not start")
            time.sleep(0.05)
