"""What the programs say of themselves and of wrong use, and with which exit status; how longwired
starts a warden of its own."""
import json
import os
import pathlib
import tempfile
import time
import unittest

import server

COMMANDS = ("admin", "advise", "bench", "cert", "config", "doctor", "memory", "probe", "rules",
            "run", "status", "top", "trace", "usage")
NEEDS = {"advise": ["app"], "probe": ["threadhist"]}
SERVICES = ("longwired", "longwire-warden", "longwire-keeper", "longwire-worker", "longwire-link")
OPERATORS = ("admin", "memory", "status")  # they ask longwired of their host by default


class CommandsTest(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="longwire-test-"))
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("LONGWIRE_")}
        self.environment.update(LONGWIRE_RUNTIME_DIR=folder, HOME=folder)
        self.nowhere = f"127.0.0.1:{server.free_port()}"

    def run_program(self, program, *words):
        return server.run([server.build_folder() / "dist" / "bin" / program, *words],
                          self.environment)

    def longwire(self, *words):
        return self.run_program("longwire", *words)

    def expect_refusal(self, sentence, *words):
        """One line on standard error, and the status of wrong use."""
        self.assertEqual((2, "", f"longwire {sentence}\n"), self.longwire(*words)[:3])


class HelpTest(CommandsTest):
    def expect_help(self, result, name):
        self.assertEqual((0, ""), (result.code, result.err), name)
        self.assertIn(name, result.out.splitlines()[0])
        self.assertNotIn("\n\n\n", result.out, name)
        self.assertFalse(result.out.endswith("\n\n"), name)
        self.assertEqual([], [line for line in result.out.splitlines() if len(line) > 100])

    def test_every_program_explains_itself(self):
        for program in ("longwire", *SERVICES):
            self.expect_help(self.run_program(program, "--help"), program)
            version = self.run_program(program, "--version")
            self.assertEqual((0, ""), (version.code, version.err), program)
            self.assertRegex(version.out, rf"^{program} \d+\.\d+\S*\n$")

    def test_every_command_explains_itself(self):
        for command in COMMANDS:
            for word in ("--help", "-h"):
                result = self.longwire(command, word)
                self.expect_help(result, f"longwire {command}")
                self.assertRegex(result.out, "exit\\s+status", command)
                connects = command not in ("admin", "cert", "config", "rules", "usage")
                self.assertEqual(connects, "--server LIST" in result.out, command)
                self.assertEqual(connects, "unix:" in result.out, command)
        self.expect_help(self.longwire("doctor", "--explain", "--help"), "longwire doctor")

    def test_help_is_found_behind_other_words(self):
        for words in (("cert", "init", "--help"), ("cert", "show", "-h"),
                      ("cert", "client", "--name", "alice", "--help"),
                      ("config", "show", "--effective", "--help"),
                      ("trace", "--calls", "--help"), ("bench", "--json", "--help")):
            self.expect_help(self.longwire(*words), f"longwire {words[0]}")
        # What stands behind a program is the program's.
        result = self.longwire("run", "--server", self.nowhere, "/bin/sh", "-c", 'echo "$0"',
                               "--help")
        self.assertEqual((0, "--help\n"), result[:2], result.err)


