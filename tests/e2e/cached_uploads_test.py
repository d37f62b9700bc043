"""Cached uploads: bytes that a tenant has uploaded once are not sent again by its programs."""
import re
import unittest

import server
import tenants

SUMMARY = re.compile(r"(\d+) copies up of (\d+) bytes, (\d+) known to the server, "
                     r"(\d+) bytes of them sent")
COPIES = 8  # of the program, from 1 MiB on


class CachedUploadsTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(
            tenants.TenantServer({"alice": {"admin": True}, "bob": {}}))

    def start(self, tenant="alice", keep="1048576", **environment):
        """How many copies were offered, of how many bytes, how many known, how many bytes sent."""
        result = self.longwire.run_as(tenant, self.longwire.program("upload_weights.static"),
                                      LONGWIRE_TRACE="summary", LONGWIRE_CACHE_UPLOADS=keep,
                                      **environment)
        self.assertEqual(0, result.code, result.err + self.longwire.log_tail())
        self.assertIn("PASS upload_weights", result.out)
        found = SUMMARY.search(result.err)
        return tuple(map(int, found.groups())) if found else None

    def kept(self):
        return self.longwire.status_as("alice")["module_cache"]["kept"]

    def first_start(self, tenant="alice", **environment):
        before = self.kept()
        number, total, known, sent = self.start(tenant, **environment)
        self.assertEqual((COPIES, 0, total), (number, known, sent))
        # Its module, too, the first time.
        server.wait_for(lambda: self.kept() >= before + COPIES, 10, "the bytes")
        return total

    def test_a_second_start_sends_none(self):
        total = self.first_start()
        self.assertEqual((COPIES, total, COPIES, 0), self.start())

    def test_another_tenant_sends_its_own(self):
        self.first_start("alice")
        self.first_start("bob")

    def test_damaged_bytes_are_sent_again(self):
        total = self.first_start()
        for file in (self.longwire.runtime / "cache" / "modules" / "images").iterdir():
            content = bytearray(file.read_bytes())
            content[-1] ^= 1
            file.write_bytes(content)
        self.assertEqual(total, self.start()[3])

    def test_only_on_demand(self):
        self.assertIsNone(self.start(keep="0"))
        self.assertIsNone(self.start(keep=""))

    def test_only_large_ones(self):
        self.assertEqual(6, self.start(keep=str(2 << 20))[0])

    def test_behind_the_legacy_stream(self):
        result = self.longwire.run_as("alice", self.longwire.program("legacy_order.static"),
                                      LONGWIRE_TRACE="summary", LONGWIRE_CACHE_UPLOADS="1048576")
        self.assertEqual(0, result.code, result.out + result.err + self.longwire.log_tail())
        self.assertRegex(result.err, r"6 copies up")

    def test_without_a_cache(self):
        number, total, known, sent = self.start(LONGWIRE_DISABLE="module-cache")
        self.assertEqual((COPIES, 0, total), (number, known, sent))


if __name__ == "__main__":
    unittest.main()
