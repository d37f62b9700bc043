"""One program with devices of several servers: what it computes on them, and what is refused."""
import contextlib
import unittest

import programs
import server


class SeveralHostsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.one = cls.enterClassContext(server.Server())
        cls.other = cls.enterClassContext(server.Server())

    def across(self, name, *arguments, servers=None, **environment):
        """Runs the program on both servers, or on these."""
        addresses = ",".join(each.address for each in servers or (self.one, self.other))
        return self.one.run(name, *arguments, server=addresses, LONGWIRE_ACROSS=1, **environment)

    def logs(self):
        return "\n".join(each.log_tail() for each in (self.one, self.other))

    def expect_pass(self, name, variant="static", **options):
        result = self.across(f"{name}.{variant}", **options)
        wrong = programs.what_is_wrong(name, result)
        self.assertIsNone(wrong, f"{result.out}\n{self.logs()}")

    def test_a_program_on_two_servers(self):
        self.expect_pass("two_devices")

    def test_the_same_with_the_devices_swapped(self):
        self.expect_pass("two_devices", CUDA_VISIBLE_DEVICES="1,0")

    def test_programs_that_use_the_first_device_only(self):
        for name in ("vector_add", "streams_events", "graph_capture", "host_functions",
                     "device_printf", "constant_symbols", "pinned_order"):
            with self.subTest(name):
                self.expect_pass(name)

    def test_the_list_without_the_setting_is_one_server(self):
        addresses = f"{self.one.address},{self.other.address}"
        result = self.one.run("visible_devices.static", server=addresses)
        self.assertEqual(result.out.split()[1], "1", result)


if __name__ == "__main__":
    unittest.main()
