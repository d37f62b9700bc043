"""Lists of servers of which some are refused, silent or stopped: the first that opens a session
serves, soon; when none does, the error says of each what happened; nothing stays behind at those
that were not taken."""
import signal
import socket
import threading
import unittest

import programs
import server

# An HTTP/2 server that says hello and then nothing: an empty SETTINGS frame.
HELLO = b"\0\0\0\4\0\0\0\0\0"


class Listener:
    """What stands in a list in place of a server: `takes` connections or leaves them to the
    system, and says `hello` to each."""

    def __init__(self, backlog=16, hello=b""):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.taken = []
        self.hello = hello
        if hello:
            threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
                connection.sendall(self.hello)
                self.taken.append(connection)
            except OSError:
                return

    def close(self):
        for one in [self.socket, *self.taken]:
            one.close()


class BlackHole(Listener):
    """Packets to it are dropped, because its queue is full."""

    def __init__(self):
        super().__init__(backlog=0)
        for _ in range(4):
            full = socket.socket()
            full.setblocking(False)
            full.connect_ex(("127.0.0.1", self.socket.getsockname()[1]))
            self.taken.append(full)


class ServerListTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def stand_in(self, kind):
        made = {"silent": Listener, "hole": BlackHole, "hello": lambda: Listener(hello=HELLO)}
        if kind == "refused":
            return f"127.0.0.1:{server.free_port()}"
        listener = made[kind]()
        self.addCleanup(listener.close)
        return listener.address

    def run_with(self, *servers):
        return self.longwire.run("vector_add.static", server=",".join(servers), timeout=60)

    def test_the_next_one_serves(self):
        for kinds in (["refused"], ["silent"], ["hole"], ["hello"],
                      ["hole", "refused", "silent", "hole"]):
            with self.subTest(kinds=kinds):
                dead = [self.stand_in(kind) for kind in kinds]
                result = self.run_with(*dead, self.longwire.address)
                self.assertIsNone(programs.what_is_wrong("vector_add", result), result)
                self.assertLess(result.seconds, 12 if len(kinds) > 1 else 8)
                result = self.longwire.cli("status", "--server",
                                           ",".join([*dead, self.longwire.address]))
                self.assertEqual(0, result.code, result)

    def test_the_first_serves_if_it_can(self):
        other = self.enterContext(server.Server())
        for _ in range(2):
            result = self.run_with(other.address, self.longwire.address)
            self.assertIsNone(programs.what_is_wrong("vector_add", result), result)
        server.wait_for(lambda: other.log.read_text().count("ended after") == 2, 5, "both ends")

    def test_a_list_of_none_that_serves(self):
        dead = {kind: self.stand_in(kind) for kind in ("refused", "hole", "silent", "hello")}
        result = self.run_with(*dead.values())
        self.assertEqual(1, result.code, result)
        words = {"refused": "nothing listens at {}", "hole": "no answer from {} in ",
                 "silent": "{} accepts connections but does not answer",
                 "hello": "{} has taken the connection, but has not answered in "}
        for kind, address in dead.items():
            either = [words[kind].format(address), f"no answer from {address} in "]
            self.assertTrue(any(text in result.err for text in either), (kind, result.err))
        self.assertNotIn("handshaker", result.err)
        self.assertNotIn("within 5 seconds", result.err)

    def test_each_alone_says_what_it_is(self):
        for kind, text in (("refused", "is longwired running there"), ("hole", "firewall"),
                           ("silent", "is longwired there stopped")):
            result = self.run_with(self.stand_in(kind))
            self.assertEqual(1, result.code, result)
            self.assertIn(text, result.err)

    def test_one_that_refuses_is_passed_over(self):
        full = self.enterContext(server.Server(config="max_sessions: 1\n"))
        holder = full.start("hold_session.static")
        self.addCleanup(holder.communicate)
        self.addCleanup(holder.kill)
        result = self.run_with(full.address, self.longwire.address)
        self.assertIsNone(programs.what_is_wrong("vector_add", result), result)
        result = self.run_with(full.address, self.stand_in("refused"))
        self.assertIn(f"{full.address}: the server has 1 sessions already", result.err)

    def test_nothing_stays_at_a_server_that_was_too_slow(self):
        slow = self.enterContext(server.Server())
        servers = (slow.address, self.longwire.address)
        self.assertEqual(0, self.run_with(*servers).code)  # the link keeps its connection
        server.wait_for(slow.is_unused, 5, "the program's end")
        daemon = slow.children["longwired"]
        daemon.send_signal(signal.SIGSTOP)
        try:
            result = self.run_with(*servers)
            self.assertIsNone(programs.what_is_wrong("vector_add", result), result)
        finally:
            daemon.send_signal(signal.SIGCONT)
        server.wait_for(slow.is_unused, 8, "the end of what was asked for")
        self.assertEqual(0, slow.run("vector_add.static").code)


if __name__ == "__main__":
    unittest.main()
