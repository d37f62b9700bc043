"""Every example of docs/extending.md in a server, and what it does to a program."""
import pathlib
import re
import unittest

import server

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "extending.md"
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