class WrongUseTest(CommandsTest):
    def test_an_option_without_its_value(self):
        for words in (("run", "--server"), ("run", "--server", "--", "/bin/true"),
                      ("trace", "--calls", "--cert"), ("run", "--trace"), ("memory", "--timeline"),
                      ("memory", "--timeline", "a.svg", "--seconds"), ("memory", "--key"),
                      ("status", "--server"), ("doctor", "--ca"), ("bench", "--rounds"),
                      ("bench", "--server"), ("admin", "reload", "--server"),
                      ("cert", "init", "--days"), ("cert", "client", "--name"),
                      ("cert", "server", "--name", "a", "--dir")):
            option = [word for word in words if word.startswith("--") and word != "--"][-1]
            path = " ".join(words[:2] if words[0] in ("admin", "cert") else words[:1])
            self.expect_refusal(f"{path}: {option} needs a value; see longwire {path} --help",
                                *words)

    def test_a_command_is_called_by_its_own_name(self):
        self.expect_refusal("trace: no program given; see longwire trace --help",
                            "trace", "--server", self.nowhere, "--calls")
        self.expect_refusal("run: no program given; see longwire run --help", "run")
        for command in ("run", "trace"):
            words = ("--calls",) if command == "trace" else ()
            self.expect_refusal(
                f"{command}: no server; give --server HOST:PORT or set LONGWIRE_SERVER; see "
                f"longwire {command} --help", command, *words, "/bin/true")
        result = self.longwire("trace", "--calls", "--server", self.nowhere, "/no/such/program")
        self.assertEqual((127, "longwire trace: /no/such/program: No such file or directory\n"),
                         (result.code, result.err))

    def test_unknown_words(self):
        for command in COMMANDS:
            path = f"{command} init" if command == "cert" else command
            more = NEEDS.get(command, [])
            self.expect_refusal(f"{path}: unknown option '--quux'. See longwire {path} --help",
                                *path.split(), *more, "--quux")
        self.expect_refusal("config: unknown command 'foo'. See longwire config --help",
                            "config", "foo")

    def test_words_that_are_nearly_right(self):
        for sentence, *words in (
                ("longwire: there is no command 'rnu'; did you mean 'run'? See longwire --help",
                 "rnu"),
                ("longwire: there is no command 'frobnicate'; see longwire --help", "frobnicate"),
                ("longwire admin: unknown command 'relod'; did you mean 'reload'? See longwire "
                 "admin --help", "admin", "relod"),
                ("longwire run: unknown option '--serve'; did you mean '--server'? See longwire "
                 "run --help", "run", "--serve", "/bin/true"),
                ("longwire status: unknown option '--josn=1'; did you mean '--json'? See longwire "
                 "status --help", "status", "--josn=1")):
            result = self.longwire(*words)
            self.assertEqual((2, "", sentence + "\n"), result[:3])

    def test_a_wait_that_is_no_duration(self):
        self.expect_refusal("run: --wait expects a duration such as 90s, 30m, 2h or 1d, at most "
                            "30d, or forever, or 0, found '5'", "run", "--wait", "5", "/bin/true")
        result = self.longwire("run", "--server", self.nowhere, "--wait", "90s", "--",
                               "/usr/bin/printenv", "LONGWIRE_WAIT")
        self.assertEqual((0, "90s\n"), result[:2], result.err)

    def test_addresses_of_another_kind(self):
        for given, sentence in (
                ("http://host:7411/", "'http://host:7411/' is a URL; write host:7411"),
                ("/run/door", "'/run/door' is a path; write unix:/run/door for the local socket of "
                              "a server")):
            self.expect_refusal(f"run: {sentence}", "run", "--server", given, "/bin/true")

    def test_what_longwired_could_not_open(self):
        """config check opens the files that the configuration names."""
        file = pathlib.Path(self.environment["HOME"]) / "longwired.yaml"
        file.write_text("listen: 127.0.0.1:1\n"
                        "tls: {certificate: /nope.crt, key: /nope.key, authority: /nope.ca}\n")
        result = self.longwire("config", "check", file)
        said = f"{file}: tls: cannot read /nope.crt: No such file or directory"
        self.assertEqual((1, "", f"{said}\n"), result[:3])
        result = self.longwire("config", "check", "--json", file)
        self.assertEqual([said], json.loads(result.out)["problems"])

    def test_what_nobody_can_trace(self):
        for words, unknown in (("foo", "foo"), ("calls,foo", "foo"), ("", ""), ("calls,,", "")):
            self.expect_refusal(f"run: --trace names '{unknown}', which is none of calls, "
                                "allocations, summary; see longwire run --help",
                                "run", "--server", self.nowhere, "--trace", words, "/bin/true")
        result = self.longwire("run", "--server", self.nowhere, "--trace=calls,summary", "--",
                               "/usr/bin/printenv", "LONGWIRE_TRACE")
        self.assertEqual((0, "calls,summary\n"), result[:2], result.err)

    def test_what_is_no_number(self):
        for sentence, *words in (
                ("memory: --seconds expects a number up to 3600, found '10x'", "memory",
                 "--timeline", "a.svg", "--seconds", "10x"),
                ("memory: --seconds expects a number up to 3600, found 'nan'", "memory",
                 "--seconds", "nan"),
                ("memory: --seconds expects a number up to 3600, found '0'", "memory",
                 "--seconds=0"),
                ("bench: --rounds expects a number from 1 to 1000, found 'many'", "bench",
                 "--rounds", "many"),
                ("cert init: --days expects a number from 1 to 36500, found '1e3'", "cert", "init",
                 "--days", "1e3")):
            self.expect_refusal(sentence, *words)
        for program, sentence, *words in (
                ("longwire-keeper", "--device expects a number, found 'one'", "--device", "one"),
                ("longwire-keeper", "--control needs a value", "--device", "0", "--control"),
                ("longwire-keeper", "unknown option '--quux'", "--quux", "1"),
                ("longwire-worker", "--up expects a number, found '3x'", "--up", "3x"),
                ("longwire-worker", "--device expects a number, found '0,'", "--device", "0,"),
                ("longwire-worker", "--control expects a number, found '3,4'", "--control", "3,4"),
                ("longwire-link", "--idle-seconds expects a number, found '-1'; see longwire-link "
                 "--help", "--idle-seconds", "-1"),
                ("longwire-warden", "--devices expects numbers from 0 to 63 with commas between, "
                 "found 'x'; see longwire-warden --help", "--devices", "x")):
            result = self.run_program(program, *words)
            self.assertEqual((2, ""), result[:2], program)
            self.assertEqual(f"{program}: {sentence}", result.err.splitlines()[0])
        result = self.run_program("longwired", "--warm-workers", "abc")
        self.assertEqual(2, result.code)
        self.assertIn("--warm-workers: expected a number", result.err)


