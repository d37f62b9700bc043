#!/usr/bin/env python3
"""The relocatable server, in a root that has a C library and nothing else of the build's host."""
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import programs
import server

BUILD = server.build_folder()
LIBRARIES = pathlib.Path("/lib/x86_64-linux-gnu")
C_LIBRARY = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
             "libresolv.so.2")


class RelocatableServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix="longwire-root-")))
        [packed] = (BUILD / "relocatable").glob("longwire-server-*.tar.xz")
        with tarfile.open(packed) as tar:
            tar.extractall(cls.root / "opt" / "any where", filter="data")
        [cls.folder] = (cls.root / "opt" / "any where").iterdir()
        for name in "proc", "sys", "tmp", "etc", "run", "lib64", "dev", str(LIBRARIES)[1:]:
            (cls.root / name).mkdir(parents=True, exist_ok=True)
        for name in C_LIBRARY:
            shutil.copy(LIBRARIES / name, cls.root / LIBRARIES.relative_to("/"))
        shutil.copy("/lib64/ld-linux-x86-64.so.2", cls.root / "lib64")
        (cls.root / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
        (cls.root / "etc" / "passwd").write_text("root:x:0:0::/:/\n")
        (cls.root / "etc" / "group").write_text("root:x:0:\n")

    def inside(self, *words):
        """A command in it: with a /proc, the host's devices and its network."""
        program = "/" + str((self.folder / "bin" / words[0]).relative_to(self.root))
        script = ('mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && '
                  'exec chroot "$0" "$@"')
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script,
                self.root, program, *words[1:]]

    def test_nothing_is_missing(self):
        for name in ("longwired", "longwire", "longwire-worker", "longwire-signer"):
            result = server.run(self.inside(name, "--version" if name != "longwire" else "version"),
                                {"PATH": os.environ["PATH"]})
            self.assertEqual((0, ""), (result.code, result.err), name)
            self.assertRegex(result.out, r"^longwire\S* \d+\.\d+")

    def test_a_program_runs_on_it(self):
        port = server.free_port()
        log = self.root / "log"
        environment = {"PATH": os.environ["PATH"], "LONGWIRE_RUNTIME_DIR": "/run/longwire"}
        with open(log, "w") as out:
            daemon = subprocess.Popen(
                self.inside("longwired", "--driver", "software", "--listen", f"127.0.0.1:{port}"),
                env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        server.wait_for(lambda: "ready, version" in log.read_text() or daemon.poll() is not None,
                        20, "the server")
        self.assertIsNone(daemon.poll(), log.read_text())
        runtime = self.root / "client"
        runtime.mkdir(mode=0o700)
        result = server.run(
            [BUILD / "dist/bin/longwire", "run", "--server", f"127.0.0.1:{port}", "--",
             BUILD / "tests/apps/vector_add.static"],
            {"PATH": os.environ["PATH"], "LONGWIRE_RUNTIME_DIR": str(runtime)})
        self.assertIsNone(programs.what_is_wrong("vector_add", result),
                          f"{result}\n{log.read_text()}")
        self.assertRegex(log.read_text(), r": opened for .*vector_add")

    def test_each_library_has_its_licence(self):
        texts = {path.name for path in
                 (self.folder / "share" / "doc" / "longwire" / "libraries").iterdir()}
        self.assertLessEqual({"libssl3", "libgrpc29", "libstdc++6"}, texts)
        for name in sorted(path.name for path in (self.folder / "lib/longwire/server").iterdir()):
            self.assertFalse(re.match(r"lib(c|m|pthread|dl)\.so", name), name)


if __name__ == "__main__":
    unittest.main()
