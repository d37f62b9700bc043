"""The cache of module images: what a tenant has uploaded once its programs need not send again."""
import os
import re
import unittest

import server
import tenants

# A cudart program, a text, a compiled image, a container, inputs of a link, two of a process.
PROGRAMS = ["vector_add.static", "driver_ptx.driver", "driver_cubin.driver", "driver_fatbin.driver",
            "driver_link.driver", "driver_libraries.driver"]
SUMMARY = re.compile(r"(\d+) module images of (\d+) bytes, (\d+) known to the server, "
                     r"(\d+) bytes of them sent")
LOADS = re.compile(r"(\d+) round trips of (?:lwModuleLoad|lwLinkAdd)$", re.MULTILINE)


class Figures:
    def __init__(self, result):
        found = SUMMARY.search(result.err)
        if found is None:
            raise AssertionError(f"no figures of images in {result.err!r}")
        self.images, self.bytes, self.known, self.sent = map(int, found.groups())
        self.round_trips = sum(map(int, LOADS.findall(result.err)))


class ModulesTest(unittest.TestCase):
    SETTINGS = {}

    def setUp(self):
        self.longwire = self.enterContext(
            tenants.TenantServer({"alice": {"admin": True}, "bob": {}}, settings=self.SETTINGS))
        self.files = self.longwire.runtime / "cache" / "modules" / "images"

    def start(self, tenant="alice", program="vector_add.static", **environment):
        result = self.longwire.run_as(tenant, self.longwire.program(program),
                                      LONGWIRE_TRACE="summary", **environment)
        self.assertEqual(0, result.code, result.err + self.longwire.log_tail())
        self.assertIn(f"PASS {program.split('.')[0]}", result.out)
        return Figures(result)

    def cache(self):
        return self.longwire.status_as("alice")["module_cache"]

    def first_start(self, tenant="alice", program="vector_add.static"):
        """Returns once the server has taken in what it was sent."""
        before = self.cache()["kept"]
        figures = self.start(tenant, program)
        self.assertGreater(figures.sent, 0)
        wanted = before + figures.images - figures.known
        server.wait_for(lambda: self.cache()["kept"] >= wanted, 10, "the images")
        return figures


class CacheTest(ModulesTest):
    def test_a_second_start_sends_no_image(self):
        for program in PROGRAMS:
            with self.subTest(program):
                first = self.first_start(program=program)
                second = self.start(program=program)
                self.assertEqual((second.images, 0), (second.known, second.sent))
                self.assertEqual((first.images, first.bytes), (second.images, second.bytes))
                # One round trip for each image, known or not.
                self.assertEqual(first.round_trips, first.images)
                self.assertEqual(second.round_trips, second.images)
        cache = self.cache()
        self.assertGreater(cache["saved"], 0)
        self.assertEqual(cache["bytes"], sum(file.stat().st_size for file in self.files.iterdir()))

    def test_another_tenant_sends_its_own(self):
        first = self.first_start("alice")
        files = sorted(self.files.iterdir())
        other = self.first_start("bob")
        self.assertEqual((0, first.bytes), (other.known, other.sent))
        self.assertEqual(files, sorted(self.files.iterdir()), "equal bytes lie on the disk once")
        self.assertEqual(0, self.start("bob").sent)
        # Nor do figures tell, which stay as they are when bytes come that were there.
        told = self.longwire.status_as("bob").get("module_cache", {})
        self.assertFalse(any(told.values()), told)

    def test_a_damaged_image_is_sent_again(self):
        first = self.first_start()
        for file in self.files.iterdir():
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 1
            file.write_bytes(content)
        self.assertEqual(first.bytes, self.first_start().sent)
        self.assertEqual(first.images, self.cache()["damaged"])
        self.assertEqual(0, self.start().sent)

    def test_it_is_there_after_a_restart(self):
        self.first_start()
        self.longwire.end_daemon()
        self.longwire.start_daemon()
        self.assertEqual(0, self.start().sent)

    def test_switched_off_in_the_client(self):
        first = self.first_start()
        without = self.start(LONGWIRE_DISABLE="module-cache")
        self.assertEqual((0, first.bytes), (without.known, without.sent))

    def test_what_people_see(self):
        self.first_start()
        self.start()
        result = server.run([self.longwire.dist / "bin" / "longwire", "status", "--server",
                             self.longwire.address], self.longwire.environment_of("alice"))
        self.assertRegex(result.out,
                         r"module cache: [1-9]\d* images, .* of 8\.0 GiB; [1-9]\d* known")


class LocalSocketTest(ModulesTest):
    def test_a_second_start_sends_no_image(self):
        user = {"identities": [f"uid:{os.getuid()}"]}
        longwire = self.enterContext(
            tenants.TenantServer({"alice": {"admin": True}, "user": user}))
        for sends in (True, False):
            result = longwire.run("driver_ptx.driver", server=f"unix:{longwire.door}",
                                  LONGWIRE_TRACE="summary")
            self.assertEqual(0, result.code, result.err)
            self.assertEqual(sends, Figures(result).sent > 0)
            server.wait_for(lambda: longwire.status_as("alice")["module_cache"]["kept"] > 0, 10,
                            "the image")


class NowhereTest(ModulesTest):
    SETTINGS = {"module_cache": {"directory": "none"}}

    def test_programs_send_each_time(self):
        for _ in range(2):
            figures = self.start()
            self.assertEqual((0, figures.bytes), (figures.known, figures.sent))
        self.assertFalse(self.files.parent.exists())


class NoFolderTest(NowhereTest):
    SETTINGS = {"module_cache": {"directory": "/proc/no/such/folder"}}

    def test_the_log_says_so_once(self):
        self.start()
        self.start()
        log = self.longwire.log.read_text()
        self.assertEqual(1, log.count("module images are not cached: "), log)


if __name__ == "__main__":
    unittest.main()
