"""Programs that begin when the server has just come back, on a host whose link still has
connections to the one before."""
import unittest

import programs
import server


class RestartTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(server.Server())
        # Leaves nine connections behind, more than times that a session is asked for.
        self.expect_pass("large_copies", LONGWIRE_TRANSFER_STREAMS=8)

    def expect_pass(self, name, **environment):
        result = self.longwire.run(f"{name}.static", **environment)
        self.assertIsNone(programs.what_is_wrong(name, result), self.longwire.log_tail())

    def test_after_a_crash(self):
        daemon = self.longwire.children.pop("longwired")
        daemon.kill()
        daemon.wait()
        self.longwire.start_daemon()
        self.expect_pass("vector_add")

    def test_after_a_stop(self):
        self.longwire.end_daemon()
        self.longwire.start_daemon()
        self.expect_pass("vector_add")

    def test_a_quick_restart_waits_for_the_one_that_ends(self):
        first = self.longwire.children.pop("longwired")
        self.longwire.start_daemon()  # which finds the port of the first
        second = self.longwire.children["longwired"]
        server.wait_for(lambda: "waiting for it to end" in self.longwire.log_tail(), 8, "its wait")
        self.assertIsNone(second.poll())
        first.terminate()
        first.wait(30)
        server.wait_for(lambda: self.longwire.log.read_text().count("ready, version") == 2, 8,
                        "the second daemon")
        self.expect_pass("vector_add")

    def test_what_the_warden_does_not_take_over_is_said(self):
        self.longwire.end_daemon()
        self.longwire.config_file.write_text("software_device: {count: 3, memory: 2GiB}\n")
        self.longwire.start_daemon()
        server.wait_for(lambda: "software_device" in self.longwire.log_tail(), 8, "the sentence")
        said = next(line for line in self.longwire.log.read_text().splitlines()
                    if "software_device" in line)
        self.assertRegex(said, "software_device.count is 3, but 1 are served; "
                               r"software_device.memory is 2048MiB, but a device has \d+MiB: .*"
                               r"end the warden \(process \d+, with its sessions\)")
        self.expect_pass("vector_add")


if __name__ == "__main__":
    unittest.main()
