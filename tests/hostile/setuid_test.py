#!/usr/bin/env python3
"""A program with more rights than its user: the environment, which the user chooses, does not say
which server it uses and which longwire-link it starts."""
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import server  # noqa: E402

USER = 4711
NO_DEVICE = "cuInit: 100\n"


class SetuidTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="longwire-test-")))
        self.folder.chmod(0o755)
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.fail(f"no program in {self.folder} can be setuid: name another TMPDIR")
        build = server.build_folder()
        shutil.copy(build / "tests" / "identity" / "start_cuda", self.folder / "program")
        shutil.copy(build / "dist" / "lib" / "longwire" / "libcuda.so.1", self.folder)
        # What the user wants to be run as root.
        self.trace = self.folder / "trace"
        (self.folder / "link").write_text(f"#!/bin/sh\nid -u >> {self.trace}\n")
        (self.folder / "link").chmod(0o755)
        self.trace.write_text("")
        self.trace.chmod(0o666)

    def start(self, mode):
        (self.folder / "program").chmod(mode)
        runtime = self.folder / f"runtime-{mode:o}"
        runtime.mkdir()
        os.chown(runtime, USER, USER)
        return server.subprocess.run(
            [self.folder / "program", self.folder / "libcuda.so.1"], user=USER, group=USER,
            extra_groups=[], text=True, capture_output=True, timeout=60,
            env={"LONGWIRE_SERVER": "192.0.2.1:7411", "LONGWIRE_LINK": str(self.folder / "link"),
                 "LONGWIRE_RUNTIME_DIR": str(runtime)}).stdout

    def test_the_environment_chooses_nothing(self):
        self.assertEqual(NO_DEVICE, self.start(0o4755))
        self.assertEqual("", self.trace.read_text())
        # Else it would have.
        self.assertEqual(NO_DEVICE, self.start(0o755))
        self.assertEqual(f"{USER}\n", self.trace.read_text())


if __name__ == "__main__":
    unittest.main()
