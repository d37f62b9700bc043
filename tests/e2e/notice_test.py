"""What longwire run says before it becomes a program that will not find Longwire's libcuda.so.1:
one line with what to do; and nothing about all other programs, nor about files that are none."""
import os
import pathlib
import random
import re
import subprocess
import tempfile
import unittest

import server

# Opens what it is named, as the CUDA runtime does, and says which file that was.
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
const char* library = "libcuda.so.1";
int main(void) {
  void* opened = dlopen(library, RTLD_NOW);
  Dl_info info = {0};
  if (opened != NULL) dladdr(dlsym(opened, "cuInit"), &info);
  puts(info.dli_fname != NULL ? info.dli_fname : "nothing");
  return 0;
}
"""
NOBODY = 65534


class NoticeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.folder.chmod(0o755)
        cls.bin = server.build_folder() / "dist" / "bin"
        cls.ours = server.build_folder() / "dist" / "lib/longwire/libcuda.so.1"
        (cls.folder / "program.c").write_text(SOURCE)
        (cls.folder / "other").mkdir()
        cls.compile("other/libcuda.so.1", "-shared", "-fPIC", "-x", "c", "-",
                    source="int cuInit(unsigned flags) { return (int)flags; }")
        cls.environment = {name: value for name, value in os.environ.items()
                           if not name.startswith(("LONGWIRE_", "LD_"))}

    @classmethod
    def compile(cls, name, *words, source=None):
        words = words if source else (*words, cls.folder / "program.c", "-ldl")
        subprocess.run(["gcc", "-o", cls.folder / name, *words], check=True, input=source,
                       text=True, stderr=subprocess.DEVNULL)
        return cls.folder / name

    def with_path(self, name, kind, path):
        tags = "--disable-new-dtags" if kind == "RPATH" else "--enable-new-dtags"
        return self.compile(name, f"-Wl,{tags},-rpath,{path}")

    def run_it(self, program, before=(), **more):
        return server.run([*before, self.bin / "longwire", "run", "--server", "127.0.0.1:1", "--",
                           program], {**self.environment, **more})

    def expect(self, sentence, program, says=None, **more):
        """The notice, and which library the program says that it found."""
        result = self.run_it(program, **more)
        self.assertEqual(f"longwire run: note: {program} {sentence}\n" if sentence else "",
                         result.err, result)
        if says:
            self.assertEqual(str(pathlib.Path(says).resolve()),
                             str(pathlib.Path(result.out.strip()).resolve()))

    def test_an_rpath_to_another_library(self):
        other = self.folder / "other" / "libcuda.so.1"
        for name, path in (("absolute", f"/nonexistent:{self.folder}/other"),
                           ("origin", "$ORIGIN/other"), ("braces", "/usr/lib:${ORIGIN}/other")):
            program = self.with_path(name, "RPATH", path)
            self.expect(f"has an RPATH, which is searched first and leads it to {other}, not to "
                        f"Longwire's; set LD_PRELOAD={self.ours} for it, or take the RPATH away "
                        "(patchelf --remove-rpath)", program, other)
        # As it advises.
        self.expect("", program, self.ours, LD_PRELOAD=str(self.ours))

    def test_paths_that_are_no_obstacle(self):
        self.expect("", self.compile("plain"), self.ours)
        self.expect("", self.with_path("runpath", "RUNPATH", "$ORIGIN/other"), self.ours)
        self.expect("", self.with_path("nothing", "RPATH", "/nonexistent:$ORIGIN"), self.ours)
        self.expect("", self.with_path("to_ours", "RPATH", f"{self.ours.parent}:$ORIGIN/other"),
                    self.ours)

    def test_it_is_found_as_the_shell_would(self):
        self.with_path("by_name", "RPATH", "$ORIGIN/other")
        path = f"/nonexistent:{self.folder}:{self.environment['PATH']}"
        result = self.run_it("by_name", PATH=path)
        self.assertIn("note: by_name has an RPATH", result.err)
        link = self.folder / "elsewhere"
        link.mkdir()
        (link / "by_name").symlink_to(self.folder / "by_name")
        # The dynamic linker follows links before it says where the origin is.
        self.assertIn("has an RPATH", self.run_it(link / "by_name").err)

    def test_a_program_that_is_statically_linked(self):
        program = self.compile("static", "-static")
        self.expect("is statically linked and may not find Longwire's libcuda.so.1 by "
                    "LD_LIBRARY_PATH; link it dynamically if it sees no device", program)
        without = self.compile("static_without", "-static", "-x", "c", "-",
                               source="int main(void) { return 0; }")
        self.expect("", without)

    def test_a_program_that_gets_rights(self):
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.fail(f"no program in {self.folder} can be setuid: name another TMPDIR")
        for what, mode in (("is setuid", 0o4755), ("is setgid", 0o2755)):
            program = self.compile("rights")
            program.chmod(mode)
            result = self.run_it(program, as_nobody)
            self.assertEqual(f"longwire run: note: {program} {what}, so LD_LIBRARY_PATH is ignored "
                             "and it does not find Longwire's libcuda.so.1; run a copy of it "
                             "without these rights\n", result.err, result)
            # Root becomes nobody else by it.
            self.assertEqual("", self.run_it(program).err)
        # What has nothing to do with CUDA is let alone.
        without = self.compile("rights_without", "-x", "c", "-",
                               source="int main(void) { return 0; }")
        without.chmod(0o4755)
        self.assertEqual("", self.run_it(without, as_nobody).err)
        capable = self.compile("capable")
        # cap_net_raw, effective and permitted, as setcap writes it.
        os.setxattr(capable, "security.capability",
                    bytes.fromhex("0100000200200000000000000000000000000000"))
        self.assertIn("has file capabilities", self.run_it(capable, as_nobody).err)

    def test_scripts_and_other_files(self):
        script = self.folder / "script"
        script.write_text("#!/bin/sh\n# libcuda.so.1\nexit 7\n")
        script.chmod(0o755)
        self.assertEqual((7, "", ""), self.run_it(script)[:3])
        for program in ("/bin/true", "sh"):
            self.assertEqual("", self.run_it(program).err)
        self.assertEqual(127, self.run_it(self.folder / "missing").code)
        pipe = self.folder / "pipe"
        os.mkfifo(pipe, 0o755)
        self.assertEqual(126, self.run_it(pipe).code)

    def test_hostile_files(self):
        """Whatever is in a file: it is read to no end but a sentence or none."""
        whole = bytearray(self.with_path("whole", "RPATH", "$ORIGIN/other").read_bytes())
        file = self.folder / "hostile"
        numbers = random.Random(5)
        tables = [place for place in range(len(whole) - 8) if place < 64 + 56 * 13]
        for round_number in range(60):
            bytes_now = bytearray(whole)
            if round_number % 3 == 0:
                del bytes_now[numbers.randrange(len(whole)):]
            for _ in range(1 + round_number % 8):
                place = numbers.choice(tables) & ~7
                value = numbers.choice([0, 1, (1 << 63) - 1, (1 << 64) - 1,
                                        numbers.getrandbits(64)])
                bytes_now[place:place + 8] = value.to_bytes(8, "little")
            file.write_bytes(bytes_now)
            file.chmod(0o644)  # not executed: it might do anything
            result = self.run_it(file)
            self.assertEqual(126, result.code, result)
            self.assertRegex(result.err, rf"^(longwire run: note: .*\n)?longwire run: "
                             rf"{re.escape(str(file))}: Permission denied\n$")

    def test_explain_takes_it_for_the_reason(self):
        program = self.with_path("explained", "RPATH", "$ORIGIN/other")
        result = server.run([self.bin / "longwire", "doctor", "--explain", "--server",
                             "127.0.0.1:1", "--", program], self.environment)
        self.assertEqual(1, result.code, result.err)
        self.assertIn("The program never opened a session: "
                      f"{program} has an RPATH", result.err)


if __name__ == "__main__":
    unittest.main()
