#!/usr/bin/env python3
"""What a client that keeps no rule can do: it gets errors, and nobody else notices."""
import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import hostile_client  # noqa: E402
import programs  # noqa: E402
import server  # noqa: E402


class HostileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def client(self, **request):
        client = hostile_client.Client(self.longwire.door, self.longwire.build, **request)
        self.addCleanup(client.close)
        return client

    def expect_unharmed(self):
        """A neighbour's program still passes, and the daemon is alive."""
        result = self.longwire.run("vector_add.static")
        self.assertIsNone(programs.what_is_wrong("vector_add", result), self.longwire.log_tail())
        self.assertIsNone(self.longwire.children["longwired"].poll(), "the daemon ended")

    def test_a_call_that_does_not_exist(self):
        client = self.client()
        self.assertEqual(0, client.code, client.sentence)
        self.assertEqual(0, client.create_context())
        client.send(65535)
        list(client.messages(5))
        self.assertNotEqual(0, client.down.closed, "the session goes on")
        self.expect_unharmed()

    def test_lists_of_unlike_lengths(self):
        """Events to record without the versions that belong to them."""
        lists = hostile_client.list64
        for count in (1, 64, 65, 10_000):
            client = self.client()
            client.create_context()
            client.send("lwGraphLaunch", hostile_client.u64(1) + lists([1] * count) + lists([])
                        + lists([]) + lists([]), stream=0xdead)
            codes = [code for _, code, _, _ in client.messages(2)]
            self.assertTrue(client.down.closed or any(codes), "the call is not refused")
        self.expect_unharmed()

    def test_graphs_within_each_other(self):
        client = self.client()
        client.create_context()
        graphs = [struct.unpack_from("<Q", client.ask("cuGraphCreate", hostile_client.u32(0))[1])[0]
                  for _ in range(2)]
        moves = [client.ask("lwGraphMoveChild", hostile_client.u64(graph)
                            + hostile_client.list64([]) + hostile_client.u64(child))[0]
                 for graph, child in (graphs, graphs[::-1])]
        self.assertEqual(0, moves[0])
        self.assertNotEqual(0, moves[1], "both hold each other")
        client.send("lwGraphDestroy", hostile_client.u64(graphs[0]))
        self.assertEqual(0, client.ask("lwMemoryInfo", hostile_client.i32(0))[0])


if __name__ == "__main__":
    unittest.main()
