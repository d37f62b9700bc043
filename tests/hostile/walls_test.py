#!/usr/bin/env python3
"""What a worker in an attacker's hands can reach of the others: nothing.

attacker.cc takes a worker's place, with the same user and walls. It runs as root: only then are
there other users. The same attempts succeed where the walls are switched off.
"""
import contextlib
import os
import pathlib
import re
import signal
import socket
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import attack  # noqa: E402
import hostile_client  # noqa: E402
import programs  # noqa: E402
import server  # noqa: E402

# What also fails without walls, or is nothing that walls are for.
WITHOUT_WALLS = {"host device memory", "host shared memory segment", "host bpf",
                 "host perf_event_open", "daemon connect"}
# These need no other user: the filter refuses them.
FILTERED = ("signal", "ptrace", "process_vm_readv", "pidfd_getfd", "kcmp", "user namespace",
            "mount", "internet socket", "netlink socket", "perf_event_open", "keyctl", "io_uring",
            "bpf", "connect")
SYSTEM_CALL_BPF = 321
FIRST_UID = 1_900_000_000
CRITICAL = """
tenants:
  - {name: a, identities: [loopback], priority: latency_critical}
"""
TENANTS = """
tenants:
  - {name: a, identities: ["uid:0"]}
  - {name: b, identities: ["uid:12345"]}
"""


