#!/usr/bin/env python3
"""A tenant that fills the server's cache of module images: the number of its files there has a
limit, and others keep theirs."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import hostile_client  # noqa: E402
import hostile_code  # noqa: E402
import programs  # noqa: E402
import server  # noqa: E402

MOST = 16  # images of a tenant
CONFIG = f"""
tenants:
  - name: neighbours
    identities: [loopback, "uid:0"]
    admin: true
  - name: hostile
    identities: ["uid:5"]
module_cache:
  tenant_images: {MOST}
"""
HOSTILE = 5  # its uid


class ImagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server(config=CONFIG))
        cls.longwire.runtime.chmod(0o711)  # for the other user's way to the socket
        cls.modules = cls.longwire.runtime / "cache" / "modules"

    def files(self, *folders):
        return sum(len(list(self.modules.joinpath(*folder).iterdir()))
                   for folder in folders if self.modules.joinpath(*folder).is_dir())

    def cache(self):
        return self.longwire.status()["module_cache"]

    def send_images(self, images):
        client = hostile_client.Client(self.longwire.door, self.longwire.build, uid=HOSTILE)
        self.addCleanup(client.close)
        self.assertEqual(0, client.code, client.sentence)
        client.create_context()
        for number, image in enumerate(images, start=100):
            code = hostile_code.load_module(client, number, image)
            self.assertNotIn(code, (None, 0), "what is no image was loaded")

    def expect_the_neighbour_to_send_nothing(self):
        result = self.longwire.run("vector_add.static", LONGWIRE_TRACE="summary")
        self.assertEqual((0, True), (result.code, "PASS vector_add" in result.out), result.err)
        self.assertRegex(result.err, r"module images of .*, 0 bytes of them sent")

    def test_a_tenant_has_a_number_of_files(self):
        result = self.longwire.run("vector_add.static")
        self.assertIsNone(programs.what_is_wrong("vector_add", result), self.longwire.log_tail())
        server.wait_for(lambda: self.cache().get("kept", 0) > 0, 10, "the neighbour's image")
        others = self.cache()["images"]

        before = self.cache()["kept"]
        images = [b"no image, but long enough to be one: " + b"%60d" % number
                  for number in range(5 * MOST)]
        self.send_images(images)
        server.wait_for(lambda: self.cache()["kept"] >= before + len(images), 20, "its images")
        self.assertEqual(MOST, self.files(("tenants", "=hostile")))
        self.assertEqual(MOST + others, self.files(("images",)))
        self.expect_the_neighbour_to_send_nothing()

    def test_what_is_too_small_for_an_image_is_not_kept(self):
        before = self.files(("images",))
        self.send_images([number.to_bytes(8, "little") for number in range(100)])
        # A worker's images are taken in, in their order.
        kept = self.cache().get("kept", 0)
        self.send_images([b"no image, but as long as the shortest that is one, and some more"])
        server.wait_for(lambda: self.cache().get("kept", 0) > kept, 10, "what is long enough")
        self.assertLessEqual(self.files(("images",)), before + 1)


if __name__ == "__main__":
    unittest.main()
