"""Fewer bytes on the wire for the same results."""
import unittest

import programs
import server
from proxy import Proxy


class CompressionTest(unittest.TestCase):
    configuration = ""

    @classmethod
    def setUpClass(cls):
        # A proxy that is gone for good may leave a session behind, which the next test would see.
        cls.longwire = cls.enterClassContext(
            server.Server(config=f"resume_grace: 1s\n{cls.configuration}"))

    def setUp(self):
        self.proxy = Proxy(self.longwire.port)
        self.addCleanup(self.proxy.close)

    def run_copies(self, compression):
        """Checks the results of many large copies; the bytes that they took on the wire."""
        before = self.proxy.bytes
        result = self.longwire.run("large_copies.static", server=self.proxy.address, timeout=60,
                                   LONGWIRE_COMPRESSION=compression)
        self.assertIsNone(programs.what_is_wrong("large_copies", result), self.longwire.log_tail())
        return self.proxy.bytes - before


class AllowedTest(CompressionTest):
    def test_each_codec_makes_less_of_it(self):
        plain = self.run_copies("none")
        for codec in ("lz4", "zstd"):
            packed = self.run_copies(codec)
            self.assertLess(packed, 0.5 * plain, codec)

    def test_the_metrics_say_how_much(self):
        process = self.longwire.start("keep_copying.static", server=self.proxy.address,
                                      LONGWIRE_COMPRESSION="zstd")
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        server.wait_for(lambda: self.longwire.status()["sessions"][0].get("bytes_saved", 0) > 1e6,
                        20, "bytes that were saved")

    def test_connections_that_break_lose_and_repeat_nothing(self):
        with self.proxy.cut_again_and_again() as cuts:
            self.run_copies("lz4")
        self.assertGreater(max(cuts), 0)

    def test_another_word(self):
        result = self.longwire.run("vector_add.static", LONGWIRE_COMPRESSION="gzip")
        self.assertEqual(0, result.code, result)
        self.assertIn("LONGWIRE_COMPRESSION=gzip is not auto, none, lz4 or zstd; auto is used",
                      result.err)


class RefusedTest(CompressionTest):
    configuration = "compression: false\n"

    def test_the_server_may_not_want_it(self):
        plain = self.run_copies("none")
        asked = self.run_copies("lz4")
        self.assertGreater(asked, 0.9 * plain)


if __name__ == "__main__":
    unittest.main()
