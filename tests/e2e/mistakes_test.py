"""Callers' mistakes: every function of the library with null pointers, handles of nothing, of
another kind and of what is gone, before cuInit and after its context was destroyed. Neither the
program nor its session ends of it, and a result that has nowhere to go is an error."""
import pathlib
import sys
import unittest

import server

CLIENT = pathlib.Path(__file__).resolve().parent / "mistakes_client.py"
# Arguments that may be null: results that a program need not want, data of its own functions, lists
# and memory of which nothing is used.
OPTIONAL = set("""active callback_out ctxCreateParams dependencies dependencies_out dependentNodes
    dstHost edgeData edgeData_out flags free from graph_out greatestPriority hErrorNode_out id_out
    iterator leastPriority logBuffer map nodes numDependencies_out optionValues options p pCtx
    pGreenCtx paramArray paramsArray pbase pctx phErrorNode psize ptr rootNodes sizeOut srcHost
    symbolStatus to total userData""".split())


class MistakesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def call_everything(self, world):
        """What the client printed of arguments that may be null."""
        first, faults, nulls = 0, [], set()
        while True:
            command = self.longwire.command(sys.executable, CLIENT, world, str(first))
            result = server.run(command, self.longwire.environment(), timeout=600)
            lines = [line.split() for line in result.out.splitlines()]
            nulls |= {(words[0], words[1]) for words in lines if words[-1] == "null"}
            called = [words for words in lines if words[0].isdigit()]
            self.assertTrue(lines and (result.code or 0) <= 0, result)  # else it could not begin
            last = called[-1] if called else [str(first), "nothing"]
            if "the session has ended" in result.err:
                faults.append(f"the session ended, at the latest in {last[1]}: {result.err[-300:]}")
            if lines[-1] == ["END"]:
                break
            faults.append(f"{last[1]}: code {result.code} {result.err[-300:]}")
            first = int(last[0]) + 1
        self.assertEqual([], faults, "\n".join(faults) + self.longwire.log_tail())
        return nulls

    def test_before_it_was_initialized(self):
        self.call_everything("before")

    def test_one_argument_wrong(self):
        nulls = self.call_everything("good")
        self.assertEqual([], sorted(call for call in nulls if call[1] not in OPTIONAL))

    def test_what_is_gone(self):
        self.call_everything("gone")


if __name__ == "__main__":
    unittest.main()
