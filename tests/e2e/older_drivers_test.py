"""Servers whose driver is older than CUDA 13.0: the software device under older numbers, without
the entry points that came later (softgpu/driver/CMakeLists.txt)."""
import json
import pathlib
import subprocess
import sys
import unittest

import programs
import server

NOT_SUPPORTED = 801
CLIENT = pathlib.Path(__file__).with_name("older_driver_client.py")
# Programs that need a call which these drivers lack, and the first one that is refused.
NEED_NEWER = {
    "12.2": {"driver_green": "cuDeviceGetDevResource",
             "driver_graph_capture": "cuStreamBeginCaptureToGraph",
             "graph_conditional": "cuGraphConditionalHandleCreate"},
    "12.8": {},
}
# Programs for all that is loaded, found by name, launched, captured and timed in another way there.
PROGRAMS = ("vector_add.static", "graph_capture.static", "graph_nodes.static",
            "streams_events.static", "constant_symbols.static", "managed_memory.static",
            "separate_parts.static", "driver_ptx.driver", "driver_fatbin.driver",
            "driver_libraries.driver", "driver_older_contexts.driver", "driver_link.driver",
            "driver_older_graphs.driver", "driver_graph_structure.driver")


class OlderDriver:
    """Tests on a server whose driver is `version`."""

    @classmethod
    def setUpClass(cls):
        cls.driver = server.build_folder() / "tests" / "drivers" / cls.version / "libcuda.so.1"
        cls.longwire = cls.enterClassContext(server.Server(driver=cls.driver))

    def call_newer(self):
        result = server.run(self.longwire.command(sys.executable, CLIENT),
                            self.longwire.environment())
        self.assertEqual((0, ""), (result.code, result.err), self.longwire.log_tail())
        return json.loads(result.out.splitlines()[-1])

    def doctor(self, *words):
        result = self.longwire.cli("doctor", "--server", self.longwire.address, *words)
        self.assertEqual((0, ""), (result.code, result.err), result.out)
        return result.out

    def test_the_driver_poses(self):
        exported = subprocess.run(["nm", "-D", "--defined-only", self.driver], text=True,
                                  check=True, capture_output=True).stdout
        names = {line.split()[-1] for line in exported.splitlines()}
        self.assertIn("cuMemAlloc_v2", names)
        self.assertNotIn("cuCtxGetDevice_v2", names)
        self.assertEqual(self.version == "12.8", "cuGreenCtxCreate" in names)

    def test_programs_run(self):
        for name in PROGRAMS:
            with self.subTest(name):
                result = self.longwire.run(name)
                wrong = programs.what_is_wrong(name.split(".")[0], result)
                self.assertIsNone(wrong, self.longwire.log_tail())

    def test_what_it_lacks_is_refused_with_a_sentence(self):
        for name, call in NEED_NEWER[self.version].items():
            program = next(f"{name}.{variant}" for known, variant, _ in
                           programs.list_programs(self.longwire.build) if known == name)
            with self.subTest(name):
                result = self.longwire.run(program, LONGWIRE_LOG=1)
                self.assertNotEqual(0, result.code)
                self.assertRegex(result.err, f"longwire: {call} is not supported: the server's "
                                 rf"driver is for CUDA {self.version}, and this needs one for "
                                 r"CUDA 12\.\d+ or newer")

    def test_doctor_says_what_it_is(self):
        said = self.doctor()
        self.assertIn(f"a session opens; CUDA driver version {self.version}\n", said)
        self.assertIn(f"the server's driver is for CUDA {self.version}, programs see 13.0: they "
                      "run with what that driver has", said)
        self.assertRegex(said, r"the server's driver lacks \d+ calls; they are refused "
                               r"\(--all names them\)")


class Driver122Test(OlderDriver, unittest.TestCase):
    version = "12.2"

    def test_calls_that_came_later(self):
        found = self.call_newer()
        refused = {name for name, code in found["codes"].items() if code == NOT_SUPPORTED}
        self.assertEqual({"cuDeviceGetDevResource", "cuGraphConditionalHandleCreate",
                          "cuStreamBeginCaptureToGraph"}, refused)
        served = {name: code for name, code in found["codes"].items() if name not in refused}
        self.assertEqual(1, served.pop("edges"))
        self.assertEqual({0}, set(served.values()), served)
        self.assertEqual(13000, found["version"])
        for name in refused:
            self.assertRegex(found["log"], f"{name} is not supported: the server's driver is for "
                                           r"CUDA 12\.2, and this needs one for CUDA 12\.")

    def test_doctor_names_what_is_refused(self):
        """And nothing that is served: every name that it says is one that the driver lacks."""
        said = self.doctor("--all")
        for name in ("cuGreenCtxCreate", "cuStreamBeginCaptureToGraph"):
            self.assertIn(f"note    {name}\n", said)
        for name in ("cuCtxSynchronize_v2", "cuEventElapsedTime_v2", "cuFuncLoad"):
            self.assertNotIn(name, said)

    def test_explain_names_what_a_program_used(self):
        program = self.longwire.program("driver_green.driver")
        result = self.longwire.cli("doctor", "--explain", "--server", self.longwire.address, "--",
                                   program)
        self.assertIn("It used what Longwire refuses:", result.err)
        self.assertIn("cuDeviceGetDevResource is not supported: the server's driver", result.err)


class Driver128Test(OlderDriver, unittest.TestCase):
    version = "12.8"

    def test_calls_that_came_later(self):
        found = self.call_newer()
        self.assertNotIn(NOT_SUPPORTED, found["codes"].values())

    def test_what_older_ones_lack_works(self):
        for name in NEED_NEWER["12.2"]:
            program = next(f"{name}.{variant}" for known, variant, _ in
                           programs.list_programs(self.longwire.build) if known == name)
            result = self.longwire.run(program)
            self.assertIsNone(programs.what_is_wrong(name, result), self.longwire.log_tail())


if __name__ == "__main__":
    unittest.main()
