"""Programs that run while their server's daemon is killed or restarted: a pause, and nothing else.
What each round of a program promised it looks at itself (tests/apps/until_the_end.cu): kernels
count themselves, and copies in both directions are compared."""
import os
import signal
import threading
import unittest

import server
import tenants

# Copies, launches that count themselves, waits in each way that a program can wait.
KINDS = ["launch", "copy_up", "copy_down", "copy_pinned", "graph", "wait_device"]
STANDS_STILL = 4  # seconds, longer than a look at the server waits for the warden
LONG_KERNEL = 1500  # milliseconds, so that a program waits in one call while the daemon is away


class Program:
    """One program, which goes on until it is asked what it saw."""

    def __init__(self, longwire, environment, address, kind, busy=2):
        self.kind = kind
        self.process = longwire.start("until_the_end.static", kind, "stdin", str(busy),
                                      server=address, **environment)

    def ended(self):
        """What it said when its session had ended."""
        self.process.wait(90)
        return self.process.communicate()

    def wrong(self):
        """None if it came to its end without an error."""
        out, err = self.process.communicate(timeout=90)
        if self.process.returncode == 0 and "DONE " in out and "ERROR" not in out:
            return None
        return f"{self.kind}: {self.process.returncode}: {out}{err[-600:]}"


class DaemonRestartsTest(unittest.TestCase):
    def setUp(self):
        # With TLS: each of them has its certificate; this user comes by the local socket, too.
        self.longwire = self.enterContext(tenants.TenantServer(
            {"users": {"identities": ["users", f"uid:{os.geteuid()}"]},
             "operator": {"admin": True}}))
        self.papers = {name: value for name, value in
                       self.longwire.environment_of("users").items()
                       if name in ("LONGWIRE_CERT", "LONGWIRE_KEY", "LONGWIRE_CA")}

    def start(self, kinds, address, **busy):
        """The programs, which all run when this returns."""
        programs = []

        def one(kind):
            programs.append(Program(self.longwire, self.papers, address, kind, **busy))
        threads = [threading.Thread(target=one, args=[kind]) for kind in kinds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(programs), len(kinds), self.longwire.log_tail())
        return programs

    def end_daemon(self, number):
        daemon = self.longwire.children.pop("longwired")
        daemon.send_signal(number)
        daemon.wait(30)

    def restart(self, number=signal.SIGKILL):
        self.end_daemon(number)
        self.longwire.start_daemon()

    def sessions(self):
        return {session["id"]: session
                for session in self.longwire.status_as("users")["sessions"]}

    def addresses(self):
        return [self.longwire.address, f"unix:{self.longwire.door}"]

    def holders(self):
        """A program by each way that holds its session until it is ended."""
        return [self.longwire.start("hold_session.static", server=address, **self.papers)
                for address in self.addresses()]

    def end_all(self, programs):
        for program in programs:
            program.kill()
            program.communicate()

    def expect_right(self, programs):
        wrong = [said for said in (program.wrong() for program in programs) if said]
        self.assertEqual(wrong, [], self.longwire.log_tail(60))

    def check_after_kills(self, address):
        programs = self.start(KINDS, address)
        programs += self.start(["wait_stream"], address, busy=LONG_KERNEL)
        before = self.sessions()
        for _ in range(2):
            self.restart()
        after = self.sessions()
        self.assertEqual(set(before), set(after))
        for number, session in before.items():
            for key in ("tenant", "identity", "program", "client_pid", "worker_pid", "keeper_pids"):
                self.assertEqual(session.get(key), after[number].get(key), key)
            self.assertGreaterEqual(after[number]["seconds"], session["seconds"])
        self.expect_right(programs)
        server.wait_for(lambda: not self.sessions(), 10, "the sessions' end")

    def test_killed_under_programs_of_other_hosts(self):
        self.check_after_kills(self.longwire.address)

    def test_killed_under_programs_of_its_own_host(self):
        self.check_after_kills(f"unix:{self.longwire.door}")

    def test_a_warden_that_is_busy(self):
        """It stands still for a while: no session is lost for that, and a new one waits."""
        warden = self.longwire.children["longwire-warden"]
        self.addCleanup(warden.send_signal, signal.SIGCONT)

        def stand_still():
            warden.send_signal(signal.SIGSTOP)
            timer = threading.Timer(STANDS_STILL, warden.send_signal, [signal.SIGCONT])
            timer.start()
            self.addCleanup(timer.join)
        holders = self.holders()
        before = set(self.sessions())
        self.end_daemon(signal.SIGKILL)
        stand_still()
        self.longwire.start_daemon()
        server.wait_for(lambda: set(self.sessions()) == before, 10, "all sessions")
        stand_still()
        more = self.holders()
        self.assertEqual(4, len(self.sessions()))
        self.end_all(holders + more)

    def test_stopped_and_started(self):
        programs = [program for address in self.addresses()
                    for program in self.start(["launch", "copy_down"], address)]
        self.restart(signal.SIGTERM)
        self.expect_right(programs)

    def test_what_runs_on_is_under_the_new_daemons_control(self):
        holders = self.holders()
        before = self.sessions()
        self.assertEqual(len(before), 2)
        self.restart()
        more = self.holders()
        self.assertEqual(len(self.sessions()), 4)
        self.longwire.configure({"users": {**self.longwire.tenants["users"],
                                           "priority": "latency_critical"},
                                 "operator": {"admin": True}})
        self.assertEqual(self.longwire.cli("admin", "reload").code, 0)
        for number in before:
            result = self.longwire.cli("admin", "kill", str(number))
            self.assertEqual(result.code, 0, result.err)
        self.assertFalse(set(self.sessions()) & set(before))
        self.end_all(holders + more)
        server.wait_for(lambda: not self.sessions(), 10, "the sessions' end")

    def test_whose_identity_is_gone_ends_with_a_sentence(self):
        programs = [program for address in self.addresses()
                    for program in self.start(["launch"], address)]
        self.end_daemon(signal.SIGKILL)
        self.longwire.tenants = {"operator": {"admin": True}}
        self.longwire.start_daemon()
        for program, sentence in zip(programs, ["does not know the identity 'users'",
                                                "was taken out of the server's configuration"]):
            out, err = program.ended()
            self.assertIn("ERROR 719", out)
            self.assertIn(sentence, err)
        self.assertEqual(self.longwire.processes()["longwire-worker"][1:], [])

    def test_a_daemon_that_never_returns(self):
        self.longwire.settings = {"resume_grace": "1s"}
        self.restart()
        programs = [program for address in self.addresses()
                    for program in self.start(["launch"], address)]
        self.end_daemon(signal.SIGKILL)
        for program in programs:
            out, _ = program.ended()
            self.assertIn("ERROR 719", out)
        # One is warm.
        server.wait_for(lambda: len(self.longwire.processes()["longwire-worker"]) <= 1, 10,
                        "the workers' end")

    def test_an_interrupt_ends_them_at_once(self):
        programs = [program for address in self.addresses()
                    for program in self.start(["launch"], address)]
        self.end_daemon(signal.SIGINT)
        for program in programs:
            out, err = program.ended()
            self.assertIn("ERROR 719", out)
            self.assertIn("the server shuts down", err)


if __name__ == "__main__":
    unittest.main()
