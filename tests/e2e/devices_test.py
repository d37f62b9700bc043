"""Sessions with several devices: what a program computes on two, and which it sees."""
import unittest

import programs
import server


class TwoDevicesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server(software_devices=2))
        cls.all_devices = cls.seen()

    @classmethod
    def seen(cls, **environment):
        """The UUIDs that a program sees, in its order."""
        result = cls.longwire.run("visible_devices.static", LONGWIRE_DEVICES=2, **environment)
        wrong = programs.what_is_wrong("visible_devices", result)
        assert wrong is None, f"{wrong}\n{cls.longwire.log_tail()}"
        lines = result.out.splitlines()
        uuids = [line.split()[0] for line in lines if line.startswith("GPU-")]
        assert lines[0].split()[1] == str(len(uuids)), result.out
        return uuids

    def expect_pass(self, name, variant="static", **options):
        # The programs compare what is free: nothing of an earlier session may be on its way back.
        server.wait_for(self.longwire.is_unused, 10, "earlier sessions' memory")
        result = self.longwire.run(f"{name}.{variant}", LONGWIRE_DEVICES=2, **options)
        self.assertIsNone(programs.what_is_wrong(name, result), self.longwire.log_tail())

    def test_a_program_on_two_devices(self):
        self.expect_pass("two_devices")

    def test_a_peer_copy_is_a_border_between_all_work_of_both(self):
        self.expect_pass("peer_border")

    def test_memory_that_both_devices_and_the_program_share(self):
        self.expect_pass("managed_devices")

    def test_two_processes_reach_each_others_memory(self):
        self.expect_pass("peer_processes")

    def test_one_process_reduces_over_both_as_nccl_does(self):
        self.expect_pass("peer_collective")

    def test_what_a_link_can_do_and_boxes_over_it(self):
        self.expect_pass("driver_peers", "driver")

    def test_a_cooperative_launch_on_both(self):
        self.expect_pass("driver_settings", "driver")

    def test_the_same_through_the_local_socket(self):
        self.expect_pass("two_devices", server=f"unix:{self.longwire.door}")

    def test_the_same_with_the_devices_swapped(self):
        self.expect_pass("two_devices", CUDA_VISIBLE_DEVICES="1,0")

    def test_another_devices_memory_faults(self):
        self.expect_pass("peer_fault")
        self.expect_pass("two_devices")

    def test_visible_devices(self):
        first, second = self.all_devices
        for value, expected in (("1", [second]), ("1,0", [second, first]), ("", []), ("7", []),
                                ("0,7,1", [first]), ("0,0", []), (second, [second]),
                                (f"{second},{first}", [second, first]), ("GPU-00000000", [])):
            with self.subTest(value):
                self.assertEqual(expected, self.seen(CUDA_VISIBLE_DEVICES=value))

    def test_the_code_of_no_device_and_of_one_named_twice(self):
        for value, code in (("", 100), ("0,0", 101)):
            result = self.longwire.run("visible_devices.static", LONGWIRE_DEVICES=2,
                                       CUDA_VISIBLE_DEVICES=value)
            self.assertEqual(f"devices 0 code {code}", result.out.splitlines()[0])

    def test_an_unknown_order(self):
        result = self.longwire.run("visible_devices.static", CUDA_DEVICE_ORDER="nonsense")
        self.assertEqual("devices 0 code 101", result.out.splitlines()[0])

    def test_doctor_and_status_list_both(self):
        doctor = self.longwire.cli("doctor", "--server", self.longwire.address)
        self.assertEqual(0, doctor.code, doctor.out + doctor.err)
        status = self.longwire.cli("status", "--server", self.longwire.address)
        for name in ("Software device 0", "Software device 1"):
            self.assertIn(name, doctor.out)
            self.assertIn(name, status.out)
        devices = self.longwire.status()["devices"]
        self.assertEqual([0, 1], [device["ordinal"] for device in devices])


if __name__ == "__main__":
    unittest.main()
