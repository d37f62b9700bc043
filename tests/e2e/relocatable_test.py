#!/usr/bin/env python3
"""The relocatable client, in a root that has a C library and nothing else of the build's host."""
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import keys_server
import programs
import server

BUILD = server.build_folder()
NEWEST_GLIBC = (2, 34)
C_LIBRARY = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
LIBRARIES = pathlib.Path("/lib/x86_64-linux-gnu")
# The C library with what it loads by name, and what the test programs themselves are linked with.
IN_ROOT = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
           "libresolv.so.2", "libnss_files.so.2", "libnss_dns.so.2", "libstdc++.so.6",
           "libgcc_s.so.1")


def tool(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class RelocatableTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix="longwire-root-")))
        [packed] = (BUILD / "relocatable").glob("longwire-client-*.tar.xz")
        with tarfile.open(packed) as tar:
            tar.extractall(cls.root / "opt" / "any where", filter="data")
        [cls.folder] = (cls.root / "opt" / "any where").iterdir()
        for name in "proc", "tmp", "etc", "root", "lib64", "dev", LIBRARIES.relative_to("/"):
            (cls.root / name).mkdir(parents=True, exist_ok=True)
        (cls.root / "dev" / "null").touch()
        for name in IN_ROOT:
            shutil.copy(LIBRARIES / name, cls.root / LIBRARIES.relative_to("/"))
        shutil.copy("/lib64/ld-linux-x86-64.so.2", cls.root / "lib64")
        (cls.root / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
        cls.longwire = cls.enterClassContext(keys_server.KeysServer())
        cls.give_papers("alpha")
        shutil.copy(cls.longwire.program("vector_add.static"), cls.root / "vector_add")

    @classmethod
    def give_papers(cls, name):
        own = cls.root / "root" / ".config" / "longwire"
        own.mkdir(parents=True)
        for source, target in ((f"{name}.crt", "client.crt"), (f"{name}.key", "client.key"),
                               ("ca.crt", "ca.crt")):
            shutil.copy(cls.longwire.papers / source, own / target)

    def run_inside(self, *words, **environment):
        """In a mount namespace of its own: with a /proc, and this host's network."""
        inside = ["/" + str((self.folder / "bin" / words[0]).relative_to(self.root)), *words[1:]]
        script = ('mount --bind /dev/null "$0/dev/null" && mount -t proc proc "$0/proc" && '
                  'exec chroot "$0" "$@"')
        # With a process namespace of its own, which ends with the command: no link stays.
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        return server.run([*unshare, "sh", "-c", script, self.root, *inside],
                          {"PATH": os.environ["PATH"], "HOME": "/root",
                           "LONGWIRE_RUNTIME_DIR": "/tmp/longwire", **environment}, 60)

    def test_it_needs_the_c_library_only(self):
        for path in ("bin/longwire", "bin/longwire-link", "lib/longwire/libcuda.so.1",
                     "lib/longwire/libnvidia-ml.so.1"):
            with self.subTest(path=path):
                needed = re.findall(r"\(NEEDED\).*\[(.+)\]",
                                    tool("readelf", "-d", self.folder / path))
                self.assertLessEqual(set(needed), C_LIBRARY)
                versions = re.findall(r"GLIBC_(\d+)\.(\d+)",
                                      tool("objdump", "-T", self.folder / path))
                self.assertLessEqual(max((int(one), int(two)) for one, two in versions),
                                     NEWEST_GLIBC)

    def test_a_program_runs_with_tls(self):
        result = self.run_inside("longwire", "run", "--server", self.longwire.address, "--",
                                 "/vector_add")
        self.assertIsNone(programs.what_is_wrong("vector_add", result), self.longwire.log_tail())
        self.longwire.must_log("'alpha'")

    def test_doctor_finds_all_well(self):
        result = self.run_inside("longwire", "doctor", "--server", self.longwire.address)
        self.assertEqual((0, "all is well"), (result.code, result.out.splitlines()[-1]),
                         result.out + result.err)

    def test_licences_of_what_is_linked_in(self):
        texts = list((self.folder / "share" / "doc" / "longwire" / "linked-in").iterdir())
        self.assertGreater(len(texts), 8)
        for text in texts:
            self.assertRegex(text.read_text(errors="replace"), "(?i)licen[sc]e", text.name)


if __name__ == "__main__":
    unittest.main()
