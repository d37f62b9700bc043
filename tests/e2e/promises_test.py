"""Memory that a program declares (longwire run --memory) is kept for it: another session does not
get it, whether it is used or not, and a declaration that cannot be kept is refused. It holds over
the keeper's death, a restart of longwired and a move to another device."""
import os
import pathlib
import signal
import subprocess
import sys
import unittest

import server
import tenants

MIB = 1 << 20
DEVICE = 2048 * MIB
CLIENT = pathlib.Path(__file__).with_name("memory_client.py")
DECLARED, REST = 1024, 512  # MiB; of the rest contexts and first leases take some
KEPT = "are kept for other sessions, which declared that they need them (longwire run --memory)"


class PromisesTest(unittest.TestCase):
    def serve(self, of=None, **options):
        options = {"software_memory": DEVICE, **options}
        self.longwire = self.enterContext(
            tenants.TenantServer(of or {"one": {}, "admin": {"admin": True}}, **options))

    def start(self, tenant, mib=None):
        words = {} if mib is None else {"LONGWIRE_MEMORY": f"{mib}MiB"}
        return subprocess.Popen(
            self.longwire.command(sys.executable, str(CLIENT)),
            env=self.longwire.environment_of(tenant, PYTHONDONTWRITEBYTECODE=1, **words),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def opened(self, tenant, mib=None):
        process = self.start(tenant, mib)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual("READY", self.heard(process))
        return process

    def refused(self, tenant, mib):
        process = self.start(tenant, mib)
        _, err = process.communicate(timeout=60)
        self.assertNotEqual(0, process.returncode)
        return err

    def heard(self, process):
        line = server.next_line(process).strip()
        if not line:
            process.kill()
            self.fail(f"{process.communicate()} " + self.longwire.log_tail())
        return line

    def say(self, process, *words):
        process.stdin.write(" ".join(map(str, words)) + "\n")
        process.stdin.flush()
        return self.heard(process)

    def allocates(self, process, mib):
        said = self.say(process, "alloc", mib)
        self.assertIn(said, ("done", "cuMemAlloc_v2 2"))
        return said == "done"

    def free(self, process):
        return int(self.say(process, "info").split()[0])

    def most(self, process):
        """The largest allocation that it gets, in steps of 32 MiB; freed again."""
        for mib in range(DEVICE // MIB, 0, -32):
            if self.allocates(process, mib):
                self.assertEqual("done", self.say(process, "free"))
                return mib
        return 0

    def end(self, process):
        process.kill()
        process.communicate()

    def operator(self, *words):
        return self.longwire.cli(*words, "--server", f"unix:{self.longwire.door}")

    def restart_keeper(self):
        keeper = self.longwire.processes()["longwire-keeper"]
        os.kill(keeper[0], signal.SIGKILL)
        server.wait_for(
            lambda: self.longwire.processes()["longwire-keeper"] not in ([], keeper), 20,
            "another keeper")

    def test_nobody_else_gets_it(self):
        self.serve()
        first, other = self.opened("one", DECLARED), self.opened("admin")
        self.assertGreater(self.free(first), DECLARED * MIB)
        self.assertLess(self.free(other), DEVICE - DECLARED * MIB)
        self.assertFalse(self.allocates(other, DECLARED))
        self.assertIn(KEPT, self.say(other, "log"))
        self.assertTrue(self.allocates(other, REST))
        self.restart_keeper()
        self.assertFalse(self.allocates(other, DECLARED))
        self.longwire.end_daemon()
        self.longwire.start_daemon()
        self.assertFalse(self.allocates(other, DECLARED))
        # The one that declared it has it, twice over.
        for _ in range(2):
            self.assertTrue(self.allocates(first, DECLARED), self.longwire.log_tail())
            self.assertEqual("done", self.say(first, "free"))
        self.assertFalse(self.allocates(other, DECLARED))
        self.end(first)
        # longwired sees the end by the connection, which takes a moment.
        server.wait_for(lambda: self.allocates(other, DECLARED), 10, "what the ended one declared")

    def test_status_shows_what_was_declared_and_what_is_used(self):
        self.serve({"one": {"memory": "1536MiB"}, "admin": {"admin": True}})
        first = self.opened("one", DECLARED)
        self.assertTrue(self.allocates(first, 256))

        def figures():
            status = self.longwire.status_as("admin")
            [session], device = status["sessions"], status["devices"][0]
            memory, [tenant] = session["memory"][0], [one for one in status["tenants"]
                                                      if one["name"] == "one"]
            return (device.get("promised"), memory.get("promised"), tenant.get("memory_leased"),
                    device.get("promised_unused", 0) + memory["leased"])
        server.wait_for(lambda: figures() == (DECLARED * MIB,) * 4, 10, "figures")
        text = self.operator("status").out
        self.assertRegex(text, r"\n  1\.0 GiB declared by sessions, of it \d+\.?\d* MiB unused and "
                               r"kept for them\n")
        self.assertRegex(text, r"worker .* not leased, 1\.0 GiB declared and kept for it")
        # Its limit is charged for all of it.
        sibling = self.opened("one")
        self.assertFalse(self.allocates(sibling, 544))
        self.assertTrue(self.allocates(sibling, 448))

    def test_what_cannot_be_kept_is_refused(self):
        self.serve({"one": {"memory": "1200MiB"}, "admin": {"admin": True}})
        other = self.opened("admin")
        self.assertTrue(self.allocates(other, REST))
        self.assertIn("the tenant's memory limit", self.refused("one", 1300))
        self.assertRegex(self.refused("admin", 1600), "device|memory")
        self.assertEqual(1, len(self.longwire.status_as("admin")["sessions"]))
        first = self.opened("one", DECLARED)
        self.assertTrue(self.allocates(first, DECLARED), self.longwire.log_tail())

    def test_a_session_that_moves_takes_it_along(self):
        self.serve(software_devices=2)
        first = self.opened("one", DECLARED)
        [session] = self.longwire.status_as("admin")["sessions"]
        here = session["seats"][0].get("device", 0)
        moved = self.operator("admin", "migrate", str(session["id"]), str(1 - here))
        self.assertEqual(0, moved.code, (moved, self.longwire.log_tail()))

        def promised():
            return {device.get("ordinal", 0): device.get("promised", 0)
                    for device in self.longwire.status_as("admin")["devices"]}
        server.wait_for(lambda: promised() == {here: 0, 1 - here: DECLARED * MIB}, 10, "the move")
        # No room for as much on the device where it is now.
        self.opened("admin", 1600)
        self.assertEqual({here: 1600 * MIB, 1 - here: DECLARED * MIB}, promised())
        self.assertTrue(self.allocates(first, DECLARED), self.longwire.log_tail())


if __name__ == "__main__":
    unittest.main()
