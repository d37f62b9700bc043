"""rules: of the configuration, each kind with what it does to a program that nvcc built, through
the wire; and longwire rules check and explain."""
import contextlib
import json
import pathlib
import subprocess
import sys
import unittest

import server

MIB = 1 << 20
ADD = {"name": "no-add", "kernel": "*Add*", "deny": ["cuLaunchKernel"]}
SHAPE = "_Z5ShapePi"


@contextlib.contextmanager
def serving(rules, **more):
    """A server with these rules for everybody."""
    text = json.dumps({"rules": rules, **more} if rules else more)
    with server.Server(config=text) as longwire:
        yield longwire


def said(result):
    """What the program printed, by its first word."""
    return dict(line.split(" ", 1) for line in result.out.splitlines() if " " in line)


class RulesTest(unittest.TestCase):
    def run_under(self, rules, *words, logged="", **more):
        """Until the server has logged that."""
        with serving(rules, **more) as longwire:
            result = longwire.run("under_rules.static", *words)
            self.assertEqual(0, result.code, (result, longwire.log_tail()))
            longwire.must_log(logged)
            return said(result), result, longwire.log.read_text()

    def test_nothing_changes_without_rules(self):
        told, _, log = self.run_under([], "shape", "add", "up")
        self.assertEqual({"shape": "cudaSuccess 4 64", "add": "cudaSuccess 5050",
                          "up": "cudaSuccess", "PASS": "under_rules"}, told)
        self.assertNotIn("its worker says", log)

    def test_a_rule_of_another_program_says_nothing(self):
        told, _, _ = self.run_under([{**ADD, "program": "train*"}], "add")
        self.assertEqual("cudaSuccess 5050", told["add"])
        told, _, _ = self.run_under([{**ADD, "program": "under_*"}], "add")
        self.assertEqual("cudaErrorNotPermitted 0", told["add"])

    def test_attributes_of_launches_change_no_result(self):
        launch = {"priority": 3, "shared_memory": 50, "clusters": "load_balancing"}
        told, _, _ = self.run_under([{"launch": launch, "validate": True,
                                      "retry": {"count": 2}}], "shape", "add", "up")
        self.assertEqual(["cudaSuccess 4 64", "cudaSuccess 5050", "cudaSuccess"],
                         [told[word] for word in ("shape", "add", "up")])

    def test_grid_and_block_of_one_kernel(self):
        rule = {"kernel": SHAPE, "launch": {"grid": "2", "block": "32x1", "unsafe": True}}
        told, _, _ = self.run_under([rule], "shape", "add")
        self.assertEqual("cudaSuccess 2 32", told["shape"])
        self.assertEqual("cudaSuccess 5050", told["add"])

    def test_a_later_rule_counts(self):
        def rule(grid):
            return {"kernel": SHAPE, "launch": {"grid": grid, "unsafe": True}}
        told, _, _ = self.run_under([rule("2"), rule("3")], "shape")
        self.assertEqual("cudaSuccess 3 64", told["shape"])

    def test_a_denied_launch(self):
        told, result, log = self.run_under([ADD], "shape", "add", "log",
                                           logged="its worker says")
        self.assertEqual("cudaSuccess 4 64", told["shape"])
        self.assertEqual("cudaErrorNotPermitted 0", told["add"])
        sentence = "kernel '_Z3AddPii' is denied by rule 'no-add'"
        self.assertIn(sentence, result.out)
        audit = [line for line in log.splitlines() if "its worker says" in line]
        self.assertTrue(audit and sentence in audit[0], log)
        self.assertRegex(audit[0], r"session \d+")

    def test_a_denied_copy(self):
        told, result, _ = self.run_under([{"deny": "cuMemcpyHtoD"}], "shape", "up", "shape", "log",
                                         logged="its worker says: ")
        self.assertEqual("cudaErrorNotPermitted", told["up"])
        self.assertEqual("cudaSuccess 4 64", told["shape"])
        self.assertIn("is denied by rule 1 of rules", result.out)

    def test_a_denied_module(self):
        with serving([{"deny": ["cuModuleLoad"]}]) as longwire:
            result = longwire.run("under_rules.static", "shape")
            self.assertIn("cudaErrorNotPermitted", result.out)
            longwire.must_log("to load module")

    def ways(self, longwire, what):
        """Ways of the program that took effect, and those that were refused; over TCP and on the
        server's own host."""
        for where in (longwire.address, f"unix:{longwire.door}"):
            result = longwire.run("denied_ways.static", what, server=where)
            self.assertEqual((0, ""), (result.code, result.err), (where, result.out))
            told = said(result)
            self.assertEqual("denied_ways", told.pop("PASS"))
            yield ({way for way, took in told.items() if took == "done"},
                   {way for way, took in told.items() if took == "refused"})

    def test_every_way_to_do_what_is_denied(self):
        denials = {"kernels": {"kernel": "*Wanted*", "deny": "cuLaunchKernel"},
                   "up": {"deny": "cuMemcpyHtoD"}, "down": {"deny": "cuMemcpyDtoH"},
                   "fills": {"deny": ["cuMemset", "cuMemcpyDtoD"]}}
        for what, rule in denials.items():
            with self.subTest(what), serving([rule]) as longwire:
                for done, refused in self.ways(longwire, what):
                    self.assertEqual(set(), done)
                    self.assertTrue(refused)

    def test_a_denied_direction_is_that_of_the_bytes(self):
        with serving([{"deny": ["cuMemcpyHtoD", "cuMemcpyDtoD"]}]) as longwire:
            for _, refused in self.ways(longwire, "down"):
                self.assertEqual(set(), refused)
        with serving([{"deny": ["cuMemcpyDtoH", "cuMemcpyDtoD"]}]) as longwire:
            for _, refused in self.ways(longwire, "up"):
                self.assertEqual(set(), refused)

    def test_a_pointer_is_refused_before_the_kernel_runs(self):
        told, result, _ = self.run_under([{"validate": True}], "beyond", "add", "log")
        self.assertEqual("cudaErrorInvalidValue", told["beyond"])
        self.assertEqual("cudaSuccess 5050", told["add"])  # the context is as it was
        self.assertRegex(result.out, r"kernel '_Z3AddPii': the argument at offset 0, 0x[0-9a-f]+, "
                                     r"points to .*; the nearest memory is \d+ bytes at 0x")

    def test_without_the_rule_it_is_a_fault(self):
        with serving([]) as longwire:
            result = longwire.run("under_rules.static", "beyond")
            self.assertIn("beyond cudaErrorIllegalAddress", result.out)

    def allocations(self, rules):
        """The third allocation has no room until another session of the tenant has ended."""
        tenants = [{"name": "all", "identities": ["loopback"], "memory": "128MiB"}]
        with serving(rules, tenants=tenants) as longwire:
            other = subprocess.Popen(
                longwire.command(longwire.program("allocate.static"), str(48 * MIB), "hold"),
                env=longwire.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True)
            while server.next_line(other) != "READY\n":
                self.assertIsNone(other.poll())
            sizes = [str(size * MIB) for size in (8, 24, 60)]
            one = subprocess.Popen(
                longwire.command(longwire.program("allocate.static"), *sizes),
                env=longwire.environment(), stdout=subprocess.PIPE, text=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(1.5)
            other.communicate("\n")
            return one.communicate(timeout=60)[0].splitlines()

    def test_an_allocation_is_tried_again(self):
        lines = self.allocations([])
        self.assertIn(f"{60 * MIB} cudaErrorMemoryAllocation", lines)
        lines = self.allocations([{"retry": {"count": 100, "back_off": "100ms"}}])
        self.assertIn(f"{60 * MIB} cudaSuccess", lines)

    def test_a_session_that_moves_has_its_rules_there(self):
        """Those of the configuration as it is then: what they forbid now that it has done before
        is done again in a move, and refuses it."""
        shape = {"kernel": SHAPE, "launch": {"grid": "2", "block": "32x1", "unsafe": True}}
        rules = [ADD, shape, {"deny": "cuMemcpyHtoD"}, {"jit": {"registers": 64}}]
        expected = ["shape cudaSuccess 2 32", "add cudaErrorNotPermitted 0",
                    "up cudaErrorNotPermitted"]
        with server.Server(config=json.dumps({"rules": rules}), software_devices=2) as longwire:
            process = subprocess.Popen(
                longwire.command(longwire.program("under_rules.static"),
                                 *(3 * ["shape", "add", "up", "ready"])[:-1]),
                env=longwire.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True)

            def migrate():
                (session,) = longwire.status()["sessions"]
                here = session["seats"][0].get("device", 0)
                return longwire.cli("admin", "migrate", str(session["id"]), str(1 - here))

            def go_on():
                process.stdin.write("\n")
                process.stdin.flush()
            for _ in range(2):
                lines = [server.next_line(process).strip() for _ in range(4)]
                self.assertEqual([*expected, "READY"], lines, longwire.log_tail())
                moved = migrate()
                self.assertEqual(0, moved.code, (moved, longwire.log_tail()))
                if _ == 0:
                    go_on()
            longwire.config_file.write_text(json.dumps(
                {"rules": [*rules, {"name": "none", "deny": ["cuModuleLoad"]}]}))
            self.assertEqual(0, longwire.cli("admin", "reload").code)
            refused = migrate()
            self.assertEqual(1, refused.code, refused)
            self.assertIn("it cannot be rebuilt on that device", refused.err)
            go_on()
            out, err = process.communicate(timeout=60)
            self.assertEqual(expected, out.splitlines()[:3], (err, longwire.log_tail()))
            self.assertEqual(0, process.returncode)

    def test_what_was_denied_is_denied_again_in_a_move(self):
        """And what was not is not; else the session would be another one there."""
        deny = [{"deny": ["cuCtxSetLimit"]}]
        with server.Server(software_devices=2) as longwire:
            client = pathlib.Path(__file__).with_name("memory_client.py")
            process = subprocess.Popen(
                longwire.command(sys.executable, str(client)),
                env=longwire.environment(PYTHONDONTWRITEBYTECODE=1), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True)
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            self.assertEqual("READY\n", server.next_line(process), longwire.log_tail())

            def say(*words):
                process.stdin.write(" ".join(map(str, words)) + "\n")
                process.stdin.flush()
                return server.next_line(process).strip()

            def reload(rules):
                longwire.config_file.write_text(json.dumps({"rules": rules} if rules else {}))
                self.assertEqual(0, longwire.cli("admin", "reload").code)

            def migrate():
                (session,) = longwire.status()["sessions"]
                here = session["seats"][0].get("device", 0)
                return longwire.cli("admin", "migrate", str(session["id"]), str(1 - here))

            def refuses(moved):
                self.assertEqual(1, moved.code, moved)
                self.assertIn("cuCtxSetLimit answers otherwise there", moved.err)
            self.assertEqual("done", say("limit", 4096))
            reload(deny)
            refuses(migrate())
            reload([])
            self.assertEqual(0, migrate().code, longwire.log_tail())
            self.assertEqual("4096", say("limited"))
            reload(deny)
            self.assertEqual("cuCtxSetLimit 800", say("limit", 8192))
            reload([])
            refuses(migrate())
            self.assertEqual("4096", say("limited"))

    def test_a_reload_changes_sessions_that_run(self):
        with serving([]) as longwire:
            process = subprocess.Popen(
                longwire.command(longwire.program("under_rules.static"), "add", "ready", "add",
                                 "ready", "add"),
                env=longwire.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True)

            def lines():
                found = []
                while not found or found[-1] not in ("READY\n", ""):
                    found.append(server.next_line(process))
                return [line.strip() for line in found if line.startswith("add")]

            def reload(**keys):
                longwire.config_file.write_text(json.dumps(keys))
                told = longwire.cli("admin", "reload", "--server", f"unix:{longwire.door}")
                self.assertEqual(0, told.code, told)

            def go_on():
                process.stdin.write("\n")
                process.stdin.flush()
                return lines()
            self.assertEqual(["add cudaSuccess 5050"], lines())
            reload(rules=[ADD])
            self.assertEqual(["add cudaErrorNotPermitted 0"], go_on())
            reload()
            self.assertEqual(["add cudaSuccess 5050"], go_on())
            process.communicate()


class RestartTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def run_again(self, restarts, *words):
        command = self.longwire.command(self.longwire.program("under_rules.static"), *words)
        command[2:2] = ["--restart", restarts]
        return server.run(command, self.longwire.environment())

    def test_after_a_fault_it_is_started_again(self):
        told = self.run_again("2", "beyond", "add")
        self.assertEqual(1, told.code, told)  # the program's own
        self.assertEqual(3, told.out.count("beyond cudaErrorIllegalAddress"), told)
        self.assertRegex(told.err, r"status 1 after a fault \(error 700: .*\); it is started again "
                                   r"\(1 of 2\)")
        self.assertIn("it was started again 2 times already, no more", told.err)

    def test_other_failures_are_not_tried_again(self):
        told = server.run([*self.longwire.command("/bin/sh", "-c", "echo once; exit 7")[:2],
                           "--restart", "3", "--server", self.longwire.address, "--", "/bin/sh",
                           "-c", "echo once; exit 7"], self.longwire.environment())
        self.assertEqual((7, "once\n"), (told.code, told.out))
        self.assertNotIn("again", told.err)

    def test_a_right_end_is_the_end(self):
        told = self.run_again("3", "add")
        self.assertEqual(0, told.code, told)
        self.assertEqual(1, told.out.count("add cudaSuccess 5050"))


class RulesCommandTest(unittest.TestCase):
    def cli(self, *words, text=""):
        with server.tempfile.TemporaryDirectory() as folder:
            file = server.pathlib.Path(folder) / "longwired.yaml"
            file.write_text(text)
            words = [str(file) if word == "FILE" else word for word in words]
            return server.run([server.build_folder() / "dist" / "bin" / "longwire", *words],
                              dict(server.os.environ))

    def test_check_names_the_line(self):
        told = self.cli("rules", "check", "FILE",
                        text="rules:\n  - kernel: \"*x*\"\n    launch:\n      block: 64\n")
        self.assertEqual(1, told.code)
        self.assertRegex(told.err, r"yaml:4:14: rules.launch.block: expected kernel: with the ")
        self.assertRegex(told.err, r"yaml:4:14: rules.launch.block: expected unsafe: true")

    def test_check_of_right_rules(self):
        told = self.cli("rules", "check", "FILE", text="rules:\n  - validate: true\n")
        self.assertEqual((0, ""), (told.code, told.err))
        self.assertIn("1 rule, nothing is wrong", told.out)

    def test_explain(self):
        text = json.dumps({
            "rules": [{"name": "all", "jit": {"registers": 64}},
                      {"name": "others", "program": "serve*", "validate": True}],
            "tenants": [{"name": "a", "rules": [{"kernel": "x*", "deny": "cuLaunchKernel"}]},
                        {"name": "b"}]})
        told = self.cli("rules", "explain", "/bin/train", "--file", "FILE", text=text)
        self.assertEqual(
            "tenant a:\n  rule 'all'\n    jit: at most 64 registers\n"
            "  rule 1 of the rules of tenant 'a' (kernels x*)\n    deny: cuLaunchKernel\n"
            "tenant b:\n  rule 'all'\n    jit: at most 64 registers\n", told.out)
        told = self.cli("rules", "explain", "train", "--file", "FILE", "--tenant", "a",
                        "--kernel", "y", text=text)
        self.assertEqual("tenant a:\n  rule 'all'\n    jit: at most 64 registers\n", told.out)


if __name__ == "__main__":
    unittest.main()
