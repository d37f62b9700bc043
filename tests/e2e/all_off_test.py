"""Programs without any of the optimisations that can be switched off, and where each process takes
from what it does without."""
import pathlib
import re
import signal
import unittest

import programs
import server
from lanes_test import ring_bytes

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALL = re.findall(r'^    "([\w-]+)", ', (ROOT / "wire/switches.h").read_text(), re.MULTILINE)
GROUPS = ("streams", "threads", "memory", "copies", "uploads", "graphs", "driver")
# How a program finds the driver is switched by nothing: the other variants are left out.
VARIANTS = ("static", "driver")
MIB = 1 << 20


def environment(pid):
    return pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0")


class Plain(server.Server):
    def __init__(self, **more):
        # Not the usual memory, which a program of the groups takes all of: others need the host's.
        super().__init__(config="memory: {swap_host_memory: 64MiB}\n", software_memory=1024 * MIB,
                         **more)

    def host_memory(self):
        return self.status()["devices"][0]["swap_host_memory"]

    def eventpolls(self, name):
        """How many sets of descriptors the process waits for as a whole."""
        pid, = self.processes()[name]
        return sum("eventpoll" in target for target in server.open_files(pid).values())

    def round_trips(self):
        result = self.run("vector_add.static", LONGWIRE_TRACE="summary")
        return re.findall(r"round trips of (\w+)", result.err)


class AllOff(Plain):
    everywhere = {"LONGWIRE_DISABLE": ", ".join(ALL)}


class AllOffTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plain = cls.enterClassContext(Plain())
        cls.longwire = cls.enterClassContext(AllOff())

    def test_programs(self):
        for group in GROUPS:
            with self.subTest(group):
                self.assertEqual(0, programs.run_on(self.longwire, group, VARIANTS))

    def test_the_program_does_without(self):
        self.assertNotIn("lwFunctionAttributes", self.plain.round_trips())
        self.assertIn("lwFunctionAttributes", self.longwire.round_trips())

    def test_link_and_daemon_do_without(self):
        for one in (self.plain, self.longwire):
            self.assertEqual(0, one.run("vector_add.static").code)
        for name in ("longwire-link", "longwired"):
            self.assertGreater(self.longwire.eventpolls(name), self.plain.eventpolls(name), name)

    def test_the_keeper_does_without(self):
        server.wait_for(lambda: self.plain.host_memory() == 64 * MIB, 20, "the host's memory")
        self.assertEqual(0, self.longwire.host_memory())

    def test_workers_do_without(self):
        program = self.longwire.start("hold_session.static")
        try:
            session, = self.longwire.status()["sessions"]
            self.assertIn("LONGWIRE_DISABLE=" + ", ".join(ALL), environment(session["worker_pid"]))
        finally:
            program.kill()
            program.communicate()


class WhoseEnvironmentTest(unittest.TestCase):
    def test_workers_have_the_wardens(self):
        """Its ring keeps what was used, the daemon's does not."""
        longwire = self.enterContext(server.Server(variables={"LONGWIRE_DISABLE": "trim-rings"}))
        longwire.end_daemon()
        longwire.variables = {}
        longwire.start_daemon()
        program = longwire.start("large_copies.static", "twice", LONGWIRE_TRANSFER_STREAMS=0)
        try:
            session, = longwire.status()["sessions"]
            server.wait_for(lambda: ring_bytes(program.pid) < MIB, 10, "rings that give back")
            self.assertGreater(ring_bytes(session["worker_pid"]), 4 * MIB)
        finally:
            program.send_signal(signal.SIGUSR1)
            program.communicate(timeout=60)

    def test_a_link_has_that_of_its_program(self):
        longwire = self.enterContext(server.Server())
        for names in ("", "timer-slack", "timer-slack", ""):
            self.assertEqual(0, longwire.run("vector_add.static", LONGWIRE_DISABLE=names).code)
        found = [entry for pid in longwire.processes()["longwire-link"]
                 for entry in environment(pid) if entry.startswith("LONGWIRE_DISABLE=")]
        self.assertEqual(["LONGWIRE_DISABLE=", "LONGWIRE_DISABLE=timer-slack"], sorted(found))


class UnknownNameTest(unittest.TestCase):
    def test_each_process_tells_it_once(self):
        longwire = self.enterContext(
            server.Server(variables={"LONGWIRE_DISABLE": "remap, striped_transfers"}))
        sentence = "LONGWIRE_DISABLE names '{}', which is no optimisation; see docs/switches.md"
        # A link that programs start has no log.
        log, link = longwire.runtime / "link.log", longwire.runtime / "link"
        link.write_text(f'#!/bin/sh\nexec {longwire.dist}/bin/longwire-link "$@" --log {log}\n')
        link.chmod(0o755)
        result = longwire.run("vector_add.static", LONGWIRE_DISABLE="remap,foo", LONGWIRE_LINK=link)
        self.assertEqual((0, f"longwire: {sentence.format('foo')}\n"), (result.code, result.err))
        self.assertIn("PASS vector_add\n", result.out)
        self.assertEqual(1, log.read_text().count(f"warning {sentence.format('foo')}"))
        told = [line.removesuffix(sentence.format("striped_transfers"))
                for line in longwire.log.read_text().splitlines() if "LONGWIRE_DISABLE" in line]
        tellers = [re.sub(r"^.*Z (?=warning)|\[\d+\]", "", line) for line in told]
        for teller in ("longwire-warden: ", "longwire-keeper: ", "warning "):
            self.assertEqual(1, tellers.count(teller), told)
        workers = [line for line in told if line.startswith("longwire-worker[")]
        self.assertTrue(workers)
        self.assertEqual(len(workers), len(set(workers)), workers)


if __name__ == "__main__":
    unittest.main()
