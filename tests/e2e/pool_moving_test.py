"""Sessions in a pool move between the devices of their own host, and are suspended and restored
there: what is theirs in etcd goes with them, and nothing is anybody else's meanwhile."""
import signal
import subprocess
import tempfile
import time
import unittest

import pool_history
import pool_servers
import server

MIB = pool_servers.MIB
COUNTED = "counted"  # a tenant whose sessions are counted over the pool


class PoolMovingTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="longwire-kept-"))
        self.programs = []

    def serve(self, **options):
        self.pool = self.enterContext(pool_servers.Pool(
            names="ab", keys={"checkpoint_dir": f"{self.folder}/sessions",
                              **options.pop("keys", {})}, **options))
        self.addCleanup(lambda: pool_servers.end(self.programs))
        self.host = self.pool.servers["a"]

    def popen(self, program, *words, memory=None, front="b"):
        """At host a, wherever it is asked for."""
        command = [self.host.dist / "bin" / "longwire", "run", "--label", "name=a",
                   *(["--memory", memory] if memory else []), "--server",
                   self.pool.servers[front].address, "--", self.host.program(program), *words]
        process = subprocess.Popen(command, env=self.host.environment(), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.programs.append(process)
        return process

    def start(self, program="counted_training.static", **asked):
        words = ["stdin"] if program.startswith("counted_training") else []
        process = self.popen(program, *words, **asked)
        self.pool.await_ready(process)
        return process

    def session(self, program):
        (found,) = [one for one in self.host.status()["sessions"]
                    if one["client_pid"] == program.pid]
        return found

    def device(self, program):
        (seat,) = self.session(program)["seats"]
        return seat.get("device", 0)

    def admin(self, *words):
        return self.host.cli("admin", *map(str, words), timeout=120)

    def does(self, *words):
        done = self.admin(*words)
        self.assertEqual(0, done.code, (done, self.host.log_tail()))
        return done.out

    def refused(self, reason, *words):
        done = self.admin(*words)
        self.assertEqual(1, done.code, done)
        self.assertIn(reason, done.err, self.host.log_tail())

    def claimed(self):
        """The devices of each claim at the host."""
        return sorted(one["devices"] for one in self.pool.claims()["a"].values())

    def await_claims(self, *devices):
        server.wait_for(lambda: self.claimed() == sorted(devices), 20,
                        f"claims {devices}, they are {self.claimed()}")

    def ends_right(self, program):
        out, err = program.communicate(timeout=60)
        self.assertEqual((0, ""), (program.returncode, err), (out, self.host.log_tail()))
        self.assertRegex(out, r"RESULT [0-9a-f]{8} of \d+ steps, \d+ launches")

    def ends(self, *programs, **about):
        for program in programs:
            self.ends_right(program)
        pool_servers.end(one for one in self.programs if one not in programs)
        server.wait_for(self.pool.no_claims, 20, "the end of all claims")
        history = self.pool.etcd.history()
        self.assertEqual([], pool_history.Checker(**about).replay(history))
        return history

    def test_a_claim_goes_with_its_session(self):
        self.serve()
        program = self.start()
        [number] = self.pool.claims()["a"]
        here = self.device(program)
        for turn in (1 - here, here, 1 - here):
            self.does("migrate", self.session(program)["id"], turn)
            self.assertEqual(turn, self.device(program))
            self.await_claims([turn])
        self.assertEqual([number], list(self.pool.claims()["a"]))
        history = self.ends(program)
        key = f"claim/a/{number}"
        had = [value and value["devices"] for _, name, value in history if name == key]
        for both in ([here, 1 - here], [1 - here, here]):
            self.assertIn(both, had)
        # What the checker would say to one that is given twice, and to one that jumps.
        until = next(i for i, (_, name, value) in enumerate(history)
                     if name == key and value["devices"] == [here] and value["state"] == "OPEN") + 1
        checker = pool_history.Checker()
        self.assertEqual([], checker.replay(history[:until]))
        claim = checker.keys[key]
        self.assertNotEqual([], checker.with_planted(("claim/a/77", claim)))
        jumped = checker.with_planted((key, {**claim, "devices": [1 - here]}))
        self.assertTrue(any("without both" in fault for fault in jumped), jumped)

    def test_a_device_is_drained(self):
        self.serve()
        programs = [self.start() for _ in range(4)]
        self.await_claims([0], [0], [1], [1])
        said = self.does("drain", "1")
        self.assertEqual(2, said.count("has moved to device 0"), said)
        self.await_claims([0], [0], [0], [0])
        self.does("drain", "1", "--off")
        self.ends(*programs)

    def test_what_is_promised_to_others_stays_theirs(self):
        self.serve()
        moves = self.start(memory="300MiB")
        here = self.device(moves)
        self.start("hold_session.static", memory="300MiB")
        self.await_claims([0], [1])
        self.refused(f"the pool has promised device {1 - here} to others", "migrate",
                     self.session(moves)["id"], 1 - here)
        self.refused("device 7", "migrate", self.session(moves)["id"], 7)
        self.assertEqual(here, self.device(moves))
        self.await_claims([0], [1])
        self.ends(moves)

    def test_without_etcd_nothing_moves(self):
        self.serve(members=1)
        program = self.start()
        here = self.device(program)
        [etcd] = self.pool.etcd.members
        etcd.process.send_signal(signal.SIGSTOP)
        try:
            before = self.session(program)
            refused = self.admin("migrate", before["id"], 1 - here)
            self.assertEqual(1, refused.code, refused)
            self.assertRegex(refused.err, "does not say whether it may|not in the pool now")
            self.assertEqual(before["worker_pid"], self.session(program)["worker_pid"])
        finally:
            etcd.process.send_signal(signal.SIGCONT)

        def moves():
            return self.admin("migrate", self.session(program)["id"], 1 - here).code == 0
        server.wait_for(moves, 30, "a move when etcd is back")
        self.await_claims([1 - here])
        self.ends(program)

    def test_etcd_that_goes_away_meanwhile(self):
        """The session goes on in one of the two workers; later etcd has it where it is."""
        self.serve(members=1)
        program = self.start()
        [etcd] = self.pool.etcd.members
        for moment in (0.02, 0.1, 0.3):
            here = self.device(program)
            move = subprocess.Popen(
                [self.host.dist / "bin" / "longwire", "admin", "migrate",
                 str(self.session(program)["id"]), str(1 - here)], env=self.host.environment(),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(moment)
            etcd.process.send_signal(signal.SIGSTOP)
            move.communicate(timeout=60)
            moved = self.device(program)
            self.assertEqual(1 - here if move.returncode == 0 else here, moved)
            etcd.process.send_signal(signal.SIGCONT)
            server.wait_for(lambda: "host/a" in self.pool.etcd.keys(), 30, "the host in the pool")
            self.await_claims([moved])
        self.ends(program)

    def test_a_daemon_that_is_killed_meanwhile(self):
        self.serve()
        program = self.start()
        for moment in (0.05, 0.2):
            here = self.device(program)
            move = subprocess.Popen(
                [self.host.dist / "bin" / "longwire", "admin", "migrate",
                 str(self.session(program)["id"]), str(1 - here)], env=self.host.environment(),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(moment)
            daemon = self.host.children.pop("longwired")
            daemon.kill()
            daemon.wait()
            self.host.start_daemon()
            move.communicate(timeout=60)
            server.wait_for(lambda: "host/a" in self.pool.etcd.keys(), 30, "the host in the pool")
            if not self.host.status()["sessions"]:
                # Killed between the end of one worker and the beginning of the other.
                program.communicate(timeout=60)
                self.assertEqual(3, program.returncode)
                return self.await_claims()
            self.await_claims([self.device(program)])
        self.ends(program, killed=["a"])

    def test_a_suspended_session_has_no_claim(self):
        self.serve()
        program = self.start()
        here = self.device(program)
        [number] = self.pool.claims()["a"]
        self.does("checkpoint", self.session(program)["id"], "one")
        server.wait_for(self.pool.no_claims, 20, "the end of its claim")
        # Others get what was its, and then it has no place.
        holders = [self.start("hold_session.static", memory="490MiB") for _ in range(2)]
        self.await_claims([0], [1])
        self.refused("device", "restore", "one")
        self.refused("device", "restore", "one", here)
        self.assertEqual(1, len(self.host.status()["suspended"]))
        self.await_claims([0], [1])
        pool_servers.end(holders)
        server.wait_for(self.pool.no_claims, 20, "the end of their claims")
        for name, device in (("one", 1 - here), ("two", here), ("three", None)):
            self.does("restore", name, *([] if device is None else [device]))
            now = self.device(program)
            self.assertIn(now, (0, 1) if device is None else (device,))
            self.await_claims([now])
            self.assertNotIn(number, self.pool.claims()["a"])
            if name != "three":
                following = "two" if name == "one" else "three"
                self.does("checkpoint", self.session(program)["id"], following)
                server.wait_for(self.pool.no_claims, 20, "the end of its claim")
        self.ends(program)

    def test_a_limit_over_the_pool_counts_restored_sessions(self):
        self.serve(keys={"tenants": [{"name": COUNTED, "identities": ["loopback"],
                                      "admin": True}]},
                   pool_keys={"limits": [{"tenant": COUNTED, "sessions": 1}]})
        program = self.start()
        self.does("checkpoint", self.session(program)["id"], "one")
        server.wait_for(self.pool.no_claims, 20, "the end of its claim")
        other = self.start("hold_session.static")
        self.refused(f"'{COUNTED}'", "restore", "one")
        self.assertEqual(1, len(self.host.status()["suspended"]))
        pool_servers.end([other])
        server.wait_for(self.pool.no_claims, 20, "the end of the other's claim")
        self.does("restore", "one")
        self.ends(program, limits={COUNTED: (1, 0)})

    def test_a_program_suspends_itself(self):
        self.serve(keys={"checkpoint_own_sessions": 2})
        program = self.start("driver_own_checkpoint.driver", front="a")
        program.stdin.write("lock\ncheckpoint\n")
        program.stdin.flush()
        self.assertEqual(["0 1", "0 2"],
                         [server.next_line(program).strip() for _ in range(2)])
        server.wait_for(self.pool.no_claims, 20, "the end of its claim")
        program.stdin.write("restore\nunlock\n")
        program.stdin.flush()
        self.assertEqual(["0 1", "0 0"],
                         [server.next_line(program).strip() for _ in range(2)])
        self.await_claims([self.device(program)])
        out, err = program.communicate(timeout=60)
        self.assertEqual((0, "PASS driver_own_checkpoint"), (program.returncode, out.strip()), err)
        self.ends()


if __name__ == "__main__":
    unittest.main()
