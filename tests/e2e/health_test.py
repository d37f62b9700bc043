"""How devices are, as NVIDIA's management library says: power, temperature, clocks, why they are
throttled, errors, in status, top and the metrics; and nothing at all where that library is not."""
import json
import pathlib
import unittest

import fake_nvml
import scrape
import server

FIGURES = ("power_watts", "temperature_celsius", "sm_clock_mhz", "memory_clock_mhz",
           "throttle_reasons", "ecc_uncorrected", "xid_errors")


class HealthCase(unittest.TestCase):
    @classmethod
    def start(cls, driver):
        cls.metrics = f"127.0.0.1:{server.free_port()}"
        cls.longwire = cls.enterClassContext(
            server.Server(driver=str(driver), config=f"metrics: {cls.metrics}\n"))

    @classmethod
    def start_with(cls, values=None):
        cls.driver = cls.enterClassContext(fake_nvml.Driver(values))
        cls.start(cls.driver.path)
        server.wait_for(lambda: cls.status()["health"], 10, "the first figures")

    @classmethod
    def status(cls):
        [device] = cls.longwire.status()["devices"]
        return device

    def top(self):
        result = self.longwire.cli("top", "--once", "--json")
        self.assertEqual(0, result.code, result.err)
        [device] = json.loads(result.out)["devices"]
        return device

    def samples(self):
        return scrape.Scrape(self.metrics).values


class KnownTest(HealthCase):
    @classmethod
    def setUpClass(cls):
        cls.start_with()

    def test_status(self):
        self.assertEqual(
            {"power_watts": 312.4, "power_limit_watts": 700.0, "temperature_celsius": 64,
             "sm_clock_mhz": 1980, "memory_clock_mhz": 2619, "gpu_utilization_percent": 87,
             "memory_utilization_percent": 31, "ecc_corrected": 5, "ecc_uncorrected": 2,
             "throttling": {"reasons": ["gpu_idle", "hw_thermal_slowdown"]},
             "xids": {"count": 0, "last": 0}}, self.status()["health"])
        self.assertRegex(self.status()["uuid"], "^GPU-[0-9a-f-]{36}$")
        self.assertIn("busy 0 % of the last minute, 312 W, 64 °C, 1980 MHz, 2 errors of memory "
                      "that were not corrected, idle, slowed: hw_thermal_slowdown\n",
                      self.longwire.cli("status").out)

    def test_top(self):
        device = self.top()
        self.assertEqual([312.4, 64, 1980, 2619, ["gpu_idle", "hw_thermal_slowdown"], 2, 0],
                         [device[name] for name in FIGURES])
        text = self.longwire.cli("top", "--once").out
        self.assertRegex(text, r"312W +64C +1980MHz slowed")
        self.assertNotIn("n/a", text)

    def test_metrics(self):
        seen = self.samples()
        device = 'longwire_device_{}{{device="0"{}}}'.format
        for name, value in {
                device("power_watts", ""): 312.4,
                device("power_limit_watts", ""): 700,
                device("temperature_celsius", ""): 64,
                device("clock_hertz", ',clock="sm"'): 1980e6,
                device("clock_hertz", ',clock="memory"'): 2619e6,
                device("utilization_ratio", ',part="gpu"'): 0.87,
                device("utilization_ratio", ',part="memory"'): 0.31,
                device("throttled", ',reason="hw_thermal_slowdown"'): 1,
                device("throttled", ',reason="sw_power_cap"'): 0,
                device("ecc_errors_total", ',kind="corrected"'): 5,
                device("ecc_errors_total", ',kind="uncorrected"'): 2,
                device("xid_errors_total", ""): 0,
                device("xid_last", ""): 0}.items():
            self.assertAlmostEqual(value, seen[name], msg=name)


class ChangingTest(HealthCase):
    def test_changes_and_errors_are_seen(self):
        self.start_with()
        self.driver.set(temperature=91, xid=79, reasons=0)
        server.wait_for(lambda: self.status()["health"]["xids"] == {"count": 1, "last": 79}, 10,
                        "the error")
        server.wait_for(lambda: self.status()["health"]["temperature_celsius"] == 91, 10,
                        "the temperature")
        self.assertEqual({"reasons": []}, self.status()["health"]["throttling"])
        self.driver.set(xid=31)
        server.wait_for(lambda: self.status()["health"]["xids"] == {"count": 2, "last": 31}, 10,
                        "the next error")
        self.assertEqual(2, self.samples()['longwire_device_xid_errors_total{device="0"}'])
        self.assertIn("Xid 31", self.longwire.cli("top", "--once").out)


class PartlyKnownTest(HealthCase):
    """A device of which the library knows little."""

    def test_the_rest_is_absent(self):
        self.start_with({"temperature": 0})
        health = self.status()["health"]
        self.assertEqual(0, health.pop("temperature_celsius"), "it may be that cold")
        self.assertEqual({None}, set(health.values()), health)
        self.assertIn('longwire_device_temperature_celsius{device="0"}', self.samples())
        self.assertNotIn("longwire_device_power_watts", scrape.Scrape(self.metrics).text)


class UnknownTest(HealthCase):
    def test_a_software_device_has_none(self):
        self.start("software")
        self.assertIsNone(self.status()["health"])
        self.assertEqual({None}, {self.top()[name] for name in FIGURES})
        self.assertIn("n/a: NVIDIA's management library", self.longwire.cli("top", "--once").out)
        names = scrape.Scrape(self.metrics).families
        self.assertFalse([name for name in names
                          if any(word in name for word in
                                 ("power", "celsius", "clock", "throttled", "ecc", "xid"))])
        log = pathlib.Path(self.longwire.log).read_text()
        self.assertNotIn("nvidia-ml", log, "its absence is no error")


if __name__ == "__main__":
    unittest.main()
