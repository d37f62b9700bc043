#!/usr/bin/env python3
"""A session that shares its memory under tokens without end: it is refused, and the keeper has time
for its neighbours."""
import pathlib
import random
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import hostile_client  # noqa: E402
import programs  # noqa: E402
import server  # noqa: E402

CHUNK = 2 << 20
CHUNKS = 96
LONG = 64  # chunks of one token
SHARES = 4000
OUT_OF_MEMORY = 2
SHARE_FLIGHT = 200  # calls without an answer
SOON = 1.0  # seconds


class TokensTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def client(self):
        client = hostile_client.Client(self.longwire.door, self.longwire.build)
        self.addCleanup(client.close)
        self.assertEqual(0, client.code, client.sentence)
        self.assertEqual(0, client.create_context())
        return client

    @staticmethod
    def share_many(client, chunks):
        """How often each code was answered."""
        dice = random.Random(1)
        codes, sent, answered = {}, 0, 0
        while answered < SHARES:
            while sent < SHARES and sent - answered < SHARE_FLIGHT:
                client.send("lwShare", hostile_client.list64(dice.choices(chunks, k=LONG)),
                            thread=1 + sent % 8)
                sent += 1
            for kind, code, _, _ in client.messages(60):
                if kind == hostile_client.REPLY:
                    answered += 1
                    codes[code] = codes.get(code, 0) + 1
                if sent - answered <= SHARE_FLIGHT // 2:
                    break
        return codes

    def expect_quick(self, neighbour, what):
        begun = time.monotonic()
        code, _ = neighbour.ask("lwMemoryInfo", hostile_client.i32(0), seconds=60)
        self.assertEqual(0, code)
        self.assertLess(time.monotonic() - begun, SOON, what)

    def test_tokens_end_at_a_limit_and_neighbours_do_not_notice(self):
        hostile, neighbour = self.client(), self.client()
        code, chunks = hostile.lease([CHUNK] * CHUNKS)
        self.assertEqual(0, code)
        codes = self.share_many(hostile, chunks)
        self.assertEqual({0, OUT_OF_MEMORY}, set(codes), f"{codes}; {self.longwire.log_tail()}")
        self.assertIn("free some of", self.longwire.log.read_text(errors="replace"))

        code, own = neighbour.lease([CHUNK])
        self.assertEqual(0, code)
        code, _ = neighbour.ask("lwShare", hostile_client.list64(own))
        self.assertEqual(0, code, "the neighbour cannot share its memory")
        hostile.send("lwReturnChunks", hostile_client.list64(chunks))
        self.expect_quick(neighbour, "while the tokens end")
        code, chunks = hostile.lease([CHUNK])
        self.assertEqual(0, code)
        code, _ = hostile.ask("lwShare", hostile_client.list64(chunks))
        self.assertEqual(0, code, "room is not there again")
        result = self.longwire.run("vector_add.static")
        self.assertIsNone(programs.what_is_wrong("vector_add", result), self.longwire.log_tail())


if __name__ == "__main__":
    unittest.main()
