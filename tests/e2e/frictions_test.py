"""What once hindered newcomers and operators (frictions.py): that each row has its test, and the
tests of those that are tested nowhere else."""
import json
import os
import pathlib
import re
import shutil
import tempfile
import time
import unittest

import frictions
import server
import tenants

TESTS = pathlib.Path(__file__).resolve().parents[1]
LAST = 32


def body_of(text, name):
    """The text of a test: from its name to where something else begins at its depth."""
    found = re.search(rf"^( *)(?:def {name}\b|TEST(?:_F)?\(\w+, {name}\))", text, re.M)
    if not found:
        return ""
    rest = text[found.end():]
    end = re.search(rf"^{found[1]}(?:def|class|@|TEST)|^\}}", rest, re.M)
    return rest[:end.start()] if end else rest


class TableTest(unittest.TestCase):
    def test_each_row_has_a_test_that_is_there(self):
        self.assertEqual(set(range(1, LAST + 1)), {row.number for row in frictions.ROWS})
        for row in frictions.ROWS:
            with self.subTest(row.number, about=row.about):
                body = body_of((TESTS / row.file).read_text(), row.test)
                self.assertIn(row.words, body, f"{row.file}: {row.test}")

    def test_each_of_them_is_run(self):
        """By ctest: its folder's list names it, or one that it belongs to does."""
        runs = {"e2e/reload_probes_scheduler.py": "reload_keys",
                "service/run": "run", "../scheduler/testing/shares_test.cc": "shares_test.cc"}
        for row in frictions.ROWS:
            file = (TESTS / row.file).resolve()
            folder = next(above for above in file.parents if (above / "CMakeLists.txt").exists())
            listing = (folder / "CMakeLists.txt").read_text()
            word = runs.get(row.file, file.stem.removesuffix("_test"))
            self.assertRegex(listing, rf"\b{word}(_test)?\b", row.file)

    def test_this_file_has_no_others(self):
        mine = {row.test for row in frictions.ROWS if row.file == frictions.HERE}
        own = {name for case in (ClientTest, ServerTest, TenantTest) for name in vars(case)
               if name.startswith("test_")}
        self.assertEqual(mine, own)


