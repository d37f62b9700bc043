"""Programs and checks of the driver's answers on two devices: of two servers they are what they are
of one, but for what across_differences.txt lists with a reason."""
import fnmatch
import pathlib
import unittest

import programs
import server

PROGRAMS = ("across_copies.static", "across_order.static", "across_pinned.static",
            "driver_peers.driver", "managed_devices.static", "peer_collective.static",
            "peer_fault.static", "peer_processes.static", "two_devices.static")
CHAPTERS = ("contexts", "copies", "devices", "events", "memory", "streams", "virtual_memory")


def listed():
    lines = pathlib.Path(__file__).with_name("across_differences.txt").read_text().splitlines()
    return [line for line in lines if line and line[0] not in "# "]


class AcrossProgramsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.both = cls.enterClassContext(server.Server(software_devices=2))
        cls.one = cls.enterClassContext(server.Server())
        cls.other = cls.enterClassContext(server.Server())
        cls.addresses = f"{cls.one.address},{cls.other.address}"

    def test_the_list_is_sorted(self):
        self.assertEqual(sorted(set(listed())), listed())

    def test_programs(self):
        listed_ones = {line.split()[1] for line in listed() if line.startswith("program ")}
        found = set()
        for program in PROGRAMS:
            name = program.split(".")[0]
            result = self.one.run(program, server=self.addresses, LONGWIRE_ACROSS=1)
            self.assertIsNotNone(result.code, f"{program} does not end")
            wrong = programs.what_is_wrong(name, result)
            if wrong:
                print(f"{name}: {wrong}")
                found.add(name)
        self.assertEqual(listed_ones, found)

    def answers(self, chapter, **where):
        program = self.one.build / "tests" / "conformance" / "conformance"
        one = where.pop("longwire")
        server.wait_for(one.is_unused, 20, "earlier sessions' memory")
        result = server.run(one.command(program, chapter, server=where.pop("server", None)),
                            one.environment(**where))
        self.assertEqual(0, result.code, result)
        return [tuple(line.split(" = ", 1)) for line in result.out.splitlines() if " = " in line]

    def test_answers_of_the_driver(self):
        patterns = [line for line in listed() if not line.startswith("program ")]
        met, wrong = set(), []
        for chapter in CHAPTERS:
            of_one = self.answers(chapter, longwire=self.both, LONGWIRE_DEVICES=2)
            across = self.answers(chapter, longwire=self.one, server=self.addresses,
                                  LONGWIRE_ACROSS=1)
            self.assertEqual([check for check, _ in of_one], [check for check, _ in across])
            for (check, wanted), (_, found) in zip(of_one, across):
                if wanted == found:
                    continue
                reasons = [one for one in patterns if fnmatch.fnmatchcase(check, one)]
                met.update(reasons)
                if not reasons:
                    wrong.append(f"{chapter}: {check} = {found}, of one server {wanted}")
        self.assertEqual([], wrong)
        self.assertEqual(set(patterns), met, "listed and not met")


if __name__ == "__main__":
    unittest.main()
