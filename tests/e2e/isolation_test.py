"""What happens to one session never harms another, the daemon, or what comes after."""
import os
import pathlib
import re
import signal
import unittest

import programs
import server

CLIENTS = {"longwire-link", "longwire-guard"}


def finish(process, seconds=60):
    out, err = process.communicate(timeout=seconds)
    return server.Result(process.returncode, "READY\n" + out, err, 0)


class IsolationTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(server.Server(warm_workers=1))

    def expect_steady(self, process):
        self.assertIsNone(programs.what_is_wrong("steady", finish(process)),
                          self.longwire.log_tail())

    def expect_next_program_right(self):
        result = self.longwire.run("vector_add.static")
        self.assertIsNone(programs.what_is_wrong("vector_add", result), self.longwire.log_tail())

    def leased_bytes(self):
        """What all devices have lent to sessions, and to workers that wait for one."""
        return sum(device.get("leased", 0) for device in self.longwire.status()["devices"])

    def test_a_killed_program_leaves_nothing_behind(self):
        self.longwire.run("vector_add.static")
        server.wait_for(lambda: self.longwire.status()["sessions"] == [], 2, "the first's end")
        before = self.leased_bytes()
        program = self.longwire.start("steady.static", "hold")
        self.assertEqual(1, len(self.longwire.status()["sessions"]))
        self.assertGreater(self.leased_bytes(), before + (60 << 20))
        workers = self.longwire.processes()["longwire-worker"]
        program.kill()
        program.communicate()
        server.wait_for(lambda: self.longwire.status()["sessions"] == []
                        and self.leased_bytes() <= before, 2, "everything freed")
        left = [pid for pid in workers if server.is_alive(pid)]
        self.assertLessEqual(len(left), 1, "only the warm worker may be left")
        self.expect_next_program_right()

    def test_no_process_has_to_wait_for_room_in_its_table_of_descriptors(self):
        program = self.longwire.start("steady.static", "hold")
        ours = {name: pids for name, pids in self.longwire.processes().items()
                if name.startswith("longwire") and name not in ("longwire-starter",
                                                                "longwire-guard")}
        self.assertEqual(5, len(ours), ours)
        for name, pids in ours.items():
            for pid in pids:
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                self.assertGreaterEqual(int(re.search(r"FDSize:\s+(\d+)", status)[1]), 1024, name)
        program.kill()
        program.communicate()

    def test_a_dead_worker_is_its_own_sessions_error(self):
        door = f"unix:{self.longwire.door}"
        victims = [self.longwire.start("steady.static", "until-error", server=server)
                   for server in (self.longwire.address, door)]
        neighbour = self.longwire.start("steady.shared", "4")
        workers = {session["client_pid"]: session["worker_pid"]
                   for session in self.longwire.status()["sessions"]}
        for victim in victims:
            os.kill(workers[victim.pid], signal.SIGKILL)
            self.expect_told_why(finish(victim, 10))
        self.expect_steady(neighbour)
        self.assertIsNone(self.longwire.children["longwired"].poll(), "the daemon ended")
        self.expect_next_program_right()

    def expect_told_why(self, ended):
        self.assertEqual(0, ended.code, ended)
        self.assertRegex(ended.out, r"READY\nERROR [1-9]\d*\nPASS steady\n")
        self.assertRegex(ended.err, r"\Alongwire: the session has ended: .*signal 9.*\n\Z")

    def test_a_worker_that_falls_over_says_where(self):
        victim = self.longwire.start("steady.static", "until-error")
        [session] = self.longwire.status()["sessions"]
        os.kill(session["worker_pid"], signal.SIGSEGV)
        self.assertRegex(finish(victim, 10).err, "the session has ended: .*signal 11")
        self.longwire.must_log(
            r"died of signal 11 at:\n.*longwire-worker\[\d+\]:   /\S+ \+0x[0-9a-f]+")
        self.expect_next_program_right()

    def test_an_illegal_address_beside_others(self):
        neighbours = [self.longwire.start("steady.static", "4"),
                      self.longwire.start("steady.per-thread", "4")]
        for variant in ("static", "shared"):
            result = self.longwire.run(f"illegal_address.{variant}")
            self.assertIsNone(programs.what_is_wrong("illegal_address", result),
                              self.longwire.log_tail())
        for neighbour in neighbours:
            self.expect_steady(neighbour)
        self.expect_next_program_right()

    def test_nothing_runs_on_after_the_server_is_stopped(self):
        self.longwire.run("vector_add.static")
        for name in ("longwired", "longwire-warden"):
            self.longwire._end(self.longwire.children.pop(name))
        server.wait_for(lambda: not set(self.longwire.processes()) - CLIENTS, 5,
                        "all server processes' end")


if __name__ == "__main__":
    unittest.main()
