"""One program with devices of several servers: what it computes on them, and what is refused."""
import json
import os
import pathlib
import signal
import sys
import unittest

import programs
import scrape
import server


class SeveralHostsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.metrics = f"127.0.0.1:{server.free_port()}"
        cls.one = cls.enterClassContext(server.Server(
            config=f"metrics: {cls.metrics}\nmetrics_per_session: true\n"))
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

    def test_steps_at_random_over_both_keep_their_order(self):
        self.expect_pass("across_order")
        result = self.across("across_order.static", "150", "7")
        self.assertIsNone(programs.what_is_wrong("across_order", result), self.logs())

    def test_steps_at_random_over_three(self):
        with server.Server(software_devices=2) as third:
            servers = (self.one, self.other, third)
            result = self.across("across_order.static", "150", "3", servers=servers)
        self.assertIsNone(programs.what_is_wrong("across_order", result), self.logs())

    def test_kernels_that_run_on_both_hear_the_program(self):
        result = self.across("across_pinned.static", "20", "30")
        self.assertIsNone(programs.what_is_wrong("across_pinned", result), self.logs())

    def test_the_same_on_two_devices_of_one(self):
        with server.Server(software_devices=2) as both:
            result = both.run("across_pinned.static", "20", "30", LONGWIRE_DEVICES=2,
                              LONGWIRE_LIVE_WORDS="independent")
        self.assertIsNone(programs.what_is_wrong("across_pinned", result), both.log_tail())

    def test_copies_of_all_forms_between_two(self):
        self.expect_pass("across_copies")
        self.assertIn("has a bridge to", self.logs())

    def test_copies_of_all_forms_among_three(self):
        with server.Server(software_devices=2) as third:
            servers = (self.one, self.other, third)
            result = self.across("across_copies.static", "30", "9", servers=servers)
        self.assertIsNone(programs.what_is_wrong("across_copies", result), self.logs())

    def test_copies_within_a_server_in_a_stream_of_another(self):
        """They need no bridge, and do not pass the program."""
        with server.Server(software_devices=2) as wide, server.Server(software_devices=2) as other:
            result = self.across("across_copies.static", "4", servers=(wide, other),
                                 LONGWIRE_DEVICES=2, LONGWIRE_LOG=1)
        self.assertEqual(0, result.code, result)
        self.assertNotIn("pass through this host", result.err)

    def test_copies_of_all_forms_through_the_program(self):
        self.expect_pass("across_copies", LONGWIRE_DISABLE="bridges")

    def test_a_wait_that_is_passed_too_early_is_found(self):
        result = self.across("across_order.static", LONGWIRE_DISABLE="waits_across")
        self.assertEqual(result.code, 1, result)
        self.assertRegex(result.out + result.err, "out of order|another value came out")

    def test_it_works_in_several_ways_of_the_program(self):
        self.expect_pass("two_devices", CUDA_LAUNCH_BLOCKING="1")

    def end_of_the_second(self, how, *killed):
        """What the program says if these of the second server end while it works."""
        with server.Server() as second:
            addresses = f"{self.one.address},{second.address}"
            process = self.one.start("across_failure.static", how, server=addresses,
                                     LONGWIRE_ACROSS=1)
            try:
                for name in killed:
                    for pid in second.processes().get(name, ()):
                        os.kill(pid, signal.SIGKILL)
                out, err = process.communicate(timeout=100)
            finally:
                process.kill()
        self.assertEqual((process.returncode, out), (0, "PASS across_failure\n"), err)
        self.assertIn(f"longwire: {second.address}: ", err)
        return err

    def test_what_does_not_need_a_server_that_ends_goes_on(self):
        self.end_of_the_second("alone", "longwired", "longwire-warden", "longwire-worker")

    def test_what_waits_for_a_server_that_ends_fails(self):
        err = self.end_of_the_second("waiting", "longwire-worker")
        self.assertIn("which has failed: all contexts of this server fail with it", err)

    def test_its_sessions_have_one_id(self):
        addresses = f"{self.one.address},{self.other.address}"
        process = self.one.start("across_copies.static", "far", "1000000", "1048576",
                                 server=addresses, LONGWIRE_ACROSS=1)
        try:
            sessions = {each.address: each.status()["sessions"]
                        for each in (self.one, self.other)}
            told = self.one.cli("status", "--programs", "--server", addresses)
            as_json = self.one.cli("status", "--programs", "--json", "--server", addresses)
            info = scrape.Scrape(self.metrics).families["longwire_session_program_info"].samples
        finally:
            process.kill()
            process.communicate()
        (first,), (second,) = sessions.values()
        self.assertRegex(first["program_id"], "^[0-9a-f]{16}$")
        self.assertEqual(first["program_id"], second["program_id"])
        self.assertIn(f"program {first['program_id']}  ", told.out)
        for address, (session,) in sessions.items():
            self.assertIn(f"  {address}: session {session['id']}, devices 0, ", told.out)
        self.assertEqual([({"session": str(first["id"]), "tenant": first["tenant"],
                            "program_id": first["program_id"]}, 1)], info)
        (program,) = json.loads(as_json.out)["programs"]
        self.assertEqual(sorted(sessions), sorted(one["server"] for one in program["sessions"]))
        alone = self.one.start("hold_session.static")
        self.assertEqual("", self.one.status()["sessions"][-1]["program_id"])
        alone.kill()
        alone.communicate()

    def test_a_server_that_is_not_there_leaves_no_devices(self):
        gone = f"127.0.0.1:{server.free_port()}"
        result = self.one.run("visible_devices.static", server=f"{self.one.address},{gone}",
                              LONGWIRE_ACROSS=1)
        self.assertIn("devices 0 code 100", result.out)
        self.assertIn(gone, result.err)

    def test_a_local_socket_is_refused(self):
        result = self.one.run("visible_devices.static", server=f"unix:{self.one.door}",
                              LONGWIRE_ACROSS=1)
        self.assertIn("only over a network", result.err)

    def test_what_a_program_learns_about_its_devices(self):
        addresses = f"{self.one.address},{self.other.address}"
        client = pathlib.Path(__file__).with_name("across_client.py")
        result = server.run([self.one.dist / "bin" / "longwire", "run", "--across", "--server",
                             addresses, "--", sys.executable, client], self.one.environment())
        lines = result.out.splitlines()
        self.assertEqual(lines[:2], ["devices 2", "nvml 2"], result)
        domains = [int(line.split()[3]) for line in lines[2:4]]
        self.assertEqual(domains[1] - domains[0], 256, result)
        for line in lines[2:4]:
            self.assertTrue(line.endswith("managed 0 maps 1 nvml True"), result)
        self.assertEqual(lines[4:], ["peers 0 217", "link 0", "managed 801", "mapped 0",
                                     "widths True"], result)

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
