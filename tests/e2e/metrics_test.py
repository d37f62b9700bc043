"""The metrics of a busy daemon: that they keep the conventions, say what is so, and are those of
docs/metrics.md."""
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import time
import unittest

import busy
import fake_nvml
import scrape
import server

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
ROW = re.compile(r"\| `(\w+)` \| (\w+) \| (.*?) \| (.*) \|")

MANY_ROUND_TRIPS = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
for _ in range(100):
    assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
"""


class BusyTest(unittest.TestCase):
    settings = {}

    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(busy.BusyServer(**cls.settings))
        cls.longwire.make_busy(cls)

    def scrape(self):
        return scrape.Scrape(self.longwire.metrics)

    def admin(self, *words):
        result = self.longwire.cli("admin", *words)
        self.assertEqual(0, result.code, result.err)


class ConventionsTest(BusyTest):
    def test_no_series_of_sessions_and_none_of_a_library(self):
        for name, family in self.scrape().families.items():
            self.assertNotIn("session", family.labels(), name)
            self.assertRegex(name, "^(longwire|process)_")

    def test_what_can_be_summed_is_not_summed_already(self):
        seen = self.scrape()
        for name, family in seen.families.items():
            for labels, _ in family.samples:
                self.assertFalse({"total", "limit", "all", "sum"} & set(labels.values()),
                                 (name, labels))
        for device in ("0", "1"):
            self.assertEqual(seen.sum("longwire_device_memory_total_bytes", device=device),
                             seen.sum("longwire_device_memory_bytes", device=device))
            self.assertGreater(seen.values[
                f'longwire_device_memory_bytes{{device="{device}",state="free"}}'], 0)

    def test_suffixes(self):
        for name, family in self.scrape().families.items():
            self.assertEqual(family.kind == "counter", name.endswith("_total"), name)


class FiguresTest(BusyTest):
    def value(self, name, **labels):
        inner = ",".join(f'{label}="{value}"' for label, value in labels.items())
        return self.scrape().values[f"{name}{{{inner}}}" if inner else name]

    def refusals(self, tenant, reason):
        return self.value("longwire_sessions_refused_total", tenant=tenant, reason=reason)

    def test_versions_and_devices(self):
        status = self.longwire.status_as("operator")
        seen = self.scrape().families
        [(build, one)] = seen["longwire_build_info"].samples
        self.assertEqual(1, one)
        self.assertEqual((status["version"], str(status["newest_protocol"])),
                         (build["version"], build["newest_protocol"]))
        devices = {labels["device"]: labels for labels, _ in
                   seen["longwire_device_info"].samples}
        self.assertEqual(["0", "1"], sorted(devices))
        for device in status["devices"]:
            labels = devices[str(device.get("ordinal", 0))]
            self.assertEqual((device["name"], device["uuid"]), (labels["name"], labels["uuid"]))
            self.assertRegex(labels["uuid"], "^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        self.assertNotEqual(devices["0"]["uuid"], devices["1"]["uuid"])
        self.assertEqual({1.0}, {up for _, up in seen["longwire_device_keeper_up"].samples})

    def test_refusals_by_reason_and_tenant(self):
        before = self.refusals("research", "tenant_sessions")
        self.assertGreater(before, 0)
        self.longwire.be_refused()
        self.assertEqual(before + 1, self.refusals("research", "tenant_sessions"))
        self.assertEqual(0, self.refusals("serving", "tenant_sessions"))

    def test_draining(self):
        self.assertEqual(0, self.value("longwire_draining"))
        self.admin("drain")
        self.addCleanup(self.admin, "drain", "--off")
        self.assertEqual(1, self.value("longwire_draining"))
        before = self.refusals("serving", "draining")
        result = self.longwire.run_as("serving", self.longwire.program("allocate.static"))
        self.assertIn("lets it run empty", result.err)
        self.assertEqual(before + 1, self.refusals("serving", "draining"))

    def test_cordoned_devices(self):
        for device in ("0", "1"):
            self.assertEqual(0, self.value("longwire_device_cordoned", device=device))
        for device in ("1", "0"):
            self.admin("cordon", device)
            self.addCleanup(self.admin, "cordon", device, "--off")
            self.assertEqual(1, self.value("longwire_device_cordoned", device=device))
        result = self.longwire.run_as("serving", self.longwire.program("allocate.static"))
        self.assertIn("lets no new sessions onto device 0, 1", result.err)
        self.assertEqual(1, self.refusals("serving", "no_device"))

    def test_how_long_opening_took(self):
        seen = self.scrape().values
        name = "longwire_session_opening_seconds"
        buckets = [value for key, value in seen.items() if key.startswith(f"{name}_bucket")]
        self.assertEqual(sorted(buckets), buckets)
        self.assertEqual(buckets[-1], seen[f"{name}_count"])
        self.assertEqual(seen["longwire_sessions_opened_total"], seen[f"{name}_count"])
        self.assertGreater(seen[f"{name}_sum"], 0.001)
        self.assertLess(seen[f"{name}_sum"], 60 * seen[f"{name}_count"])

    def histogram(self, name, tenant):
        """Its counts, each with those before, the sum and the count."""
        seen = self.scrape()
        buckets = [value for labels, value in seen.families[name].samples
                   if labels.get("tenant") == tenant and "le" in labels]
        of = f'{{tenant="{tenant}"}}'
        return buckets, seen.values[f"{name}_sum{of}"], seen.values[f"{name}_count{of}"]

    def test_how_long_programs_wait(self):
        names = [f"longwire_{what}_seconds"
                 for what in ("round_trip", "launch_queueing", "launch_to_start")]
        before = {name: self.histogram(name, "serving")[2] for name in names}
        asks = self.longwire.run_as("serving", sys.executable, "-c", MANY_ROUND_TRIPS)
        self.assertEqual(0, asks.code, asks.err)
        begun = time.monotonic()
        result = self.longwire.run_as("serving", self.longwire.program("steady.static"), "4")
        passed = time.monotonic() - begun
        self.assertEqual(0, result.code, result.out + result.err)
        for name in names:  # the session has ended, and what it counted stays
            buckets, total, count = self.histogram(name, "serving")
            self.assertEqual(sorted(buckets), buckets, name)
            self.assertEqual(buckets[-1], count, name)
            self.assertGreater(count, before[name], name)
            self.assertLess(total, passed * count + 60, name)
        _, queued, count = self.histogram(names[1], "serving")
        _, until_start, same = self.histogram(names[2], "serving")
        self.assertGreaterEqual(until_start, queued if count == same else 0)
        self.assertEqual(0, self.histogram(names[0], "operator")[2], "it has no session")

    def test_when_the_certificate_expires(self):
        shown = subprocess.run(
            ["openssl", "x509", "-noout", "-enddate", "-in",
             self.longwire.papers / "127.0.0.1.crt"], check=True, capture_output=True, text=True)
        expires = ssl.cert_time_to_seconds(shown.stdout.strip().split("=")[1])
        self.assertEqual(expires, self.value("longwire_certificate_expiry_timestamp_seconds"))

    def test_the_process(self):
        pid = self.longwire.children["longwired"].pid
        seen = self.scrape().values
        age = time.time() - seen["process_start_time_seconds"]
        self.assertTrue(0 < age < 600, age)
        self.assertTrue(0 < seen["process_cpu_seconds_total"] < age * 64)
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        for name, field in (("resident", "VmRSS"), ("virtual", "VmSize")):
            real = int(re.search(rf"{field}:\s+(\d+) kB", status).group(1)) * 1024
            self.assertTrue(0.5 * real < seen[f"process_{name}_memory_bytes"] < 2 * real, name)
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        most = int(re.search(r"Max open files\s+(\d+)", limits).group(1))
        self.assertEqual(most, seen["process_max_fds"])
        there = len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))
        self.assertAlmostEqual(there, seen["process_open_fds"], delta=8)
        self.assertEqual(seen["process_start_time_seconds"],
                         self.scrape().values["process_start_time_seconds"])


class PortTest(BusyTest):
    """What strangers send to the port harms nobody."""

    def send(self, words):
        host, port = self.longwire.metrics.split(":")
        with socket.create_connection((host, port), 10) as stranger:
            stranger.settimeout(20)
            try:
                stranger.sendall(words)
                return stranger.recv(100)
            except (ConnectionResetError, BrokenPipeError):  # closed before all of it was sent
                return b""

    def test_other_requests_are_refused(self):
        for words, answer in ((b"GET / HTTP/1.1\r\n\r\n", b"404"),
                              (b"GET /../../etc/passwd HTTP/1.1\r\n\r\n", b"404"),
                              (b"POST /metrics HTTP/1.1\r\nContent-Length: 4\r\n\r\nfour", b"404"),
                              (b"PUT /metrics HTTP/1.1\r\nContent-Length: 4\r\n\r\nfour", b"405"),
                              (b"\x16\x03\x01\x00\xa5" + b"\xff" * 99 + b"\r\n\r\n", b"400"),
                              (b"GET /" + b"a" * (1 << 20), b"")):
            with self.subTest(words[:40]):
                self.assertIn(answer, self.send(words))
                self.assertIn("longwire_build_info", self.scrape().text)

    def test_who_says_nothing_keeps_nobody_waiting_for_long(self):
        host, port = self.longwire.metrics.split(":")
        for _ in range(2):  # as many as it has threads
            stranger = socket.create_connection((host, port), 10)
            self.addCleanup(stranger.close)
        begun = time.monotonic()
        self.assertIn("longwire_build_info", scrape.Scrape(self.longwire.metrics, 30).text)
        self.assertLess(time.monotonic() - begun, 25)


class EveryFamilyTest(BusyTest):
    @classmethod
    def setUpClass(cls):
        driver = cls.enterClassContext(fake_nvml.Driver())
        cls.settings = {"metrics_per_session": True, "driver": driver.path}
        super().setUpClass()
        server.wait_for(lambda: "longwire_device_power_watts" in scrape.fetch(
            cls.longwire.metrics), 10, "what is known of the devices")

    def test_promtool_finds_nothing(self):
        result = subprocess.run(["promtool", "check", "metrics"], input=self.scrape().text,
                                capture_output=True, text=True, check=False)
        self.assertEqual((0, "", ""), (result.returncode, result.stdout, result.stderr))

    def test_the_page_has_them_all(self):
        # Of servers in a pool there are some more (pool_test.py), of programs with several
        # servers (several_hosts_test.py), and where kernels are timed (advise_test.py).
        told = {row[0]: row[1:] for row in ROW.findall(PAGE.read_text())
                if not row[0].startswith("longwire_pool_") and
                row[0] not in ("longwire_session_program_info",
                               "longwire_kernel_time_drift_ratio")}
        seen = {name: (family.kind,
                       ", ".join(f"`{label}`" for label in sorted(family.labels())), family.help)
                for name, family in self.scrape().families.items()}
        self.assertEqual(seen, told)

    def test_every_family_has_samples(self):
        for name, family in self.scrape().families.items():
            self.assertTrue(family.samples, name)


if __name__ == "__main__":
    unittest.main()