class NobodyThereTest(CommandsTest):
    def test_doctor_says_by_its_status_what_happened(self):
        self.assertEqual(2, self.longwire("doctor").code)
        self.assertEqual(2, self.longwire("doctor", "--quux").code)
        for address in (self.nowhere, "unix:/nope", "unix:relative"):
            result = self.longwire("doctor", "--server", address)
            self.assertEqual(1, result.code, result.out)
            self.assertTrue(result.out.endswith("\n1 problem\n"), result.out)
        # More problems are no other status.
        result = self.longwire("doctor", "--server", self.nowhere, "--cert", "/nope.crt")
        self.assertEqual(1, result.code, result.out)

    def test_where_no_daemon_is(self):
        for command in OPERATORS:
            words = (command, *(("sessions",) if command == "admin" else ()))
            result = self.longwire(*words, "--server", "unix:/nope")
            self.assertEqual((1, ""), result[:2])
            self.assertEqual(f"longwire {command}: no longwired answers at /control: No such file "
                             "or directory\n", result.err)
            result = self.longwire(*words)
            self.assertEqual((1, ""), result[:2])
            self.assertRegex(result.err, f"^longwire {command}: no server; give --server HOST:PORT "
                                         r"or set LONGWIRE_SERVER \(no longwired answers at ")


class WardenTest(CommandsTest):
    def test_a_warden_that_ends_at_once_is_not_waited_for(self):
        start = time.monotonic()
        result = self.run_program("longwired", "--listen", self.nowhere, "--driver", "/nope")
        self.assertEqual(1, result.code)
        self.assertRegex(result.err, r"longwire-warden ended before it answered at \S+/warden; "
                         r"longwired's log says why, above. If the driver '/nope' is at fault, "
                         r"name another by --driver or the key driver; software needs no GPU\n$")
        self.assertIn("/nope: ", result.err.split("ended before")[0])
        # Not the 30 s that devices may take to open.
        self.assertLess(time.monotonic() - start, 20)

    def test_only_the_warden_keeps_open_what_tells_of_its_end(self):
        with server.Server() as longwire:
            # Its port opens before it knows the warden.
            server.wait_for(lambda: "ready, version" in longwire.log_tail(), 20, "the daemon")
            longwire._end(longwire.children.pop("longwire-warden"))
            server.wait_for(lambda: "longwire-warden ended; there was" in longwire.log_tail(), 20,
                            "the warden's end")
            program = longwire.start("steady.static", "hold")
            try:
                [warden] = longwire.processes()["longwire-warden"]
                others = [pid for name in ("longwire-keeper", "longwire-worker")
                          for pid in longwire.processes()[name]]
                self.assertGreaterEqual(len(others), 2)
                # Warm workers may be on their way.
                own = set()

                def has_one():
                    own.clear()
                    own.update(self.own_pipes(longwire, warden))
                    return len(own) == 1
                server.wait_for(has_one, 20, "one pipe of the warden's")
                for pid in others:
                    self.assertFalse(self.pipes(pid) & own)
            finally:
                program.kill()
                program.communicate()

    def own_pipes(self, longwire, warden):
        """Beside what each worker writes for the log."""
        workers = longwire.processes()["longwire-worker"]
        logs = set.union(*(self.pipes(pid) for pid in workers)) & self.pipes(warden)
        return self.pipes(warden) - logs if len(logs) == len(workers) else set()

    @staticmethod
    def pipes(pid):
        return {end for end in server.open_files(pid).values() if end.startswith("pipe:")}


if __name__ == "__main__":
    unittest.main()
