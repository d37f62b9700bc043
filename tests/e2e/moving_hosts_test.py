"""Sessions that move from one server to another while their programs run: each computes everything
a second time on the host and counts its kernels on the device. --long: a daemon is killed at every
step of a move."""
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import unittest

import etcd_members
import proxy
import server
from two_servers import HERE, THERE, Step, TwoServers

LONG = "--long" in sys.argv
SEED = int(os.environ.get("LONGWIRE_SEED", "0")) or random.randrange(1 << 30)
TAKES = {"moves_from": ["any"], "resume_grace": "20s"}
LIMIT = 25  # seconds, of which three moves on a busy machine take half
SOON = {**TAKES, "resume_grace": "8s"}  # what is prepared there is thrown away after that
# Where a daemon is killed every day; in the long run everywhere.
KILLED_HERE = HERE if LONG else ("noted", "ended")
KILLED_THERE = THERE if LONG else ("there-prepared", "there-noted")


class MovingHostsTest(TwoServers):
    def setUp(self):
        self.random = random.Random(SEED)
        print(f"LONGWIRE_SEED={SEED}", file=sys.stderr)

    def serve(self, here=TAKES, there=TAKES, **options):
        self.both = [self.enterContext(server.Server(config=json.dumps(config), **options))
                     for config in (here, there)]
        return self.both

    def test_there_and_back_at_random_moments(self):
        here, there = self.serve()
        program = self.start(here)
        for _ in range(20 if LONG else 4):
            time.sleep(self.random.random() * 0.5)
            session = self.session(here)
            moved = self.migrate(here, session["id"], there.address)
            self.assertEqual(0, moved.code, (moved, self.logs()))
            self.assertIn(f"has moved to server {there.address}", moved.out)
            now = self.session(there)
            self.assertIn(f"is session {now['id']} there", moved.out)
            self.assertEqual([], here.status()["sessions"])
            self.assertFalse(server.is_alive(session["worker_pid"]))
            self.assertEqual((session["program"], session["client_pid"]),
                             (now["program"], now["client_pid"]))
            here, there = there, here
        time.sleep(0.3)
        self.expect_right(program)
        self.expect_empty()
        # Each server has a line for each session that was there, and a record of its use.
        for one in self.both:
            one.must_log("has moved to server")
            one.must_log("has come from another server.*; its memory came by two connections")
            reasons = [ended.get("reason", "") for ended in one.status()["ended"]]
            self.assertTrue(any("moved to server" in reason for reason in reasons), reasons)

    def test_one_of_two_connections_breaks(self):
        """The session goes on where it is, and can move later."""
        here, there = self.serve()
        way = proxy.Proxy(there.port)
        self.addCleanup(way.close)
        program = self.start(here)
        number = self.session(here)["id"]
        for which in range(2):
            before = len(way.carried)
            with Step(here, "held") as stop:
                move = self.begin(here, number, way.address)
                self.assertTrue(stop.reached(move), self.logs())
                self.assertEqual(2, len(way.carried) - before)
                way.cut_one(before + which)
            _, said = move.communicate(timeout=60)
            self.assertNotEqual(0, move.returncode)
            self.assertRegex(said, "does not move: .*connection.* between the servers broke")
            self.expect_steps(program, here)
        self.assertEqual(0, self.migrate(here, number, way.address).code, self.logs())
        self.expect_right(program)
        self.expect_empty()

    def test_by_one_connection(self):
        here, there = self.serve(variables={"LONGWIRE_DISABLE": "wide-moves"})
        program = self.start(here)
        self.assertEqual(0, self.migrate(here, self.session(here)["id"], there.address).code)
        self.expect_right(program)
        self.assertNotIn("two connections", there.log.read_text())

    def test_a_device_there_and_a_second_move(self):
        """To a device of the other server; and by the device's number within it, where the client
        knows the session by its number there."""
        here, there = self.serve(software_devices=2)
        program = self.start(here)
        moved = self.migrate(here, self.session(here)["id"], f"{there.address}/1")
        self.assertEqual(0, moved.code, (moved, self.logs()))
        self.assertEqual(1, self.session(there)["seats"][0].get("device", 0))
        self.expect_steps(program, there)
        self.assertEqual(0, self.migrate(there, self.session(there)["id"], 0).code, self.logs())
        self.expect_steps(program, there)
        moved = self.migrate(there, self.session(there)["id"], here.address)
        self.assertEqual(0, moved.code, (moved, self.logs()))
        time.sleep(0.3)
        self.expect_right(program)
        self.expect_empty()

    def test_what_cannot_move_goes_on(self):
        here, there = self.serve(there={"resume_grace": "20s"})
        program = self.start(here)
        session = self.session(here)
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            deaf = f"127.0.0.1:{silent.getsockname()[1]}"
            for place, reason in ((there.address, "takes no sessions from '127.0.0.1'; its "
                                   "administrator can add that name to moves_from"),
                                  (f"127.0.0.1:{server.free_port()}", "there is no connection to"),
                                  (deaf, "there is no connection to")):
                began = time.monotonic()
                refused = self.migrate(here, session["id"], place)
                self.assertEqual(1, refused.code, refused)
                self.assertIn(reason, refused.err)
                self.assertLess(time.monotonic() - began, 20)
        for place in ("gpu2:99999", "gpu2/x", ""):
            self.assertEqual(2, self.migrate(here, session["id"], place).code, place)
        self.assertIn("there is no session 5", self.migrate(here, 5, there.address).err)
        self.assertEqual(session["worker_pid"], self.session(here)["worker_pid"])
        there.config_file.write_text(json.dumps({**TAKES, "tenants": [
            {"name": "others", "identities": ["alice"]}]}))
        self.assertEqual(0, there.cli("admin", "reload").code)
        refused = self.migrate(here, session["id"], there.address)
        self.assertIn("does not know the identity 'loopback'", refused.err)
        there.config_file.write_text(json.dumps({**TAKES, "tenants": [
            {"name": "others", "identities": ["loopback"]}]}))
        self.assertEqual(0, there.cli("admin", "reload").code)
        refused = self.migrate(here, session["id"], there.address)
        self.assertIn("belongs to the tenant 'others' here, and to 'default' there", refused.err)
        there.config_file.write_text(json.dumps({**TAKES, "max_sessions": 1}))
        self.assertEqual(0, there.cli("admin", "reload").code)
        self.assertIn("device 7", self.migrate(here, session["id"], f"{there.address}/7").err)
        other = self.start(there)
        refused = self.migrate(here, session["id"], there.address)
        self.assertIn("as many as its max_sessions allows", refused.err)
        self.assertEqual(session["worker_pid"], self.session(here)["worker_pid"])
        self.expect_steps(program, here)
        self.expect_right(other)
        self.expect_right(program)
        self.expect_empty()
        self.assertEqual([], self.notes())

    def test_what_is_no_server_that_takes_sessions(self):
        """It speaks gRPC, and knows nothing of moves: as an older server."""
        here, _ = self.serve()
        program = self.start(here)
        with etcd_members.Members(1) as members:
            refused = self.migrate(here, self.session(here)["id"], members.addresses()[0])
        self.assertEqual(1, refused.code)
        self.assertIn("is older than this one and takes no sessions of other servers", refused.err)
        self.expect_right(program)

    def test_the_server_itself_is_no_other_server(self):
        """Its session would lose the number by which it is known here."""
        here, _ = self.serve()
        program = self.start(here)
        session = self.session(here)["id"]
        refused = self.migrate(here, session, here.address)
        self.assertEqual(1, refused.code, refused)
        self.assertIn("that is the server itself, where the session is", refused.err)
        nowhere = here.cli("admin", "drain", "--to", "")
        self.assertEqual(2, nowhere.code, nowhere)
        self.assertIn("names no server", nowhere.err)
        self.assertEqual(session, self.session(here)["id"])
        self.start(here).kill()  # it takes new ones
        self.expect_right(program)

    def test_a_link_that_may_be_too_old_is_refused(self):
        """What it understands is known since it has connected to this longwired."""
        here, there = self.serve()
        program = self.start(here)
        session = self.session(here)
        links = here.processes()["longwire-link"]
        for link in links:
            os.kill(link, signal.SIGSTOP)
        self.restart(here)
        refused = self.migrate(here, session["id"], there.address)
        for link in links:
            os.kill(link, signal.SIGCONT)
        self.assertEqual(1, refused.code)
        self.assertIn("its link has no connection since longwired was started", refused.err)
        self.expect_steps(program, here)
        self.expect_right(program)

    def test_a_link_that_is_killed_after_the_move(self):
        """The next one goes on at the other server; without a program it ends the session there."""
        here, there = self.serve()
        for killed_too in (False, True):
            program = self.start(here)
            moved = self.migrate(here, self.session(here)["id"], there.address)
            self.assertEqual(0, moved.code, (moved, self.logs()))
            self.expect_steps(program, there)
            if killed_too:
                os.kill(self.session(there)["client_pid"], signal.SIGKILL)
            for link in here.processes()["longwire-link"]:
                os.kill(link, signal.SIGKILL)
            if killed_too:
                program.communicate(timeout=60)
            else:
                self.expect_steps(program, there)
                self.expect_right(program)
            self.expect_empty()

    def test_a_program_that_ends_meanwhile(self):
        """Its session ends at once, wherever it is by then, and not after resume_grace."""
        slow = {**TAKES, "resume_grace": "90s"}
        here, there = self.serve(here=slow, there=slow)
        for step in ("held", "prepared", "ended"):
            with self.subTest(step), Step(here, step) as stop:
                program = self.start(here)
                session = self.session(here)
                move = self.begin(here, session["id"], there.address)
                self.assertTrue(stop.reached(move), self.logs())
                time.sleep(3 if LONG else 0.1)  # then its link has an answer: to wait
                os.kill(session["client_pid"], signal.SIGKILL)
                time.sleep(0.3)
                stop.let_go()
                program.communicate(timeout=60)
                move.communicate(timeout=60)
                self.expect_empty(15)

    def test_a_local_program_is_refused(self):
        here, there = self.serve()
        program = self.start(here, server=f"unix:{here.door}")
        refused = self.migrate(here, self.session(here)["id"], there.address)
        self.assertEqual(1, refused.code)
        self.assertIn("uses the worker's rings itself", refused.err)
        self.expect_right(program)

    def test_another_kind_of_device_is_refused(self):
        """By what the new worker finds, and the program goes on in the old one."""
        here = self.enterContext(server.Server(config=json.dumps(TAKES)))
        there = self.enterContext(server.Server(config=json.dumps(TAKES),
                                                software_memory=1 << 30))
        self.both = [here, there]
        program = self.start(here)
        session = self.session(here)
        refused = self.migrate(here, session["id"], there.address)
        self.assertEqual(1, refused.code)
        self.assertIn("it has another amount of memory", refused.err)
        self.assertEqual(session["worker_pid"], self.session(here)["worker_pid"])
        self.expect_right(program)
        self.expect_empty()

    def test_a_server_with_ten_sessions_is_drained(self):
        here, there = self.serve()
        programs = [self.start(here) for _ in range(10)]
        local = self.start(here, server=f"unix:{here.door}")
        drained = here.cli("admin", "drain", "--to", there.address, timeout=180)
        self.assertEqual(1, drained.code, (drained, self.logs()))  # one is still here
        said = drained.out + drained.err
        self.assertEqual(10, said.count("has moved to server"), said)
        self.assertIn("uses the worker's rings itself", said)
        self.assertEqual((1, 10), (len(here.status()["sessions"]), len(there.status()["sessions"])))
        self.expect_right(local)
        drained = here.cli("admin", "drain", "--to", there.address)
        self.assertEqual(0, drained.code, drained)
        server.wait_for(here.is_unused, 10, "the memory of all workers")
        refused = here.run("allocate.static")
        self.assertIn("lets it run empty", refused.err)
        for program in programs:
            self.expect_right(program)
        self.expect_empty()

    def test_a_time_limit_goes_along(self):
        """Over three moves it ends when it would have ended without."""
        here, there = self.serve()
        begun = time.monotonic()
        program = subprocess.Popen(
            [here.dist / "bin" / "longwire", "run", "--time-limit", f"{LIMIT}s", "--server",
             here.address, "--", here.program("counted_training.static"), "stdin"],
            env=here.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        self.assertEqual("READY\n", server.next_line(program), self.logs())
        ready = time.monotonic()
        for _ in range(3):
            time.sleep(1.5)
            moved = self.migrate(here, self.session(here)["id"], there.address)
            self.assertEqual(0, moved.code, (moved, self.logs()))
            here, there = there, here
        self.restart(here)  # the next daemon knows it, too
        server.wait_for(lambda: program.poll() is not None, 20, "the end of its limit")
        # It began before READY, and is looked at four times a second.
        self.assertLess(time.monotonic() - ready, LIMIT + 1)
        self.assertGreater(time.monotonic() - begun, LIMIT - 4)  # each move may cost a second of it
        self.assertRegex(program.communicate()[1], "its time limit .*is over")
        self.expect_empty()

    def settle(self, move, program, step):
        """A daemon was killed at this step. Returns the program's exit code: its session is at one
        server, or has ended with an error that says why."""
        move.communicate(timeout=90)
        self.expect_one_owner(3 if LONG else 1.5)
        server.wait_for(lambda: program.poll() is not None or
                        sum(len(one.status()["sessions"]) for one in self.both) == 1,
                        40, f"one owner after {step}: {self.logs()}")
        if program.poll() is None:
            self.expect_steps(program, self.owner())
        out, err = program.communicate(timeout=90)
        if program.returncode == 3:
            self.assertRegex(out + err, "ERROR|moved|another server|lost", (step, self.logs()))
        else:
            self.assertEqual(0, program.returncode, (step, out, err, self.logs()))
            self.assertIn("PASS counted_training", out)
        self.expect_empty(30)
        return program.returncode

    def kill_at(self, step, victim):
        here, there = self.both
        program = self.start(here)
        with Step(victim, step) as stop:
            move = self.begin(here, self.session(here)["id"], there.address)
            self.assertTrue(stop.reached(move), (step, move.poll(), self.logs()))
            self.restart(victim, stop)
        code = self.settle(move, program, step)
        print(f"{step}: the program ended with {code}", file=sys.stderr)
        return code

    def test_the_daemon_that_has_the_session_is_killed(self):
        """Nothing is lost: it has the session, or tells the other one to begin once it is back."""
        self.serve(there=SOON)
        for step in KILLED_HERE:
            with self.subTest(step):
                self.assertEqual(0, self.kill_at(step, self.both[0]))

    def test_the_daemon_that_gets_the_session_is_killed(self):
        """Lost is a session that has gone from here and not begun there."""
        self.serve(there=SOON)
        for step in KILLED_THERE:
            with self.subTest(step):
                self.assertEqual(3 if step == "there-noted" else 0,
                                 self.kill_at(step, self.both[1]))

    def test_a_session_that_is_lost_ends_with_the_reason(self):
        """It had gone from here, and the other daemon ended before it began there."""
        here, there = self.serve(there=SOON)
        program = self.start(here)
        with Step(here, "ended") as stop:
            move = self.begin(here, self.session(here)["id"], there.address)
            self.assertTrue(stop.reached(move), self.logs())
            self.restart(there)
        out, err = move.communicate(timeout=60)
        self.assertEqual(1, move.returncode, out)
        out, err = program.communicate(timeout=60)
        self.assertEqual(3, program.returncode, (out, err))
        self.assertIn("it was lost on its way to another server", err)
        self.expect_empty()
        self.assertEqual([], self.notes())

    def test_both_daemons_are_killed_once_it_has_begun(self):
        here, there = self.serve(there=SOON)
        program = self.start(here)
        with Step(here, "begun") as stop:
            move = self.begin(here, self.session(here)["id"], there.address)
            self.assertTrue(stop.reached(move), self.logs())
            self.restart(here, stop)
            self.restart(there)
        self.assertEqual(0, self.settle(move, program, "begun"))

    def test_silence_is_no_permission(self):
        """A session that had gone begins there only if the server that had it says so: nobody else
        can, and what nobody says is thrown away."""
        here, there = self.serve(there={**TAKES, "resume_grace": "5s"})
        program = self.start(here)
        with Step(here, "prepared") as stop:
            move = self.begin(here, self.session(here)["id"], there.address)
            self.assertTrue(stop.reached(move), self.logs())
            self.kill(here, stop)
        server.wait_for(there.is_unused, 20, f"the end of what was prepared {self.logs()}")
        here.start_daemon()
        move.communicate(timeout=60)
        self.expect_steps(program, here)
        self.expect_right(program)
        self.expect_empty()

    def test_others_are_answered_meanwhile(self):
        here, there = self.serve()
        program = self.start(here)
        number = self.session(here)["id"]
        with Step(here, "held") as stop:
            move = self.begin(here, number, there.address)
            self.assertTrue(stop.reached(move), self.logs())
            self.assertIn(f"stands still while it moves to server {there.address}",
                          here.cli("status").out)
            self.assertEqual(0, here.run("allocate.static").code)
            refused = self.migrate(here, number, there.address)
            self.assertIn("is moving already", refused.err)
            time.sleep(3)  # its client waits beyond the moment of an answer
        out, err = move.communicate(timeout=60)
        self.assertEqual(0, move.returncode, (out, err, self.logs()))
        self.expect_steps(program, there)
        self.expect_right(program)


if __name__ == "__main__":
    if LONG:
        sys.argv.remove("--long")
    unittest.main()