class ClientTest(unittest.TestCase):
    """Of the client alone: nothing listens at the server."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.dist = server.build_folder() / "dist"
        self.nowhere = f"127.0.0.1:{server.free_port()}"
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("LONGWIRE_")}

    def longwire(self, *words, dist=None, before=(), **variables):
        return server.run([*before, (dist or self.dist) / "bin" / "longwire", *words],
                          {**self.environment, **variables})

    def test_explain_of_a_program_that_was_not_started(self):
        result = self.longwire("doctor", "--explain", "--", "/no/such/program",
                               LONGWIRE_SERVER=self.nowhere)
        self.assertEqual(127, result.code)
        self.assertIn("The program was not started: /no/such/program: No such file", result.err)
        self.assertNotIn("nothing that Longwire refuses", result.err)

    def test_explain_of_a_program_without_cuda(self):
        result = self.longwire("doctor", "--explain", "--", "/bin/true",
                               LONGWIRE_SERVER=self.nowhere)
        self.assertEqual(1, result.code)
        self.assertIn("never loaded Longwire's libcuda.so.1", result.err)

    def test_explain_of_functions_for_graphics(self):
        names = ("cuGLInit", "cuGraphicsEGLRegisterImage", "cuVDPAUGetDevice")
        result = self.longwire("doctor", "--explain", *names)
        self.assertEqual((0, ""), (result.code, result.err))
        for name, line in zip(names, result.out.splitlines(), strict=True):
            self.assertRegex(line, rf"^{name} is refused with CUDA_ERROR_NOT_SUPPORTED \(801\): ")

    def test_a_read_only_tmp(self):
        """The folder of links lies there where nobody says otherwise."""
        result = self.longwire(
            "run", "--server", self.nowhere, "--",
            server.build_folder() / "tests" / "apps" / "vector_add.static",
            before=["unshare", "--mount", "sh", "-c",
                    'mount -t tmpfs -o ro none /tmp && exec "$@"', "sh"],
            XDG_RUNTIME_DIR="")
        self.assertNotEqual(0, result.code)
        self.assertIn(f"/tmp/longwire-{os.getuid()} cannot be made: Read-only file system",
                      result.err)

    def test_only_the_servers_package(self):
        (self.folder / "bin").mkdir()
        shutil.copy(self.dist / "bin" / "longwire", self.folder / "bin")
        result = self.longwire("run", "--server", self.nowhere, "/bin/true", dist=self.folder)
        self.assertEqual(1, result.code)
        self.assertIn("install longwire-client", result.err)

    def test_version(self):
        result = self.longwire("version")
        self.assertRegex(result.out, r"^longwire \d+\.\d+\.\d+\nspeaks protocol \d+")

    def test_a_port_alone(self):
        file = self.folder / "longwired.yaml"
        file.write_text("metrics: 7412\n")
        result = self.longwire("config", "check", file)
        self.assertEqual(1, result.code)
        self.assertIn("127.0.0.1:7412", result.err)
        self.assertNotIn("7412:", result.err)


class ServerTest(unittest.TestCase):
    """Of a server without tenants."""

    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server(
            software_devices=2, config="placement: least_loaded\nmetrics: "
                                       f"127.0.0.1:{server.free_port()}\n"))

    def test_a_timeline_that_cannot_be_written(self):
        for file, sentence in (("/nope/x.svg", "cannot write /nope/x.svg: No such file"),
                               ("x.png", "--timeline writes files that end in .svg or .html")):
            began = time.monotonic()
            result = self.longwire.cli("memory", "--timeline", file, "--seconds", "30")
            self.assertNotEqual(0, result.code)
            self.assertIn(sentence, result.err)
            self.assertLess(time.monotonic() - began, 10, "it watched first")

    def test_one_session_alone_is_seen(self):
        """And least_loaded places the next one elsewhere."""
        process = self.longwire.start("steady.static", "hold")
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)

        def busy():
            return [device.get("busy", 0) for device in self.longwire.status()["devices"]]
        def places():
            return sorted(seat.get("device", 0) for one in self.longwire.status()["sessions"]
                          for seat in one["seats"])
        [used] = places()
        server.wait_for(lambda: busy()[used] > 0.02, 20, "a busy device")
        self.assertEqual(0, busy()[1 - used])
        other = self.longwire.start("hold_session.static")
        self.addCleanup(other.communicate)
        self.addCleanup(other.kill)
        self.assertEqual([0, 1], places())


class TenantTest(unittest.TestCase):
    """Of a server with TLS and tenants."""

    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(tenants.TenantServer(
            {"small": {"sessions": 1}, "operator": {"admin": True}}))
        server.wait_for(lambda: "ready" in cls.longwire.log_tail(), 20, "the daemon")

    def test_the_servers_host_needs_no_options(self):
        """Root comes by the control socket, without a certificate."""
        for words in (["status"], ["memory"], ["top", "--once"], ["admin", "sessions"]):
            result = self.longwire.cli(*words)
            self.assertEqual((0, ""), (result.code, result.err), words)

    def test_no_limit_is_null(self):
        result = self.longwire.cli("status", "--json")
        self.assertNotIn("18446744073709551615", result.out)
        for tenant in json.loads(result.out)["tenants"]:
            self.assertIsNone(tenant["memory_limit"], tenant)

    def test_a_full_tenant(self):
        """The remedies for the program's user, and a line for the administrator."""
        self.longwire.run_as("small", self.longwire.program("vector_add.static"))
        holder = server.subprocess.Popen(
            self.longwire.command(self.longwire.program("hold_session.static")),
            env=self.longwire.environment_of("small"), stdin=server.subprocess.PIPE,
            stdout=server.subprocess.PIPE, text=True)
        self.addCleanup(holder.communicate)
        self.addCleanup(holder.kill)
        self.assertEqual("READY\n", server.next_line(holder))
        doctor = server.run([self.longwire.dist / "bin" / "longwire", "doctor", "--server",
                             self.longwire.address], self.longwire.environment_of("small"))
        self.assertIn("remedy: wait for room with longwire run --wait 10m", doctor.out)
        refused = self.longwire.run_as("small", self.longwire.program("vector_add.static"))
        self.assertIn("'small' has 1 sessions already; its limit is 1", refused.err)
        said = [line for line in self.longwire.log.read_text().splitlines()
                if "its limit is 1" in line and "vector_add" in line]
        self.assertTrue(said, self.longwire.log_tail())
        self.assertIn("small", said[-1])
        self.assertRegex(said[-1], r"pid \d+")


if __name__ == "__main__":
    unittest.main()
