#!/usr/bin/env python3
"""A session that has the server hold bytes for it: they are counted wherever they wait, the worker
stays within its limits, and a neighbour's program is right meanwhile."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import hostile_client  # noqa: E402
import hostile_code  # noqa: E402
import programs  # noqa: E402
import server  # noqa: E402
from hostile_client import blob, list64, u32, u64  # noqa: E402

IN_FLIGHT = 64  # MiB; half of it for calls, half for copies
HELD = 96  # MiB
OVERHEAD = 48  # MiB: the rings, what the allocator keeps, an image on its way
PUSHED = 320  # MiB
MODULES = 20
OUT_OF_MEMORY = 2
MIB = 1 << 20
CONFIG = f"""
tenants:
  - name: neighbours
    identities: [loopback, "uid:0"]
    admin: true
  - name: hostile
    identities: ["uid:5"]
    bytes_in_flight: {IN_FLIGHT}MiB
    session_host_memory: {HELD}MiB
    host_memory: {HELD + HELD // 2}MiB
    modules: {MODULES}
"""
HOSTILE = 5  # its uid


def linear(count):
    """A Place of this number of bytes in the device's memory."""
    return (u64(0x200000000000) + u64(0) * 4 + u64(count) + u64(1) + u64(count) + u64(1) + u64(1))


class MemoryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server(config=CONFIG))
        cls.longwire.runtime.chmod(0o711)  # for the other user's way to the socket

    def setUp(self):
        server.wait_for(lambda: not self.longwire.status()["sessions"], 20, "the last test's end")

    def client(self):
        client = hostile_client.Client(self.longwire.door, self.longwire.build, uid=HOSTILE)
        self.addCleanup(client.close)
        self.assertEqual(0, client.code, client.sentence)
        self.assertEqual(0, client.create_context())
        client.worker = client.worker_pid()
        client.at_first = hostile_client.resident_mib(client.worker)
        return client

    def expect_within(self, client, limit):
        grown = hostile_client.resident_mib(client.worker) - client.at_first
        self.assertLess(grown, limit + OVERHEAD, "MiB more than at first")
        result = self.longwire.run("vector_add.static")
        self.assertIsNone(programs.what_is_wrong("vector_add", result), self.longwire.log_tail())

    def expect_shown(self, least):
        """What the session holds, and how much it may, is what an operator sees."""
        status = self.longwire.status()
        tenant = next(each for each in status["tenants"] if each["name"] == "hostile")
        self.assertEqual([HELD * MIB, (HELD + HELD // 2) * MIB],
                         [tenant["session_host_memory_limit"], tenant["host_memory_limit"]])
        for held in (tenant["host_memory"], status["sessions"][0]["host_memory"]):
            self.assertGreaterEqual(held, least * MIB)
            self.assertLessEqual(held, HELD * MIB)

    def push(self, client, record):
        """How many MiB went before the log was full for a second."""
        for sent in range(PUSHED):
            try:
                client.up.write(record, seconds=1)
            except TimeoutError:
                return sent
            except ConnectionError as end:
                self.fail(f"after {sent} MiB {end}; {self.longwire.log_tail()}")
        return PUSHED

    def expect_back_pressure(self, client, record):
        sent = self.push(client, record)
        self.assertLess(sent, IN_FLIGHT, "MiB were read")
        self.expect_within(client, IN_FLIGHT)

    def test_calls_behind_one_that_waits_for_ever(self):
        client = self.client()
        image = bytes(1000)
        client.send("lwModuleLoad", hostile_code.load(7, image, on_offer=True))
        self.expect_back_pressure(
            client, client.record("lwModuleLoad", hostile_code.load(8, image, options=250_000)))

    def test_calls_that_wait_for_calls_before_them(self):
        client = self.client()
        client.send("lwStreamWaitEvent", u64(99) + u64(1) + u32(0), stream=5)
        client.send("lwHostFunction", u64(1), stream=5)
        self.expect_back_pressure(client,
                                  client.record("lwReturnChunks", list64([12345] * 130_000)))

    def test_inputs_of_links(self):
        client = self.client()
        self.assertEqual(0, hostile_code.create_link(client, 50))
        piece = b"A" * (16 * MIB)
        codes = [hostile_code.add_to_link(client, 50, 1000 + number, piece)
                 for number in range(PUSHED // 16)]
        self.assertEqual(OUT_OF_MEMORY, codes[-1], f"{codes}; {self.longwire.log_tail()}")
        self.expect_within(client, HELD)
        self.assertIn("session_host_memory of the tenant 'hostile'",
                      self.longwire.log.read_text(errors="replace"))
        self.expect_shown(HELD - 16)
        # They end with their link.
        client.send("lwLinkDestroy", u64(50))
        self.assertEqual(0, hostile_code.create_link(client, 51))
        self.assertNotEqual(OUT_OF_MEMORY,
                            hostile_code.add_to_link(client, 51, 2000, piece))

    def test_sessions_of_one_tenant_together(self):
        first, second = self.client(), self.client()
        piece = b"A" * (16 * MIB)
        for client in (first, second):
            self.assertEqual(0, hostile_code.create_link(client, 50))
        added = [sum(hostile_code.add_to_link(client, 50, 1000 + number, piece) != OUT_OF_MEMORY
                     for number in range(HELD // 16)) for client in (first, second)]
        self.assertGreater(added[0], added[1], "the second has as much as the first")
        self.assertIn("host_memory", self.longwire.log.read_text(errors="replace"))
        self.expect_within(second, HELD // 2)

    def test_images_that_are_never_loaded(self):
        client = self.client()
        piece = bytes(16 * MIB)
        for number in range(PUSHED // 16):
            hostile_code.send_image(client, 100 + number, piece)
        code, _ = client.ask("lwModuleLoad",
                             hostile_code.load(100 + PUSHED // 16 - 1, piece))
        self.assertEqual(OUT_OF_MEMORY, code, self.longwire.log_tail())
        self.expect_within(client, HELD)

    def test_pieces_of_one_byte(self):
        """Their places count, too: the session exceeds its window and ends."""
        client = self.client()
        client.send("lwHostFunction", u64(1), stream=5)
        client.send("lwCopyToDevice", linear(64 * MIB) + u64(64 * MIB) + u64(31) + b"\0" + blob(b"")
                    + b"\0", stream=5)
        try:
            for at in range(0, 1_000_000, 5000):
                client.up.write(b"".join(
                    client.record("lwCopyData", u64(31) + u64(at + byte) + blob(b"x"))
                    for byte in range(5000)), seconds=5)
        except (ConnectionError, TimeoutError):
            pass
        self.assertNotEqual(0, client.up.closed, "a million pieces were taken")
        result = self.longwire.run("vector_add.static")
        self.assertIsNone(programs.what_is_wrong("vector_add", result), self.longwire.log_tail())

    def test_modules_without_end(self):
        client = self.client()
        codes = [hostile_code.load_module(client, 100 + number) for number in range(MODULES + 5)]
        self.assertEqual([0] * MODULES + [OUT_OF_MEMORY] * 5, codes, self.longwire.log_tail())
        client.send("lwModuleUnload", u64(100))
        more = iter(range(900, 1000))
        server.wait_for(lambda: hostile_code.load_module(client, next(more)) == 0, 5,
                        "room for another module")


if __name__ == "__main__":
    unittest.main()
