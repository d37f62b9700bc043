"""A server whose workers are in an attacker's hands (attacker.cc), and what the attacker reaches.

Only as root are there other users. tests/hostile/walls_test.py and tests/gpu/walls.py use it.
"""
import os
import pathlib
import re
import shutil
import signal

import server


class AttackedServer(server.Server):
    """Its workers are the attacker, who becomes a worker while nothing tells otherwise."""

    def __init__(self, folder, walls="separate", system_calls="enforce", more=(), **options):
        build = pathlib.Path(options.get("build") or server.build_folder())
        self.place = pathlib.Path(folder)
        attacker = self.place / "longwire-worker"
        shutil.copy(build / "tests" / "hostile" / "attacker", attacker)
        super().__init__(**options, variables={
            "LONGWIRE_TEST_WORKER": attacker,
            "LONGWIRE_TEST_REAL_WORKER": build / "dist" / "bin" / "longwire-worker"})
        self.walls = walls
        self.system_calls = system_calls
        self.more = more  # options of the warden

    def _start(self, name, *arguments):
        more = ()
        if name == "longwire-warden":
            more = ("--walls", self.walls, "--system-calls", self.system_calls, *self.more)
        super()._start(name, *arguments, *more)

    def workers(self):
        """Also the attacker: both have the name."""
        return self.processes()["longwire-worker"]

    def log_lines(self, pattern):
        return re.findall(pattern, self.log.read_text(errors="replace"), re.M)

    def replace_warm_workers(self, victims):
        """Kills the workers without a session; the warden starts others."""
        for pid in self.workers():
            if pid not in victims:
                os.kill(pid, signal.SIGKILL)

    def targets(self, victim):
        processes = self.processes()
        lines = [f"process worker {victim}"]
        lines += [f"process {name.removeprefix('longwire-')} {processes[name][0]}"
                  for name in ("longwire-warden", "longwire-keeper", "longwired")]
        lines += [f"process starter {pid}" for pid in processes["longwire-starter"][:1]]
        cache = self.runtime / "cache" / "compiled"
        lines += [f"file configuration {self.config_file}",
                  f"file log {self.log}",
                  f"folder runtime {self.runtime}",
                  f"folder caches {cache / 'tenants'}",
                  f"folder tenant_cache {cache / 'tenants' / '=default'}",
                  f"socket warden_socket {self.warden_socket}",
                  "socket local_socket " + str(self.door),
                  f"port daemon {self.port}"]
        (cache / "tenants" / "=default" / "kernel").write_text("compiled")
        return "\n".join(lines) + "\n"

    def attack(self, victim):
        """Name → whether it succeeded, of every attempt of a worker beside the victim's."""
        server.wait_for(lambda: len(self.workers()) > 1, 20, "a warm worker")
        # At once, or a worker would find half of it.
        (self.place / "new").write_text(self.targets(victim))
        (self.place / "new").rename(self.place / "targets")
        self.replace_warm_workers({victim})
        server.wait_for(lambda: self.log_lines("attack over"), 60, "the attack")
        (self.place / "targets").unlink()
        found = self.log_lines(r"attack (.+): (held|SUCCEEDED)")
        self.replace_warm_workers({victim})
        return {name: how == "SUCCEEDED" for name, how in found}
