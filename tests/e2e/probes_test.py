"""Probes in programs' kernels: what the tools count, that programs compute what they did before,
that what is put in is PTX for ptxas, and what is refused. All programs with --long."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import programs
import server
import trace_events

APPS = pathlib.Path(__file__).resolve().parents[1] / "apps"
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "extending.md"
OBJECTS = server.build_folder() / "probe" / "objects"
INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "probe" / "include"
TOOLS = ["threadhist", "kernelretsnoop", "launchlate", "memhist", "smload"]
# Divergence, shared memory and fences; graphs; the driver's own calls.
SAMPLE = ["vector_add.static", "reduce_shuffle.static", "graph_capture.static", "driver_ptx.driver"]
COMPILED_IN_PARTS = {"device_launches", "separate_parts", "one_part"}
CUDA = pathlib.Path(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc").parent
LONG = "--long" in sys.argv
END_BY_FAULTS = {"failed_assert", "illegal_address", "managed_end", "tensor_copies",
                 "unified_query"}
VECTORS = [1, 31, 128, 129, 1000, 65537, 300000]  # that vector_add adds


def names(build):
    if not LONG:
        return SAMPLE
    return SAMPLE + [f"{name}.{variant}" for name, variant, kind in programs.list_programs(build)
                     if kind == "any"]


def counts(report, title):
    """{key or range: count} of a map in a report."""
    found = {}
    for line in report.split(title + "\n", 1)[1].splitlines():
        match = re.match(r"^ +(\d+\w? to \d+\w?|\d+) +(\d+)(?:  #+)?$", line)
        if not match:
            break
        found[match[1]] = int(match[2])
    return found


def compiled(folder, text, name="lanes.o"):
    made = pathlib.Path(folder) / name
    source = made.with_suffix(".c")
    source.write_text(text)
    subprocess.run(["clang-19", "-target", "bpf", "-mcpu=v2", "-O2", "-g", "-Wall", "-Werror",
                    f"-I{INCLUDE}", "-c", source, "-o", made], check=True)
    return made


class ProbesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def probe(self, tool, name, *options, **variables):
        with tempfile.NamedTemporaryFile("r") as report:
            command = [self.longwire.dist / "bin" / "longwire", "probe", tool, "-o", report.name,
                       *options, "--server", self.longwire.address, "--",
                       self.longwire.build / "tests" / "apps" / name]
            result = server.run(command, self.longwire.environment(**variables))
            return result, report.read()

    def check(self, tool, name, *options):
        result, report = self.probe(tool, name, *options)
        wrong = programs.what_is_wrong(name.split(".")[0], result)
        self.assertIsNone(wrong, f"{tool} {name}: {result}\n{report}\n{self.longwire.log_tail()}")
        return report

    def test_programs_compute_what_they_did_before(self):
        for name in names(self.longwire.build):
            for tool in TOOLS if name == SAMPLE[0] else ["memhist", "kernelretsnoop"]:
                with self.subTest(name, tool=tool):
                    report = self.check(tool, name)
                    # What lies on the device is lost with the context; the report says so.
                    lost = (name.split(".")[0] in END_BY_FAULTS
                            and re.search(r"probes at [1-9]", report) is not None)
                    self.assertEqual(lost, "could not be read" in report, report)
                    if name in SAMPLE:
                        self.assertRegex(report, r"probes at [1-9]\d* places of [1-9]\d* modules")

    def test_tools_count_what_was_there(self):
        blocks = sum((count + 127) // 128 for count in VECTORS)
        report = self.check("threadhist", "vector_add.static")
        self.assertEqual(blocks * 4, sum(counts(report, "cycles of warps").values()), report)
        report = self.check("launchlate", "vector_add.static")
        self.assertEqual(blocks, sum(counts(report, "nanoseconds late").values()), report)
        report = self.check("smload", "vector_add.static")
        self.assertEqual(blocks * 4, sum(counts(report, "warps of sm").values()), report)
        report = self.check("kernelretsnoop", "vector_add.static")
        self.assertIn(f"{blocks * 4} records, 20 shown, 0 lost", report)
        self.assertRegex(report, r"\n  _Z3Add\w+  \d+  \d+  \d+\n")
        report = self.check("memhist", "vector_add.static")
        # A warp that has an element loads two and stores one.
        warps = sum((count + 31) // 32 for count in VECTORS)
        self.assertEqual({"1": warps * 2, "2": warps}, counts(report, "loads stores atomics"))

    def traced(self, tool, title, *options):
        """The spans of a tool in the trace of vector_add, by kernel of the trace."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "trace.json"
            report = self.check(tool, "vector_add.static", "--trace-file", file, *options)
            events = trace_events.read(file)
        self.assertEqual([], trace_events.faults(events)[:3])
        [part] = [event["pid"] for event in events if event["name"] == "process_name"
                  and event["args"]["name"] == f"probes on device 0: {title}"]
        kernels = sorted((event for event in trace_events.spans(events, trace_events.DEVICE)
                          if event["name"].startswith("Add(")), key=trace_events.bounds)
        self.assertEqual(len(VECTORS), len(kernels))
        return kernels, trace_events.spans(events, part), report

    def assert_within(self, kernels, spans):
        """Each span lies in a launch of its kernel, as exactly as the clocks are known; how many
        lie in each."""
        found = [0] * len(kernels)
        for span in spans:
            begin, end = trace_events.bounds(span)
            self.assertEqual(kernels[0]["name"], span["name"])
            for number, kernel in enumerate(kernels):
                first, last = trace_events.bounds(kernel)
                error = kernel["args"]["clock_error_ns"] + span["args"]["clock_error_ns"]
                if first - error <= begin and end <= last + error:
                    found[number] += 1
                    break
            else:
                self.fail(f"{span} is in none of {[*map(trace_events.bounds, kernels)]}")
        return found

    def test_spans_of_probes_are_in_the_trace(self):
        blocks = [(count + 127) // 128 for count in VECTORS]
        for tool, title, each in (("launchlate", "blocks", 1), ("kernelretsnoop", "warps", 4),
                                  ("threadhist", "warps", 4)):
            with self.subTest(tool):
                kernels, spans, report = self.traced(tool, title)
                self.assertEqual(sum(blocks) * each, len(spans), report)
                self.assertEqual(set(range(max(blocks) * each)),
                                 {span["args"]["number"] for span in spans})
                # Launches are far enough from each other, but for what the clocks do not know.
                found = self.assert_within(kernels, spans)
                self.assertEqual(sum(blocks) * each, sum(found))
                self.assertGreater(found[-1], sum(blocks) * each // 2)
        self.assertEqual(sum(blocks) * 4, sum(counts(report, "cycles of warps").values()))

    def test_the_example_of_the_page(self):
        [example] = re.findall(r"```c\n(#include <longwire/probe.h>.*?)```", PAGE.read_text(),
                               re.DOTALL)
        with tempfile.TemporaryDirectory() as folder:
            made = compiled(folder, example)
            report = self.check(str(made), "vector_add.static")
            self.assertEqual(sum((count + 127) // 128 for count in VECTORS) * 4,
                             counts(report, "lanes left")["32 to 64"], report)
            result = server.run([self.longwire.dist / "bin" / "longwire", "run", "--probe", made,
                                 "--server", self.longwire.address, "--",
                                 self.longwire.program("vector_add.static")],
                                self.longwire.environment())
            self.assertEqual(0, result.code, result)
            self.assertIn("lanes left\n", result.err)

    def test_what_is_put_in_is_ptx(self):
        longwire = self.longwire.dist / "bin" / "longwire"
        sources = {APPS / f"{name.split('.')[0]}.cu" for name in names(self.longwire.build)}
        texts = [source for source in sorted(sources)
                 if source.exists() and source.stem not in COMPILED_IN_PARTS]
        self.assertGreater(len(texts), 2)
        for source in texts:
            with self.subTest(source.name), tempfile.TemporaryDirectory() as folder:
                text = pathlib.Path(folder) / "app.ptx"
                subprocess.run([CUDA / "nvcc", "-ptx", "-std=c++17", "-w", "-arch=compute_90",
                                source, "-o", text], check=True)
                self.compile(longwire, text)

    def compile(self, longwire, text):
        target = re.search(r"^\.target (sm_\w+)", text.read_text(), re.MULTILINE)[1]
        probed = text.with_suffix(".probed")
        printed = server.run([longwire, "probe", OBJECTS / "counts.o", "--print", text],
                             self.longwire.environment())
        self.assertEqual(0, printed.code, printed)
        probed.write_text(printed.out)
        made = server.run([CUDA / "ptxas", f"-arch={target}", "-c", probed, "-o",
                           text.with_suffix(".o")], self.longwire.environment())
        self.assertEqual(0, made.code, made)

    def test_what_the_driver_refuses_with_probes_runs_without(self):
        """Here because the maps have no room in the device's memory, and the program has."""
        rings = 40  # of 2 MiB
        maps = "".join(f"LW_MAP(ring{i}, LW_RING, 65536);\n" for i in range(rings))
        puts = "".join(f"  lw_ring_put(&ring{i}, 1, 2, 3, 4);\n" for i in range(rings))
        text = ("#include <longwire/probe.h>\n" + maps + "LW_PROBE(kernel_exit) int leaves("
                "struct lw_point* point) {\n" + puts + "  return 0;\n}\n")
        with tempfile.TemporaryDirectory() as folder, \
                server.Server(software_memory=64 << 20) as small:
            made = compiled(folder, text)
            report = self.check(made, "vector_add.static")
            self.assertIn("probes at 1 places of 1 modules", report)
            self.longwire, usual = small, self.longwire
            self.addCleanup(setattr, self, "longwire", usual)
            report = self.check(made, "vector_add.static")
            self.assertRegex(report, r"module [0-9a-f]{12} \(\d+ bytes\) has no probes: the driver "
                                     r"refuses it with probes \(CUDA_ERROR_OUT_OF_MEMORY\), so it "
                                     "is loaded without")
            self.assertIn("probes at 0 places of 0 modules", report)

    def test_a_pattern_that_fits_nothing_is_named(self):
        result, report = self.probe("threadhist", "vector_add.static", "--kernels", "Nothing*")
        self.assertIsNone(programs.what_is_wrong("vector_add", result), result)
        self.assertIn("no kernel whose name in the module fits 'Nothing*' was loaded", report)

    def test_a_report_that_cannot_be_written_is_no_start(self):
        result = self.longwire.cli("probe", "threadhist", "-o", "/nowhere/report", "--server",
                                   self.longwire.address, "--",
                                   self.longwire.program("vector_add.static"))
        self.assertEqual((2, ""), (result.code, result.out))
        self.assertIn("--output /nowhere/report: No such file or directory; name", result.err)

    def test_modules_without_ptx_are_named(self):
        result, report = self.probe("threadhist", "driver_cubin.driver")
        self.assertIn("PASS driver_cubin", result.out, result)
        self.assertRegex(report, r"module [0-9a-f]{12} \(\d+ bytes\) has no probes: it is code of "
                                 "one architecture, without PTX; build it with PTX")
        self.assertIn("probes at 0 places of 0 modules", report)
        result, report = self.probe("threadhist", "separate_parts.static")
        self.assertIsNone(programs.what_is_wrong("separate_parts", result), result)
        self.assertIn("separately compiled parts", report)
        result, report = self.probe("threadhist", "driver_ptx.driver")
        self.assertIsNone(programs.what_is_wrong("driver_ptx", result), result)
        self.assertRegex(report, r"has no probes: PTX line 5: ")

    def triton_cache(self, folder, text):
        """Code of one architecture, and a text beside it, as Triton keeps its kernels."""
        kept = pathlib.Path(folder) / "WXYZ"
        kept.mkdir()
        cubin = self.longwire.build / "tests" / "apps" / "driver_kernels.cubin"
        (kept / "Scale.cubin").write_bytes(cubin.read_bytes())
        (kept / "Scale.ptx").write_text(text)
        return kept

    def test_kernels_of_triton_are_probed_in_the_ptx_of_its_cache(self):
        """The software device runs PTX alone: so it is what the client sends."""
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder) / "made.ptx"
            subprocess.run([CUDA / "nvcc", "-ptx", "-arch=sm_90", APPS / "driver_kernels.cu", "-o",
                            made], check=True)
            cache = pathlib.Path(folder) / "cache"
            cache.mkdir()
            kept = self.triton_cache(cache, made.read_text())
            result, report = self.probe("threadhist", "driver_cubin.driver",
                                        TRITON_CACHE_DIR=cache)
            self.assertIn("loading the cubin: 0 CUDA_SUCCESS", result.out, (result, report))
            self.assertIn("PASS driver_cubin", result.out)
            self.assertRegex(report, r"module [0-9a-f]{12} \(\d+ bytes\) is probed in the PTX that "
                                     rf"Triton made it from: {kept}/Scale.ptx")
            # Two launches of 8 blocks of 128 threads.
            self.assertEqual(64, sum(counts(report, "cycles of warps").values()), report)
            (kept / "Scale.ptx").write_text(made.read_text().replace("Scale", "Other"))
            result, report = self.probe("threadhist", "driver_cubin.driver",
                                        TRITON_CACHE_DIR=cache)
            self.assertNotIn("loading the cubin: 0", result.out)
            self.assertIn(f"{kept}/Scale.ptx cannot be used: it lacks ", report)
            with open(kept / "Scale.cubin", "ab") as cubin:
                cubin.write(b"x")
            result, report = self.probe("threadhist", "driver_cubin.driver",
                                        TRITON_CACHE_DIR=cache)
            self.assertNotIn("loading the cubin: 0", result.out)
            self.assertIn("it is code of one architecture, without PTX", report)

    def test_wrong_use_is_refused(self):
        refused = {"nothing": "there is no tool and no file 'nothing'",
                   str(OBJECTS / "refused_loop.o"): "line 6 of refused_loop.c",
                   str(OBJECTS / "refused_stack.o"): "line 9 of refused_stack.c",
                   "/dev/null": "cannot be read"}
        for tool, sentence in refused.items():
            with self.subTest(tool):
                result, report = self.probe(tool, "vector_add.static")
                self.assertEqual(2, result.code, result)
                self.assertIn(sentence, result.err)
                self.assertEqual("", report)


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--long"])
