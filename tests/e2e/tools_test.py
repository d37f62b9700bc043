"""Programs that run where addresses are dear or few: under valgrind, with the address sanitizer,
with a limit on addresses. They work, and take no more memory than that needs."""
import os
import pathlib
import re
import subprocess
import time
import unittest

import programs
import server

MOST_MEMORY = 1 << 30  # bytes, of the program and its tool


class ToolsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def run_tool(self, *words, to=None, **variables):
        """Its result and the most memory that it had; it is ended beyond the limit."""
        environment = self.longwire.environment(
            LONGWIRE_SERVER=to or self.longwire.address,
            LD_LIBRARY_PATH=self.longwire.dist / "lib/longwire", **variables)
        begun, most = time.monotonic(), 0
        process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        while process.poll() is None and time.monotonic() - begun < 120:
            try:
                with open(f"/proc/{process.pid}/statm") as file:
                    most = max(most, int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE"))
            except (OSError, IndexError):
                pass
            if most > MOST_MEMORY:
                break
            time.sleep(0.02)
        process.kill()
        out, err = process.communicate()
        return server.Result(process.returncode, out, err, time.monotonic() - begun), most

    def expect_pass(self, name, *words, **more):
        result, most = self.run_tool(*words, **more)
        self.assertIsNone(programs.what_is_wrong(name, result),
                          (result, most, self.longwire.log_tail()))
        self.assertLess(most, MOST_MEMORY)

    def test_memcheck(self):
        self.expect_pass("vector_add", "valgrind", "-q", "--error-exitcode=9",
                         self.longwire.program("vector_add.static"))

    def test_address_sanitizer(self):
        for name in ("vector_add", "managed_memory"):
            self.expect_pass(name, self.longwire.program(f"{name}.asan"))

    def limited(self, kibibytes, name):
        return ["/bin/sh", "-c", f'ulimit -v {kibibytes}; exec "$0"',
                self.longwire.program(f"{name}.static")]

    def test_a_limit_on_addresses(self):
        for kibibytes in (1 << 20, 8 << 20, 200 << 20):
            for to in (self.longwire.address, f"unix:{self.longwire.door}"):
                self.expect_pass("vector_add", *self.limited(kibibytes, "vector_add"), to=to)
        self.expect_pass("pinned_copies", *self.limited(1 << 20, "pinned_copies"),
                         to=f"unix:{self.longwire.door}")
        # Programs with the same hard limits have one link.
        for addresses in self.most_addresses_of_links():
            self.assertLess(addresses, 512 << 20)

    def most_addresses_of_links(self):
        for pid in self.longwire.processes()["longwire-link"]:
            folder = pathlib.Path(f"/proc/{pid}")
            if self.longwire.address in (folder / "cmdline").read_text().split("\0"):
                yield int(re.search(r"VmPeak:\s+(\d+)", (folder / "status").read_text())[1]) << 10

    def test_a_limit_that_is_too_low(self):
        result, _ = self.run_tool(*self.limited(300 << 10, "vector_add"))
        self.assertEqual(1, result.code)
        self.assertRegex(result.err, r"may have \d+ MiB of addresses more \(ulimit -v\); a "
                                     r"device's memory takes half of them, and 256 MiB at least")


if __name__ == "__main__":
    unittest.main()
