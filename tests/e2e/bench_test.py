"""longwire bench: the same rows in both forms, an honest native column, and clear refusals."""
import json
import re
import subprocess
import unittest
import xml.etree.ElementTree

import server

# Every row and its unit, as a program that reads the output relies on them. The largest copies and
# the product are small ones where the server has the software device.
ROWS = {"start_to_first_result": "ms",
        "launch_enqueue": "us", "launch_sustained": "us", "launch_synchronize": "us",
        "step_200_kernels_d2h": "us", "step_200_other_values": "us",
        "step_200_other_order": "us",
        "event_record": "us", "event_query": "us", "stream_query_idle": "us",
        "graph_50_replay_sync": "us", "alloc_free_1MiB": "us", "memory_info": "us",
        "limit_query": "us",
        **{f"{way}_{kind}_{size}": "us" if size == "4KiB" else "GB/s"
           for size in ("4KiB", "1MiB", "16MiB") for kind in ("pageable", "pinned")
           for way in ("h2d", "d2h")},
        "launch_sync_after_copies": "us", "gemm_128": "ms"}
# Wider than any machine is fast or slow; they hold a unit that is wrong by a thousand.
PLAUSIBLE = {"ms": (0.1, 60_000), "us": (0.001, 1_000_000), "GB/s": (0.001, 1000)}
NO_GPU = "This host has no GPU of its own to compare with."


class BenchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())
        # A driver that cannot be loaded, as on a host without a GPU, also where there is one.
        cls.no_driver = cls.longwire.runtime / "no-driver"
        cls.no_driver.mkdir()
        (cls.no_driver / "libcuda.so.1").touch()

    def bench(self, *words, native=None, to=None, **environment):
        """Runs the command; `native`: the folder in which the native side finds its driver."""
        address = ["--server", to or self.longwire.address] if to != "" else []
        command = [self.longwire.dist / "bin" / "longwire", "bench", *address, *words]
        environment["LD_LIBRARY_PATH"] = native or self.no_driver
        return server.run(command, self.longwire.environment(**environment), 100)

    def figures(self, *words, **options):
        result = self.bench("--json", *words, **options)
        self.assertEqual(0, result.code, f"{result.err}\n{self.longwire.log_tail()}")
        found = json.loads(result.out)
        self.assertTrue(found["software_device"], found)
        self.assertGreater(found["round_trip_us"], 1)
        self.assertGreater(found["processors"], 0)
        self.assertRegex(found["date"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        return found["figures"]

    def refused(self, code, sentence, *words, **options):
        result = self.bench(*words, **options)
        self.assertEqual(code, result.code, result.err)
        self.assertIn(sentence, result.err)
        self.assertEqual("", result.out)

    def test_json_has_every_row_with_plausible_figures(self):
        figures = self.figures("--rounds", "1")
        self.assertEqual(list(ROWS.items()), [(row["name"], row["unit"]) for row in figures])
        for row in figures:
            low, high = PLAUSIBLE[row["unit"]]
            self.assertTrue(low <= row["remote"] <= high, row)
            for absent in ("native", "native_worst"):
                self.assertIsNone(row[absent], row)  # it is null, not zero or left out
            self.assertEqual(row["remote"], row["remote_worst"], "of one round")
        remote = {row["name"]: row["remote"] for row in figures}
        self.assertLess(remote["launch_enqueue"], remote["launch_synchronize"],
                        "a launch that waits for nobody costs more than a round trip")

    def test_the_table_has_the_same_rows_and_says_that_there_is_no_gpu(self):
        result = self.bench("--rounds", "1")
        self.assertEqual(0, result.code, result.err)
        where, host, software, _, head, *rows, empty, last = result.out.splitlines()
        self.assertRegex(where, f"^server {self.longwire.address}: longwired 0[.0-9]+, Software "
                                r"device \(PTX interpreter\), round trip \d+\.\d us$")
        self.assertRegex(host, r"^this host: \d+ processors; 20\d\d-")
        self.assertEqual("The server has the software device: these figures say nothing about a "
                         "GPU.", software)
        self.assertEqual(["figure", "native", "worst", "longwire", "worst", "unit", "ratio"],
                         head.split())
        self.assertEqual(("", NO_GPU), (empty, last))
        rows = [row.split() for row in rows]
        self.assertEqual(list(ROWS.items()), [(row[0], row[5]) for row in rows])
        for _, native, native_worst, remote, worst, _, ratio in rows:
            self.assertEqual(("-", "-", "-"), (native, native_worst, ratio))
            self.assertGreater(float(remote), 0)
            self.assertEqual(remote, worst)

    def test_a_driver_of_this_host_fills_the_native_column(self):
        # The software device stands where a real driver stands, also on this side.
        driver = self.longwire.dist / "lib/longwire/softgpu"
        result = self.bench("--rounds", "3", "start", native=driver)
        self.assertEqual(0, result.code, result.err)
        self.assertNotIn(NO_GPU, result.out)
        (name, native, _, remote, worst, unit, ratio), = map(str.split,
                                                             result.out.splitlines()[5:])
        self.assertGreaterEqual(float(worst), float(remote))
        self.assertEqual(("start_to_first_result", "ms"), (name, unit))
        self.assertGreater(float(native), 0)
        # The table has three decimals of each.
        self.assertAlmostEqual(1, float(ratio) * float(native) / float(remote), delta=0.01)

    def test_the_native_side_never_goes_to_the_server(self):
        shim = self.longwire.dist / "lib/longwire"
        figures = self.figures("--rounds", "1", "start", native=shim, to="",
                               LONGWIRE_SERVER=self.longwire.address)
        self.assertEqual([("start_to_first_result", None)],
                         [(row["name"], row["native"]) for row in figures])

    def test_a_page_of_the_same_figures(self):
        page = self.longwire.runtime / "bench.html"
        figures = {row["name"]: row["remote"] for row in
                   self.figures("--rounds", "1", "--html", page, "start", "calls")}
        text = page.read_text()
        for words in (self.longwire.address, "Software device", "say nothing about a GPU", NO_GPU):
            self.assertIn(words, text)
        svg = text[text.index("<svg"):text.index("</svg>") + len("</svg>")]
        texts = [one.text for one in xml.etree.ElementTree.fromstring(svg).iter("text")]
        self.assertEqual(list(figures), [one for one in texts if one in figures])
        for name, row in re.findall(r'<tr><th scope="row">(\w+)</th>(.*)</tr>', text):
            shown = float(re.findall("<td>([^<]*)</td>", row)[2])
            self.assertAlmostEqual(figures[name], shown, delta=0.006 * max(1, figures[name]))
        self.refused(1, "cannot write /nowhere/x.html", "--html", "/nowhere/x.html", "start")

    def test_bad_input_is_refused_with_a_sentence(self):
        self.refused(2, "no server; give --server HOST:PORT or set LONGWIRE_SERVER", to="")
        self.refused(2, "--rounds expects a number from 1 to 1000", "--rounds", "0")
        self.refused(2, "--rounds expects a number from 1 to 1000", "--rounds", "2x")
        self.refused(2, "--rounds needs a value", "--rounds")
        self.refused(2, "unknown group 'launches'", "launches")

    def test_a_server_that_is_not_there_is_named(self):
        nobody = f"127.0.0.1:{server.free_port()}"
        self.refused(1, f"nothing listens at {nobody}", "--rounds", "1", to=nobody)
        self.refused(1, f"driver_figures failed through {nobody}", "start", to=nobody)
        self.refused(1, "'99999' in '127.0.0.1:99999' is no port", to="127.0.0.1:99999")

    def test_an_installation_without_the_programs_says_so(self):
        # The command alone, as it would be copied to another host.
        copy = self.longwire.runtime / "copy/bin"
        copy.mkdir(parents=True)
        subprocess.run(["cp", self.longwire.dist / "bin/longwire", copy], check=True)
        result = server.run([copy / "longwire", "bench", "--server", self.longwire.address],
                            self.longwire.environment(), 20)
        missing = f"{copy}/../lib/longwire/bench/driver_figures"
        self.assertEqual((1, f"longwire bench: there is no {missing}; the installation is not "
                          "complete\n"), (result.code, result.err))


if __name__ == "__main__":
    unittest.main()
