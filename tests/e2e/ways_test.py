"""How a program connects to Longwire: the command, the preloaded library, the local socket, one
line per call; and what the other commands say."""
import pathlib
import re
import unittest

import programs
import server


def environment_of(pid):
    """A worker's variables: those that it was started with, and what looks like one among what it
    has allocated, where it sets its session's."""
    folder = pathlib.Path(f"/proc/{pid}")
    found = (folder / "environ").read_bytes().split(b"\0")
    heap = re.search(r"^(\w+)-(\w+) .*\[heap\]$", (folder / "maps").read_text(), re.M)
    if heap:
        begin, end = (int(address, 16) for address in heap.groups())
        with open(folder / "mem", "rb") as memory:
            memory.seek(begin)
            found += re.findall(rb"[A-Z][A-Z0-9_]+=[ -~]*(?=\0)", memory.read(end - begin))
    return [entry.decode(errors="replace") for entry in found]


class WaysTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def expect_pass(self, name, result):
        self.assertIsNone(programs.what_is_wrong(name, result), self.longwire.log_tail())

    def test_arguments_and_exit_code_are_the_programs_own(self):
        command = self.longwire.command("/bin/sh", "-c", 'echo "$0 $1"; exit 7', "first", "second")
        result = server.run(command, self.longwire.environment())
        self.assertEqual((7, "first second\n", ""), result[:3])

    def test_nccl_is_told_that_no_distance_is_too_far(self):
        for variables, wanted in ({}, "SYS"), ({"NCCL_P2P_LEVEL": "NVL"}, "NVL"):
            result = server.run(self.longwire.command("/usr/bin/printenv", "NCCL_P2P_LEVEL"),
                                self.longwire.environment(**variables))
            self.assertEqual((0, wanted), (result.code, result.out.strip()))

    def test_a_program_that_is_not_there(self):
        result = server.run(self.longwire.command("/no/such/program"), self.longwire.environment())
        self.assertEqual(127, result.code)
        self.assertIn("/no/such/program", result.err)
        self.assertEqual(1, len(result.err.strip().splitlines()), result.err)

    def test_what_becomes_of_a_function(self):
        result = self.longwire.cli("doctor", "--explain", "cuMemAlloc_v2", "cuMulticastCreate")
        self.assertEqual(0, result.code, result.err)
        works, refused = result.out.splitlines()
        self.assertRegex(works, "^cuMemAlloc_v2 works: ")
        self.assertRegex(refused, r"^cuMulticastCreate is refused with .*\(801\): \w+")
        result = self.longwire.cli("doctor", "--explain", "cuNonsense")
        self.assertEqual(2, result.code)
        self.assertIn("cuNonsense", result.err)

    def test_what_a_program_used_that_is_refused(self):
        command = ["doctor", "--explain", "--server", self.longwire.address, "--"]
        result = self.longwire.cli(*command, self.longwire.program("refused.static"))
        self.assertEqual((0, "PASS refused\n"), (result.code, result.out), result.err)
        said = [line.strip() for line in result.err.splitlines()]
        self.assertIn("a word of its own", said)
        for name in ("cuMulticastGetGranularity", "cuGLGetDevices_v2"):
            begin = f"{name} is not supported: "
            self.assertTrue([line for line in said if line.startswith(begin)], said)
        result = self.longwire.cli(*command, self.longwire.program("vector_add.static"))
        self.assertIn("It used nothing that Longwire refuses.", result.err)
        result = self.longwire.cli(*command, "/bin/sh", "-c", "exit 7")
        self.assertEqual(7, result.code)

    def test_the_file_for_the_drivers_log(self):
        path = self.longwire.runtime / "errors"
        result = self.longwire.run("refused.static", CUDA_LOG_FILE=path)
        self.assertEqual(0, result.code, result.err)
        self.assertRegex(path.read_text(),
                         r"\[CUDA\]\[E\] cuMulticastGetGranularity is not supported: \w+")

    def test_the_drivers_variables(self):
        """Each reaches the worker's driver, with a line in the documentation; others do not."""
        root = pathlib.Path(__file__).resolve().parents[2]
        header = (root / "wire" / "driver_variables.h").read_text()
        names = re.findall(r'^    "(CUDA_\w+)",$', header, re.MULTILINE)
        self.assertGreater(len(names), 8)
        described = (root / "docs" / "environment.md").read_text()
        self.assertEqual([], [name for name in names if f"`{name}`" not in described])
        wanted = {name: "1" for name in names if name != "CUDA_CACHE_DISABLE"}
        program = self.longwire.start("hold_session.static", **wanted, CUDA_CACHE_PATH="/nowhere",
                                      CUDA_COREDUMP_FILE="/nowhere")
        try:
            workers = self.longwire.processes()["longwire-worker"]
            environments = [environment_of(pid) for pid in workers]
            missing = [{f"{name}={value}" for name, value in wanted.items()} - set(environment)
                       for environment in environments]
            self.assertIn(set(), missing)
            self.assertFalse([entry for environment in environments for entry in environment
                              if entry.endswith("=/nowhere")])
        finally:
            program.kill()
            program.communicate()

    def test_registered_memory_in_shared_mappings(self):
        self.expect_pass("shared_mapping", self.longwire.run("shared_mapping.static"))

    def test_a_launch_that_waits_returns_its_own_error(self):
        result = self.longwire.run("failing_launch.static", CUDA_LAUNCH_BLOCKING=1)
        self.assertEqual("launch cudaErrorIllegalAddress", result.out.splitlines()[0], result.err)
        result = self.longwire.run("failing_launch.static")
        self.assertEqual("synchronize cudaErrorIllegalAddress", result.out.splitlines()[1],
                         result.err)

    def test_preloaded_library(self):
        library = self.longwire.dist / "lib" / "longwire" / "libcuda.so.1"
        environment = self.longwire.environment(LD_PRELOAD=library,
                                                LONGWIRE_SERVER=self.longwire.address)
        result = server.run([self.longwire.program("vector_add.static")], environment)
        self.expect_pass("vector_add", result)

    def test_local_socket(self):
        links = self.longwire.processes()["longwire-link"]
        for name in ("vector_add.static", "graph_capture.shared", "pinned_order.per-thread",
                     "device_printf.static"):
            result = self.longwire.run(name, server=f"unix:{self.longwire.door}")
            self.expect_pass(name.split(".")[0], result)
        self.assertEqual(links, self.longwire.processes()["longwire-link"], "a link was started")

    def test_one_line_for_each_call(self):
        result = self.longwire.run("vector_add.static", LONGWIRE_TRACE="calls")
        self.assertEqual(0, result.code, result.err)
        calls = re.findall(r"\b(cu[A-Z]\w+)", result.err)
        for call in ("cuInit", "cuMemAlloc", "cuLaunchKernel", "cuMemFree"):
            self.assertTrue([name for name in calls if name.startswith(call)],
                            f"no {call} in {sorted(set(calls))}")

    def test_what_nobody_can_trace_is_said_once(self):
        result = self.longwire.run("vector_add.static", LONGWIRE_TRACE="foo")
        self.assertEqual((0, "longwire: LONGWIRE_TRACE names 'foo', which is none of calls, "
                             "allocations, summary\n"), (result.code, result.err))

    def round_trips(self, name, **environment):
        """{call: how often the program waited for its reply}"""
        result = self.longwire.run(name, LONGWIRE_TRACE="summary", **environment)
        self.assertEqual(0, result.code, result.err)
        found = re.findall(r"^longwire: (\d+) round trips of (\w+)$", result.err, re.MULTILINE)
        return {call: int(count) for count, call in found}

    def test_launches_wait_for_no_reply(self):
        # A library of the runtime's; modules of the driver's interface.
        for name in ("vector_add.static", "driver_ptx.driver"):
            trips = self.round_trips(name)
            self.assertGreater(trips["lwModuleLoad"], 0)
            self.assertNotIn("lwFunctionAttributes", trips)
            trips = self.round_trips(name, LONGWIRE_DISABLE="attributes-with-load")
            self.assertGreater(trips["lwFunctionAttributes"], 0)

    def test_changes_of_a_graph_wait_for_no_reply(self):
        def trips_of_a_step(**environment):
            few, many = (self.longwire.run("driver_graph_changes.driver", str(steps),
                                           LONGWIRE_TRACE="summary", **environment)
                         for steps in (10, 50))
            count = [int(re.search(r"(\d+) round trips,", result.err)[1]) for result in (few, many)]
            return (count[1] - count[0]) / 40

        self.assertLess(trips_of_a_step(), 0.5)
        self.assertGreaterEqual(trips_of_a_step(LONGWIRE_DISABLE="unawaited-sets"), 25)

    def test_what_depends_on_the_arguments_alone_is_asked_for_once(self):
        def trips(**environment):
            return self.round_trips("driver_tensor_maps.driver", **environment)[
                "cuTensorMapEncodeTiled"]

        # The program describes the same tensor as often as it compares another one with it.
        self.assertLess(trips(), trips(LONGWIRE_DISABLE="lasting-answers") - 8)

    def test_doctor(self):
        result = self.longwire.cli("doctor", "--server", self.longwire.address)
        self.assertEqual(0, result.code, result.out + result.err)
        self.assertIn("Software device", result.out)

    def test_doctor_names_the_calls_that_programs_miss(self):
        result = self.longwire.cli("doctor", "--server", self.longwire.address, "--all")
        self.assertEqual(0, result.code, result.out + result.err)
        names = result.out.split()
        for name, why in (("cuMemAlloc", "older than cuMemAlloc_v2"),
                          ("cuLinkCreate_v2", "refused by every client"),
                          ("cuCtxAttach", "answered in the client")):
            self.assertNotIn(name, names, why)

    def test_status_shows_a_running_session(self):
        server.wait_for(lambda: not self.longwire.status()["sessions"], 10, "earlier tests' ends")
        program = self.longwire.start("steady.static", "hold")
        try:
            sessions = self.longwire.status()["sessions"]
            self.assertEqual(1, len(sessions), sessions)
            text = self.longwire.cli("status", "--server", self.longwire.address)
            self.assertEqual(0, text.code, text.err)
            self.assertIn(str(program.pid), text.out)
        finally:
            program.kill()
            program.communicate()


if __name__ == "__main__":
    unittest.main()
