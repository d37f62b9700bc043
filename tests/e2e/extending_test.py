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


if __name__ == "__main__":
    unittest.main()
