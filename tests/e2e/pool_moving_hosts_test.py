"""Sessions of a pool that move from one of its hosts to another: what is promised for them is at
both while they move, and at the one where they are afterwards, whoever is killed meanwhile. --long:
a daemon is killed at every step of a move."""
import json
import signal
import subprocess
import sys
import time
import unittest

import pool_history
import pool_servers
import server
from two_servers import HERE, THERE, Step, TwoServers

LONG = "--long" in sys.argv
KEYS = {"moves_from": ["pool"], "resume_grace": "20s"}
SOON = {**KEYS, "resume_grace": "8s"}
COUNTED = "counted"  # a tenant whose sessions are counted over the pool
KILLED_HERE = ("placed", *HERE) if LONG else ("placed", "prepared", "ended")
KILLED_THERE = THERE if LONG else ("there-prepared", "there-noted")


class PoolMovingHostsTest(TwoServers):
    def serve(self, keys=KEYS, names="ab", **options):
        self.pool = self.enterContext(pool_servers.Pool(names=names, keys=keys, **options))
        self.both = list(self.pool.servers.values())
        self.name = {one: name for name, one in self.pool.servers.items()}

    def begun(self):
        """A program, the host where it is, and the other one."""
        program = self.start(self.both[0])
        here = self.owner()
        (there,) = [one for one in self.both if one is not here]
        return program, here, there

    def claims(self):
        """How many there are at each host."""
        return {name: len(claims) for name, claims in self.pool.claims().items()}

    def expect_claims(self, of, count=1):
        """All are at that host in the end, and in state OPEN; of None: there are none."""
        def settled():
            claims = self.pool.claims()
            at = claims.pop(of and self.name[of], {})
            return len(at) == (count if of else 0) and not any(claims.values()) and \
                all(one["state"] == "OPEN" for one in at.values())
        server.wait_for(settled, 60, f"claims at {of and self.name[of]}, they are "
                                     f"{self.pool.claims()}: {self.logs()}")

    def expect_history(self, **about):
        self.expect_claims(None)
        history = self.pool.etcd.history()
        self.assertEqual([], pool_history.Checker(**about).replay(history))
        return history

    def test_there_and_back(self):
        """By the host's name in the pool, by its address, and to one of its devices."""
        self.serve()
        program, here, there = self.begun()
        for place in (self.name[there], here.address, f"{self.name[there]}/1"):
            session = self.session(here)
            moved = self.migrate(here, session["id"], place)
            self.assertEqual(0, moved.code, (moved, self.logs()))
            self.assertIn(f"has moved to server {there.address}", moved.out)
            now = self.session(there)
            self.assertEqual(session["client_pid"], now["client_pid"])
            self.assertEqual([], here.status()["sessions"])
            self.expect_claims(there)
            [claim] = self.pool.claims()[self.name[there]].values()
            self.assertEqual([now["seats"][0].get("device", 0)], claim["devices"])
            here, there = there, here
        self.assertEqual(1, now["seats"][0].get("device", 0))
        time.sleep(0.3)
        self.expect_right(program)
        history = self.expect_history()
        # What the checker would say to one that comes from nowhere.
        revision, key, moved = next(one for one in history if one[1].startswith("claim/") and
                                    one[2] and "from" in one[2])
        checker = pool_history.Checker()
        self.assertEqual([], checker.replay([one for one in history if one[0] < revision]))
        for start in {**moved["from"], "number": "77"}, {**moved["from"], "host": "c"}:
            found = checker.with_planted((key, {**moved, "from": start}))
            self.assertTrue(any("comes from" in fault for fault in found), found)

    def test_where_it_does_not_go(self):
        self.serve()
        program, here, there = self.begun()
        session = self.session(here)
        for place, reason in ((self.name[here], "it is at that host already"),
                              ("gpu9", "the pool has no host 'gpu9"),
                              (f"{self.name[there]}/7", "device 7")):
            refused = self.migrate(here, session["id"], place)
            self.assertEqual(1, refused.code, (place, refused))
            self.assertIn(reason, refused.err, self.logs())
        self.assertEqual(0, here.cli("admin", "cordon", self.name[there]).code)
        refused = self.migrate(here, session["id"], self.name[there])
        self.assertIn("is taken out of service", refused.err)
        self.assertEqual(0, here.cli("admin", "uncordon", self.name[there]).code)
        alone = self.enterContext(server.Server(config=json.dumps({"moves_from": ["any"]})))
        refused = self.migrate(here, session["id"], alone.address)
        self.assertIn("sessions of a pool move to its hosts alone", refused.err)
        # And from outside nothing comes in.
        self.both.append(alone)
        other = self.start(alone)
        refused = self.migrate(alone, self.session(alone)["id"], here.address)
        self.assertIn("is in a pool, whose sessions have their places from the pool", refused.err)
        self.expect_right(other)
        self.both.remove(alone)
        self.assertEqual(session["worker_pid"], self.session(here)["worker_pid"])
        self.expect_claims(here)
        self.expect_right(program)
        self.expect_history()

    def test_nobody_is_trusted_by_default(self):
        """A host that takes no sessions is promised none, not even by a drain."""
        self.serve(keys={"resume_grace": "20s"})
        program, here, there = self.begun()
        refused = self.migrate(here, self.session(here)["id"], self.name[there])
        self.assertIn("its administrator can add pool to moves_from", refused.err)
        self.assertEqual(0, here.cli("admin", "drain", self.name[here]).code)
        time.sleep(5)
        self.assertEqual(1, len(here.status()["sessions"]), self.logs())
        self.expect_right(program)
        history = self.expect_history()
        self.assertFalse([key for _, key, _ in history
                          if key.startswith(f"claim/{self.name[there]}/")])

    def with_another_place(self):
        """The claim is one of a program that has just been placed: whoever knows its ticket may
        open a session, and bring none. Returns what became of the move."""
        program, here, there = self.begun()
        with Step(here, "placed") as stop:
            move = self.begin(here, self.session(here)["id"], self.name[there])
            self.assertTrue(stop.reached(move), self.logs())
            [(number, claim)] = self.pool.claims()[self.name[there]].items()
            del claim["from"]
            self.pool.etcd.put(f"claim/{self.name[there]}/{number}", claim)
        out, err = move.communicate(timeout=60)
        self.expect_claims(here if move.returncode else there)
        self.expect_right(program)
        self.expect_history()
        return move.returncode, out + err

    def test_a_place_of_another_kind_is_none(self):
        self.serve()
        code, said = self.with_another_place()
        self.assertEqual(1, code, (said, self.logs()))
        self.assertIn("the pool has promised no place here to the session", said)

    def test_a_place_that_nobody_looks_at_is_taken(self):
        self.serve(variables={"LONGWIRE_DISABLE": "moves_place"})
        self.assertEqual(0, self.with_another_place()[0], self.logs())

    def test_a_host_is_drained(self):
        """From another host. Its sessions go, but for one that cannot, and none stays promised."""
        self.serve()
        self.assertEqual(0, self.both[0].cli("admin", "cordon", "b").code)
        here, there = self.both
        programs = [self.start(here) for _ in range(4)]
        local = self.start(here, server=f"unix:{here.door}")
        self.assertEqual(0, there.cli("admin", "uncordon", "b").code)
        self.assertEqual(0, there.cli("admin", "drain", "a").code)
        server.wait_for(lambda: len(there.status()["sessions"]) == 4, 60, f"moves {self.logs()}")
        server.wait_for(lambda: self.claims() == {"a": 1, "b": 4}, 20, "the claims")
        server.wait_for(lambda: "uses the worker's rings itself" in here.log.read_text(), 20,
                        "the refusal of the one that cannot")
        self.assertEqual(1, len(here.status()["sessions"]))
        self.expect_right(local)
        self.expect_claims(there, 4)
        self.assertEqual(0, there.cli("admin", "uncordon", "a").code)
        for program in programs:
            self.expect_right(program)
        self.expect_history()

    def test_a_drained_host_whose_daemon_is_killed(self):
        """The next one goes on with it."""
        self.serve(keys=SOON)
        here, there = self.both
        self.assertEqual(0, here.cli("admin", "cordon", "b").code)
        programs = [self.start(here) for _ in range(3)]
        self.assertEqual(0, there.cli("admin", "uncordon", "b").code)
        with Step(here, "prepared") as stop:
            self.assertEqual(0, there.cli("admin", "drain", "a").code)
            server.wait_for(stop.said.exists, 30, f"the first move {self.logs()}")
            self.restart(here, stop)
        server.wait_for(lambda: len(there.status()["sessions"]) == 3, 90, f"moves {self.logs()}")
        self.expect_claims(there, 3)
        for program in programs:
            self.expect_right(program)
        self.expect_history(killed=["a"])

    def test_it_counts_once(self):
        """Against a limit over the pool: all that the tenant may have can move, and nobody else of
        it gets in meanwhile."""
        self.serve(keys={**KEYS, "tenants": [{"name": COUNTED, "identities": ["loopback"],
                                              "admin": True}]},
                   pool_keys={"limits": [{"tenant": COUNTED, "sessions": 1}]})
        program, here, there = self.begun()
        with Step(here, "offered") as stop:
            move = self.begin(here, self.session(here)["id"], self.name[there])
            self.assertTrue(stop.reached(move), self.logs())
            self.assertEqual({"a": 1, "b": 1}, self.claims())
            self.assertIn(f"the tenant '{COUNTED}' has 1 sessions in the pool already",
                          here.run("allocate.static").err)
        out, err = move.communicate(timeout=60)
        self.assertEqual(0, move.returncode, (out, err, self.logs()))
        self.expect_claims(there)
        self.assertIn(f"the tenant '{COUNTED}' has 1 sessions", there.run("allocate.static").err)
        self.expect_right(program)
        self.expect_history(limits={COUNTED: (1, 0)})

    def settle(self, move, program, step):
        """Returns the program's exit code: its session is at one host, which alone has a claim for
        it, or has ended with an error that says why."""
        move.communicate(timeout=90)
        self.expect_one_owner(1.5)
        server.wait_for(lambda: set(self.pool.joined()) == {"a", "b"}, 30, "both hosts")
        server.wait_for(lambda: program.poll() is not None or
                        sum(len(one.status()["sessions"]) for one in self.both) == 1,
                        40, f"one owner after {step}: {self.logs()}")
        if program.poll() is None:
            self.expect_claims(self.owner())
            self.expect_steps(program, self.owner())
        out, err = program.communicate(timeout=90)
        if program.returncode == 3:
            self.assertRegex(out + err, "ERROR|moved|another server|lost", (step, self.logs()))
        else:
            self.assertEqual(0, program.returncode, (step, out, err, self.logs()))
        self.expect_claims(None)
        return program.returncode

    def kill_at(self, step, is_here):
        program, here, there = self.begun()
        victim = here if is_here else there
        with Step(victim, step) as stop:
            move = self.begin(here, self.session(here)["id"], self.name[there])
            self.assertTrue(stop.reached(move), (step, move.poll(), self.logs()))
            self.restart(victim, stop)
        code = self.settle(move, program, step)
        print(f"{step}: the program ended with {code}", file=sys.stderr)
        return code

    def test_the_daemon_that_has_the_session_is_killed(self):
        self.serve(keys=SOON)
        for step in KILLED_HERE:
            with self.subTest(step):
                self.assertEqual(0, self.kill_at(step, True))
        self.expect_history(killed=["a", "b"])

    def test_the_daemon_that_gets_the_session_is_killed(self):
        self.serve(keys=SOON)
        for step in KILLED_THERE:
            with self.subTest(step):
                self.assertEqual(3 if step == "there-noted" else 0, self.kill_at(step, False))
        self.expect_history(killed=["a", "b"])

    def test_etcd_that_goes_away_meanwhile(self):
        """Once there is a place the move needs etcd no more; later etcd has the session where it
        is."""
        self.serve(members=1)
        program, here, there = self.begun()
        [etcd] = self.pool.etcd.members
        for step in ("placed", "prepared", "noted") if LONG else ("placed", "noted"):
            with self.subTest(step), Step(here, step) as stop:
                move = self.begin(here, self.session(here)["id"], self.name[there])
                self.assertTrue(stop.reached(move), self.logs())
                etcd.process.send_signal(signal.SIGSTOP)
                stop.let_go()
                move.communicate(timeout=90)
                etcd.process.send_signal(signal.SIGCONT)
                self.assertEqual(1 if step == "placed" else 0, move.returncode, self.logs())
            server.wait_for(lambda: set(self.pool.joined()) == {"a", "b"}, 30, "both hosts")
            if move.returncode == 0:
                here, there = there, here
            self.assertIs(here, self.owner())
            self.expect_claims(here)
            self.expect_steps(program, here)
        self.expect_right(program)
        self.expect_history()

    def test_a_time_limit_goes_along(self):
        self.serve()
        here = self.both[0]
        program = subprocess.Popen(
            [here.dist / "bin" / "longwire", "run", "--time-limit", "12s", "--server",
             here.address, "--", here.program("counted_training.static"), "stdin"],
            env=here.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        begun = time.monotonic()
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        self.assertEqual("READY\n", server.next_line(program), self.logs())
        for _ in range(2):
            here = self.owner()
            (there,) = [one for one in self.both if one is not here]
            time.sleep(2)
            moved = self.migrate(here, self.session(here)["id"], self.name[there])
            self.assertEqual(0, moved.code, (moved, self.logs()))
        self.expect_claims(there)
        [claim] = self.pool.claims()[self.name[there]].values()
        self.assertLess(int(claim["timeLimit"]), 11)
        server.wait_for(lambda: program.poll() is not None, 20, "the end of its limit")
        # The session began a little later than the clock here, and is looked at now and then.
        self.assertLess(time.monotonic() - begun, 13.5)
        self.assertIn("its time limit is over", program.communicate()[1])
        self.expect_history()


if __name__ == "__main__":
    if LONG:
        sys.argv.remove("--long")
    unittest.main()