class WallsTest(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give workers users of their own")
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="longwire-attack-"))
        os.chmod(folder, 0o755)
        self.folder = pathlib.Path(folder)

    def start(self, **options):
        return self.enterContext(attack.AttackedServer(self.folder, **options))

    def attack(self, **walls):
        """Name → whether it succeeded, of every attempt; and the server."""
        longwire = self.start(**walls)
        program = longwire.start("hold_session.static")
        with contextlib.ExitStack() as stack:
            stack.callback(program.kill)
            victim = longwire.status()["sessions"][0]["worker_pid"]
            self.check_process(victim, **walls)
            found = longwire.attack(victim)
        result = longwire.run("vector_add.static")
        self.assertIsNone(programs.what_is_wrong("vector_add", result), longwire.log_tail())
        return found, longwire

    def check_process(self, pid, walls="separate", system_calls="enforce"):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        uids = re.search(r"^Uid:\t(\d+)\t(\d+)\t(\d+)\t(\d+)$", status, re.M).groups()
        if walls != "separate":
            return
        self.assertEqual(1, len(set(uids)), status)
        self.assertEqual(FIRST_UID + pid, int(uids[0]))
        for line in (r"Cap(Prm|Eff|Bnd|Amb|Inh):\t0+", r"NoNewPrivs:\t1", r"Seccomp:\t2",
                     r"Groups:\t *"):
            self.assertRegex(status, rf"(?m)^{line}$")
        for space in ("mnt", "pid", "ipc", "net", "uts"):
            self.assertNotEqual(os.readlink(f"/proc/self/ns/{space}"),
                                os.readlink(f"/proc/{pid}/ns/{space}"), space)
        score = pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text()
        self.assertEqual("800", score.strip())

    def test_every_attempt_fails(self):
        attempts, longwire = self.attack()
        self.assertGreater(len(attempts), 90, longwire.log_tail(200))
        self.assertEqual([], sorted(name for name, good in attempts.items() if good))
        status = longwire.status()
        self.assertIn("own users", status["walls"])

    def test_without_walls_they_succeed(self):
        attempts, longwire = self.attack(walls="shared_uid", system_calls="off")
        held = {name for name, good in attempts.items() if not good}
        self.assertEqual(set(), held - WITHOUT_WALLS, longwire.log_tail(200))
        self.assertIn("shared_uid", longwire.status()["walls"])

    def test_the_filter_of_system_calls_stands_by_itself(self):
        attempts, longwire = self.attack(walls="shared_uid")
        self.assertEqual([], sorted(name for name, good in attempts.items() if good and
                                    name.partition(" ")[2].startswith(FILTERED)))
        self.assertIn("system calls enforce", longwire.status()["walls"])

    def test_calls_that_are_not_listed_are_logged_or_refused(self):
        for system_calls, said in (("log", True), ("enforce", False)):
            with self.subTest(system_calls), \
                    attack.AttackedServer(self.folder, system_calls=system_calls) as longwire:
                result = longwire.run("vector_add.static")
                self.assertIsNone(programs.what_is_wrong("vector_add", result))
                (self.folder / "targets").write_text("")
                longwire.replace_warm_workers(())
                server.wait_for(lambda: longwire.log_lines("attack over"), 60, "the attack")
                (self.folder / "targets").unlink()
                numbers = longwire.log_lines(r"system call (\d+) .*is not on the list")
                self.assertEqual(1 if said else 0, numbers.count(str(SYSTEM_CALL_BPF)),
                                 longwire.log_tail(200))

    def test_a_control_group_limits_each_worker(self):
        """Where the host gives none, version 2 without delegation, that is said."""
        longwire = self.start(config=CRITICAL, more=(
            "--worker-cgroups", "own", "--worker-host-memory", str(8 << 30),
            "--worker-processes", "300"))
        program = longwire.start("hold_session.static")
        try:
            pid = longwire.status()["sessions"][0]["worker_pid"]
            groups = pathlib.Path(f"/proc/{pid}/cgroup").read_text()
            if "own control groups (" in longwire.status().get("walls_missing", ""):
                self.assertNotIn("/worker-", groups)
                return
            found = dict(re.findall(r"^\d+:(|memory|pids|cpu):(/.*worker-\d+-\d+)$", groups, re.M))
            limits = {"memory": ("memory.limit_in_bytes", 8 << 30), "pids": ("pids.max", 300),
                      "cpu": ("cpu.shares", 10240)}
            if "" in found:
                limits = {"": ("memory.max", 8 << 30)}
            self.assertEqual(set(limits), set(found), groups)
            for name, (file, value) in limits.items():
                path = pathlib.Path("/sys/fs/cgroup", name, found[name].lstrip("/"), file)
                self.assertEqual(str(value), path.read_text().strip(), path)
        finally:
            program.kill()

    def test_no_two_workers_are_one_user(self):
        longwire = self.start()
        running = [longwire.start("hold_session.static") for _ in range(3)]
        try:
            server.wait_for(lambda: len(longwire.workers()) >= 4, 20, "workers")
            uids = [os.stat(f"/proc/{pid}/task").st_uid for pid in longwire.workers()]
            real = [re.search(r"^Uid:\t(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(),
                              re.M)[1] for pid in longwire.workers()]
            self.assertEqual(len(real), len(set(real)), uids)
        finally:
            for program in running:
                program.kill()

    def test_the_starters_end_is_its_workers_end_and_no_more(self):
        longwire = self.start()
        program = longwire.start("hold_session.static")
        victim = longwire.status()["sessions"][0]["worker_pid"]
        os.kill(longwire.processes()["longwire-starter"][0], signal.SIGKILL)
        server.wait_for(lambda: not server.is_alive(victim), 10, "the worker's end")
        program.kill()
        program.communicate()
        for child in longwire.children.values():
            self.assertIsNone(child.poll(), longwire.log_tail())
        # Another one is started, if the last start was not a moment ago.
        server.wait_for(longwire.workers, 10, "a worker of the next starter")
        result = longwire.run("vector_add.static")
        self.assertIsNone(programs.what_is_wrong("vector_add", result), longwire.log_tail())

    def probes(self, longwire):
        """(uid, the files that it reads in its cache) of each worker that had a session."""
        return [(uid, {name.removeprefix("by-") for name in names.split()}) for uid, names in
                longwire.log_lines(r"probe of (\d+) reads(.*)$")]

    def test_a_tenants_next_worker_reads_its_cache_and_no_other_does(self):
        (self.folder / "probe").write_text("")
        longwire = self.start(config=TENANTS)
        os.chmod(longwire.runtime, 0o711)
        # A worker that was there and ends is replaced once: each session has two.
        for uid, probes in ((0, 2), (12345, 4)):
            server.wait_for(longwire.workers, 20, "a warm worker")
            with self.open_without_answer(longwire, uid):
                server.wait_for(lambda: len(self.probes(longwire)) >= probes, 20, "the probes")
        found = self.probes(longwire)
        (one, first), (two, second), (three, third), (four, fourth) = found
        self.assertEqual(4, len({one, two, three, four}), longwire.log_tail(40))
        self.assertEqual([{one}, {one, two}, {three}, {three, four}],
                         [first, second, third, fourth], longwire.log_tail(40))

    def open_without_answer(self, longwire, uid):
        """Asks for a session, which the probe never opens."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with hostile_client.as_user(uid) if uid else contextlib.nullcontext():
            connection.connect(str(longwire.door))
        connection.send(hostile_client.open_request())
        return connection


if __name__ == "__main__":
    unittest.main()
