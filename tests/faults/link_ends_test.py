#!/usr/bin/env python3
"""Links that end, at any moment and again and again: another one goes on with their programs'
sessions, and nothing is lost, doubled or changed. Kernels count themselves on the device.

link_ends_test.py [NAME…] [--long]
"""
import os
import pathlib
import random
import signal
import sys
import time
import unittest

for folder in ("e2e", "pressure"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / folder))
import keys_server  # noqa: E402
import relay  # noqa: E402
import server  # noqa: E402

LONG = "--long" in sys.argv
GRACE = 3  # seconds
LAUNCH_FAILED = 719


def links(longwire):
    return longwire.processes()["longwire-link"]


def kill_links(longwire, number=signal.SIGKILL):
    """How many there were."""
    pids = links(longwire)
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
    return len(pids)


def train(longwire, seconds, server=None, **environment):
    return longwire.start("counted_training.static", str(seconds), server=server, **environment)


class LinkEndsTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(server.Server(config=f"resume_grace: {GRACE}s\n",
                                                        warm_workers=2))

    def expect_right(self, program, longwire=None):
        out, err = program.communicate(timeout=90)
        said = (out, err, (longwire or self.longwire).log_tail())
        self.assertEqual(0, program.returncode, said)
        self.assertIn("PASS counted_training", out, said)
        self.assertEqual("", err, said)

    def kill_again_and_again(self, times, pause, longwire=None):
        chance = random.Random(times)
        log = (longwire or self.longwire).log
        for _ in range(times):
            time.sleep(chance.uniform(0.2, 1) * pause)
            before = log.read_text().count("resumed")
            kill_links(longwire or self.longwire)
            server.wait_for(lambda: log.read_text().count("resumed") > before, 5, "another link")

    def test_another_link_goes_on(self):
        """In the middle of launches, waits and large copies both ways, of several programs."""
        times = 40 if LONG else 4
        programs = [train(self.longwire, "stdin") for _ in range(2)]
        self.kill_again_and_again(times, 0.5)
        for program in programs:
            self.expect_right(program)
        log = self.longwire.log.read_text()
        self.assertGreater(log.count("resumed"), times, log)
        self.assertEqual(1, len(links(self.longwire)))
        server.wait_for(self.longwire.is_unused, 5, "the sessions' end")

    def test_it_ends_while_there_is_no_connection(self):
        wire = relay.Relay(self.longwire.port)
        self.addCleanup(wire.close)
        program = train(self.longwire, "stdin", server=wire.address)
        target, wire.target = wire.target, ("127.0.0.1", server.free_port())
        wire.cut_all()
        time.sleep(0.5)
        kill_links(self.longwire)
        time.sleep(1)
        kill_links(self.longwire)
        wire.target = target
        self.expect_right(program)

    def test_no_connection_within_the_grace(self):
        """Every later call fails, at the stated time, whoever was the link meanwhile."""
        wire = relay.Relay(self.longwire.port)
        self.addCleanup(wire.close)
        program = train(self.longwire, 60, server=wire.address)
        wire.target = ("127.0.0.1", server.free_port())
        lost = time.monotonic()
        wire.cut_all()
        time.sleep(1)
        kill_links(self.longwire)
        out, err = program.communicate(timeout=60)
        took = time.monotonic() - lost
        self.assertEqual(3, program.returncode, (out, err))  # and no call succeeded any more
        self.assertIn(f"ERROR {LAUNCH_FAILED}", out)
        self.assertGreater(took, GRACE - 0.5)
        self.assertLess(took, 3 * (GRACE + 5), err)

    def test_nobody_can_go_on(self):
        """Where no link can be started, the program gets the reason."""
        link = self.longwire.runtime / "link"
        link.write_text(f'#!/bin/sh\nexec {self.longwire.dist}/bin/longwire-link "$@"\n')
        link.chmod(0o755)
        program = train(self.longwire, 60, LONGWIRE_LINK=link)
        link.unlink()
        for guard in self.longwire.processes()["longwire-guard"]:
            os.kill(guard, signal.SIGKILL)
        kill_links(self.longwire)
        out, err = program.communicate(timeout=60)
        self.assertEqual(3, program.returncode, (out, err))
        self.assertIn("longwire-link has ended, and no other one goes on", err)
        self.assertIn("cannot be started", err)

    def test_a_program_that_ends_meanwhile(self):
        """Its session is ended by the next link, not by the grace."""
        program = train(self.longwire, 60)
        kill_links(self.longwire)
        server.wait_for(lambda: "resumed" in self.longwire.log.read_text(), 5, "another link")
        program.kill()
        program.communicate()
        killed = time.monotonic()
        server.wait_for(self.longwire.is_unused, 1, "the session's end")
        self.assertLess(time.monotonic() - killed, GRACE)

    def test_a_server_that_takes_no_connections_for_a_moment(self):
        """It closes them without a word, as one does at which too many wait."""
        with keys_server.KeysServer() as longwire:
            wire = relay.Relay(longwire.port)
            self.addCleanup(wire.close)
            target, wire.target = wire.target, ("127.0.0.1", server.free_port())
            program = longwire.program("vector_add.static")
            _, err = longwire.popen("alpha", program, to=wire.address).communicate(timeout=60)
            self.assertIn(f"{wire.address} closed the connection before TLS began", err)
            closed = wire.closed
            waiting = longwire.popen("alpha", program, to=wire.address)
            server.wait_for(lambda: wire.closed > closed, 10, "a connection that was closed")
            wire.target = target
            out, err = waiting.communicate(timeout=60)
            self.assertEqual((0, ""), (waiting.returncode, err), out)

    def test_with_certificates(self):
        with keys_server.KeysServer() as longwire:
            program = longwire.popen("alpha", longwire.program("counted_training.static"),
                                     "stdin")
            self.assertEqual("READY\n", server.next_line(program))
            self.kill_again_and_again(3, 0.7, longwire)
            self.expect_right(program, longwire)


if __name__ == "__main__":
    if LONG:
        sys.argv.remove("--long")
    unittest.main()
