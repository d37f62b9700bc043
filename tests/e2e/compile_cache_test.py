"""What NVRTC and nvJitLink compiled in a program is kept on the program's host, as natively."""
import os
import pathlib
import tempfile
import unittest

import server


class CompileCacheTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="longwire-cache-"))
        self.folder = pathlib.Path(folder) / "deep" / "cache"

    def compile(self, text="1", **environment):
        """What the program printed: digests of what was compiled, and what it computed."""
        result = server.run(
            self.longwire.command(self.longwire.program("compile_kernels.static"), text),
            self.longwire.environment(CUDA_CACHE_PATH=str(self.folder), **environment), 60)
        self.assertEqual(0, result.code, result.out + result.err + self.longwire.log_tail())
        self.assertIn("PASS compile_kernels", result.out)
        return result.out

    def entries(self):
        """Every entry's number on the disk, by its path: what is written again has another."""
        return {path: path.stat().st_ino for path in self.folder.rglob("*")
                if path.is_file() and path.name != "size"}

    def test_the_second_time_nothing_is_compiled(self):
        first = self.compile()
        made = self.entries()
        # To PTX, to machine code by way of PTX, linked.
        self.assertGreaterEqual(len(made), 3)
        for path in made:
            os.utime(path, (1, 1))
        self.assertEqual(first, self.compile())
        self.assertEqual(made, self.entries())
        self.assertTrue(all(path.stat().st_mtime > 1 for path in made), "not all were found")

    def test_other_sources_have_other_entries(self):
        first = self.compile("1")
        made = self.entries()
        self.assertNotEqual(first, self.compile("2"))
        self.assertGreater(len(self.entries()), len(made))
        self.assertEqual(first, self.compile("1"))

    def test_what_is_damaged_is_compiled_anew(self):
        first = self.compile()
        made = {path: path.read_bytes() for path in self.entries()}
        for path, content in made.items():
            path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        self.assertEqual(first, self.compile())
        self.assertEqual(made, {path: path.read_bytes() for path in self.entries()})

    def test_it_can_be_switched_off(self):
        self.compile(CUDA_CACHE_DISABLE="1")
        self.assertFalse(self.folder.exists())

    def test_it_stays_within_its_bound(self):
        for text in range(6):
            self.compile(str(text), CUDA_CACHE_MAXSIZE="12000")
        self.assertLessEqual(sum(path.stat().st_size for path in self.entries()), 12000)
        self.assertTrue(self.entries())

    def test_a_folder_that_cannot_be_written_is_no_error(self):
        self.folder.parent.mkdir(parents=True)
        self.folder.write_text("a file")
        self.compile()


if __name__ == "__main__":
    unittest.main()
