"""Sessions whose memory together is more than the device's: what is idle is moved to the host's
memory, comes back before its next work as it was and where it was, and nobody reads another's."""
import os
import signal
import subprocess
import unittest

import server
import tenants

MIB = 1 << 20
MEMORY = 512 * MIB
EACH = 300 * MIB  # two of these are more than the device has
PIECE = 50 * MIB


class Player:
    """A program that takes a turn on request."""

    def __init__(self, longwire, tenant, memory=EACH, piece=PIECE, **variables):
        self.process = subprocess.Popen(
            longwire.command(longwire.program("take_turns.static"), str(memory), str(piece)),
            env=longwire.environment_of(tenant, **variables), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def begin(self, word):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def hear(self):
        return server.next_line(self.process).strip()

    def tell(self, word):
        self.begin(word)
        return self.hear()

    def end(self):
        """What it says to the end."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGCONT)
            try:
                self.said = self.process.communicate("end\n", timeout=60)
            except BrokenPipeError:
                self.said = self.process.communicate(timeout=60)
        return self.said


class Sessions(unittest.TestCase):
    host_memory = "512MiB"
    reserved = "2MiB"
    variables = {}

    def setUp(self):
        self.longwire = self.enterContext(tenants.TenantServer(
            {"first": {}, "second": {"admin": True}, "urgent": {"priority": "latency_critical"},
             "safe": {"memory_reserved": self.reserved}},
            {"memory": {"swap_host_memory": self.host_memory}},
            software_memory=MEMORY, warm_workers=2, variables=self.variables))
        server.wait_for(lambda: self.device().get("swap_host_memory", 0) >= self.ready, 20,
                        "the host's memory")

    @property
    def ready(self):
        return int(self.host_memory.removesuffix("MiB")) * MIB

    def play(self, tenant, **more):
        player = Player(self.longwire, tenant, **more)
        self.addCleanup(player.end)
        return player

    def enter(self, tenant, **more):
        player = self.play(tenant, **more)
        self.assertEqual("READY", player.hear(), self.longwire.log_tail())
        return player

    def device(self):
        return self.longwire.status_as("second")["devices"][0]

    def moved(self, way="out"):
        return self.device().get(f"swapped_{way}", 0)

    def worker_of(self, player):
        [session] = [session for session in self.longwire.status_as("second")["sessions"]
                     if session["client_pid"] == player.process.pid]
        return session["worker_pid"]

    def expect_turn(self, player, number, memory=EACH):
        self.assertEqual(f"turn {number} of {memory // MIB} nodes", player.tell("turn"),
                         self.longwire.log_tail())

    def expect_whole(self, player):
        self.assertEqual(f"checked {EACH} bytes", player.tell("check"), self.longwire.log_tail())

    def expect_all_freed(self):
        server.wait_for(lambda: self.device().get("swapped", 0) == 0, 20, "an empty host memory")
        server.wait_for(lambda: self.device().get("leased", 0) <= 128 * MIB, 20, "all memory")


class SwapTest(Sessions):
    def test_two_take_turns_and_find_everything_as_and_where_it_was(self):
        players = [self.enter("first"), self.enter("second")]
        rounds = 8
        for number in range(1, rounds + 1):
            for player in players:
                self.expect_turn(player, number)
        for player in players:
            self.expect_whole(player)
        # What is missing is moved each time, in whole chunks, and no more.
        changes = 2 * rounds + 2
        self.assertGreaterEqual(self.moved(), (changes - 1) * 100 * MIB)
        self.assertLess(self.moved(), (changes + 1) * 200 * MIB)
        self.assertGreater(self.moved("in"), 0)
        for player in players:
            self.assertIn("PASS take_turns", player.end()[0])
        self.expect_all_freed()

    def test_sessions_of_one_tenant_take_turns_too(self):
        players = [self.enter("first"), self.enter("first")]
        for number in (1, 2):
            for player in players:
                self.expect_turn(player, number)

    def test_latency_critical_memory_stays_and_makes_others_leave(self):
        urgent = self.enter("urgent")
        self.assertIn("out of memory", self.play("first").end()[0])
        self.assertEqual(0, self.moved())
        self.expect_turn(urgent, 1)
        urgent.end()
        self.expect_all_freed()
        idle = self.enter("first")
        self.expect_turn(self.enter("urgent"), 1)
        self.assertGreater(self.moved(), 0)
        self.assertIsNone(idle.process.poll())

    def test_memory_stays_while_its_kernel_runs(self):
        working, wants = self.enter("first"), None
        self.assertEqual("busy", working.tell("busy"))
        before = self.device().get("leased", 0)
        wants = self.play("second")
        server.wait_for(lambda: len(self.longwire.status_as("second")["sessions"]) == 2, 20,
                        "the second session")
        for _ in range(10):
            self.assertEqual(0, self.moved())
        self.assertGreaterEqual(self.device()["leased"], before)
        self.assertEqual("released", working.tell("release"))
        self.assertEqual("READY", wants.hear(), self.longwire.log_tail())
        self.expect_turn(wants, 1)
        self.expect_turn(working, 1)
        self.expect_whole(working)

    def test_who_waits_for_its_memory_holds_nobody_up_and_can_end(self):
        other = self.enter("urgent", memory=PIECE)
        away, here = (self.enter(name, memory=4 * PIECE) for name in ("first", "second"))
        self.assertEqual("busy", here.tell("busy"))
        away.begin("turn")
        for number in range(1, 4):
            self.expect_turn(other, number, PIECE)
        self.assertIsNone(away.process.poll())
        away.process.kill()
        server.wait_for(lambda: len(self.longwire.status_as("second")["sessions"]) == 2, 20,
                        "the end of the waiting session")
        self.assertEqual("released", here.tell("release"))
        self.expect_turn(here, 1, 4 * PIECE)

    def test_who_waits_gets_its_memory_when_the_other_rests(self):
        away, here = self.enter("first"), self.enter("second")
        self.assertEqual("busy", here.tell("busy"))
        away.begin("turn")
        self.assertEqual("released", here.tell("release"))
        self.assertEqual(f"turn 1 of {EACH // MIB} nodes", away.hear())
        self.expect_whole(here)

    def test_what_is_away_goes_with_its_session(self):
        for victim in ("program", "worker"):
            away, here = self.enter("first"), self.enter("second")
            self.assertGreater(self.device()["swapped"], 0)
            if victim == "program":
                away.process.kill()
            else:
                os.kill(self.worker_of(away), signal.SIGKILL)
            server.wait_for(lambda: self.device().get("swapped", 0) == 0, 20, victim)
            self.expect_turn(here, 1)
            self.expect_whole(here)
            for player in (away, here):
                player.end()
            self.expect_all_freed()

    def test_a_worker_that_does_not_let_go_is_ended_and_says_why(self):
        stopped = self.enter("first")
        os.kill(self.worker_of(stopped), signal.SIGSTOP)
        self.expect_turn(self.enter("second"), 1)
        stopped.begin("turn")
        out, err = stopped.end()
        self.assertIn("FAIL", out)
        self.longwire.must_log("did not let go of its own within")
        self.assertIn("another session needs memory of the device", err)

    def test_new_memory_holds_nothing_of_what_left(self):
        filled = self.enter("first")
        reader = self.enter("second", memory=PIECE)
        for number in range(1, 4):
            self.assertEqual("more cudaSuccess", reader.tell(f"more {100 * MIB}"))
            self.expect_turn(filled, number)
        self.assertGreater(self.moved(), 0)

    def test_a_session_larger_than_the_device_is_refused_with_a_sentence(self):
        player = self.enter("first")
        self.enter("second", memory=PIECE)
        self.assertEqual("more cudaErrorMemoryAllocation", player.tell(f"more {250 * MIB}"))
        self.longwire.must_log(r"the session would have \d+ bytes, more than the device's")
        self.expect_turn(player, 1)

    def test_the_keepers_end_is_told_and_others_come(self):
        away, here = self.enter("first"), self.enter("second")
        [keeper] = self.longwire.processes()["longwire-keeper"]
        os.kill(keeper, signal.SIGKILL)
        away.begin("turn")
        out, err = away.end()
        self.assertIn("the keeper of the device's memory has ended", err, out)
        here.end()
        server.wait_for(lambda: self.device().get("keeper_pid") not in (None, keeper) and
                        self.device().get("swap_host_memory", 0) == self.ready, 30,
                        "the next keeper")
        self.expect_turn(self.enter("first"), 1)

    def test_turns_go_on_at_the_next_daemon(self):
        players = [self.enter("first"), self.enter("second")]
        daemon = self.longwire.children.pop("longwired")
        daemon.kill()
        daemon.wait()  # it listens until then
        self.longwire.start_daemon()
        for player in players:
            self.expect_turn(player, 1)
            player.end()
        self.expect_all_freed()

    def test_the_timeline_and_the_map_show_it(self):
        picture = self.longwire.runtime / "memory.svg"
        first = self.enter("first")
        watching = subprocess.Popen(
            [self.longwire.dist / "bin" / "longwire", "memory", "--server", self.longwire.address,
             "--timeline", picture, "--seconds", "12"], env=self.longwire.environment_of("second"),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.assertIn("watching", watching.stderr.readline())
        self.enter("second")
        self.expect_turn(first, 1)
        shown = server.run([self.longwire.dist / "bin" / "longwire", "memory", "--server",
                            self.longwire.address], self.longwire.environment_of("second"), 60)
        self.assertIn("in the host's memory", shown.out)
        _, err = watching.communicate(timeout=60)
        self.assertEqual(0, watching.returncode, err)
        for kind in ("swap-out", "swap-in"):
            self.assertIn(f">{kind}</text>", picture.read_text())


class LittleRoomTest(Sessions):
    host_memory = "400MiB"

    def test_two_change_places_piece_by_piece(self):
        players = [self.enter("first"), self.enter("second")]
        for number in range(1, 5):
            for player in players:
                self.expect_turn(player, number)
        for player in players:
            self.expect_whole(player)


class ReservedTest(Sessions):
    reserved = "400MiB"

    def test_reserved_memory_stays(self):
        safe = self.enter("safe")
        self.assertIn("FAIL", self.play("first").end()[0])
        self.assertEqual(0, self.moved())
        self.expect_turn(safe, 1)


class OffTest(Sessions):
    variables = {"LONGWIRE_DISABLE": "swap"}
    ready = 0

    def test_nothing_is_moved(self):
        first = self.enter("first")
        self.assertIn("FAIL", self.play("second").end()[0])
        self.assertEqual(0, self.device().get("swap_host_memory", 0))
        self.expect_turn(first, 1)


if __name__ == "__main__":
    unittest.main()
