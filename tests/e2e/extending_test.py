"""Every example of docs/extending.md in a server, and what it does to a program."""
import pathlib
import re
import subprocess
import tempfile
import unittest

import server
import tenants

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "extending.md"
EXAMPLES = ROOT / "policy" / "examples"
# What the program says under each example, by a word of it.
SAID = {
    "name: urgent": ["shape cudaSuccess 4 64", "add cudaSuccess 5050", "up cudaSuccess"],
    "grid: 2": ["shape cudaSuccess 2 32", "add cudaSuccess 5050", "up cudaSuccess"],
    "jit:": ["shape cudaSuccess 4 64", "add cudaSuccess 5050", "up cudaSuccess"],
    "name: no-add": ["shape cudaSuccess 4 64", "add cudaErrorNotPermitted 0", "up cudaSuccess"],
    "validate: true": ["shape cudaSuccess 4 64", "add cudaSuccess 5050", "up cudaSuccess",
                       "beyond cudaErrorInvalidValue"],
    "retry:": ["shape cudaSuccess 4 64", "add cudaSuccess 5050", "up cudaSuccess"]}


class ExtendingTest(unittest.TestCase):
    def test_each_example(self):
        examples = re.findall(r"```yaml\n(rules:.*?)```", PAGE.read_text(), re.DOTALL)
        self.assertEqual(len(SAID), len(examples))
        for mark, wanted in SAID.items():
            [example] = [one for one in examples if mark in one]
            words = [line.split()[0] for line in wanted]
            with self.subTest(mark), server.Server(config=example) as longwire:
                told = longwire.cli("rules", "check", str(longwire.config_file))
                self.assertEqual(0, told.code, told)
                result = longwire.run("under_rules.static", *words)
                self.assertEqual(wanted, result.out.splitlines()[:-1],
                                 (result, longwire.log_tail()))


    def test_the_examples_of_policies(self):
        """The page's text decides in a server; what it shows in part is as the file has it."""
        whole, part = [one for one in re.findall(r"```c\n(.*?)```", PAGE.read_text(), re.DOTALL)
                       if "LW_HOOK" in one]
        self.assertIn(part, (EXAMPLES / "priority_swap.c").read_text())
        with tempfile.TemporaryDirectory() as folder, tenants.TenantServer(
                {"operator": {"admin": True}}, software_devices=2) as longwire:
            source, made = pathlib.Path(folder) / "page.c", pathlib.Path(folder) / "page.o"
            source.write_text(whole)
            subprocess.run(["clang-19", "-target", "bpf", "-mcpu=v2", "-O2", "-g", "-Wall",
                            "-Werror", f"-I{ROOT / 'policy' / 'include'}", "-c", source, "-o",
                            made], check=True)

            def policy(*words):
                told = server.run([longwire.dist / "bin" / "longwire", "policy", *words,
                                   "--server", longwire.address],
                                  longwire.environment_of("operator"))
                self.assertEqual(0, told.code, (told, longwire.log_tail()))
                return told.out
            self.assertIn("'page' decides now\n", policy("load", str(made)))
            result = longwire.run_as("operator", longwire.program("vector_add.static"))
            self.assertIn("PASS vector_add", result.out, result)
            self.assertRegex(policy("maps", "page", "room"), r"\n  [01] = [1-9]\d+\n")

    def test_the_example_of_starting_again(self):
        """The command of the page, with a program whose device fails the first time."""
        [words] = re.findall(r"`longwire (run --restart \d+) -- PROGRAM`", PAGE.read_text())
        with server.Server() as longwire:
            program = longwire.program("under_rules.static")
            mark = longwire.runtime / "it has failed"
            told = longwire.cli(
                *words.split(), "--server", longwire.address, "--", "/bin/sh", "-c",
                f"test -e '{mark}' && exec {program} add; touch '{mark}'; {program} beyond; exit 1")
            self.assertEqual(0, told.code, (told, longwire.log_tail()))
            self.assertEqual(["beyond cudaErrorIllegalAddress", "add cudaSuccess 5050"],
                             [line for line in told.out.splitlines() if "cuda" in line])
            self.assertIn("it is started again (1 of 3)", told.err)

    def test_the_example_of_advice(self):
        text = PAGE.read_text()
        [example] = re.findall(r"```yaml\n(kernel_statistics:.*?)```", text, re.DOTALL)
        commands = re.findall(r"^longwire ((?:advise|rules explain) .*)$", text, re.MULTILINE)
        self.assertEqual(3, len(commands))
        with server.Server(config=example) as longwire:
            rules = longwire.runtime / "rules.yaml"
            rules.write_text(example)

            def run_program():
                self.assertEqual(0, longwire.run("advised.static", "low").code)
                server.wait_for(lambda: not longwire.status()["sessions"], 20, "its end")

            def say(line):
                words = [str(rules) if word == rules.name else word for word in line.split()]
                told = longwire.cli(*words, "--server", f"unix:{longwire.door}")
                self.assertEqual(0, told.code, told)
                return told.out
            run_program()
            self.assertIn("limited by shared memory", say(commands[0]))
            self.assertIn("+    launch: {shared_memory: 100}", say(commands[1]))
            longwire.config_file.write_text(rules.read_text())
            self.assertEqual(0, longwire.cli("admin", "reload").code)
            run_program()
            self.assertIn("used for: 12 launches", say(commands[2]))


if __name__ == "__main__":
    unittest.main()
