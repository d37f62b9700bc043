#!/usr/bin/env python3
"""What one user can do at the daemon's local socket and with its log: others notice nothing."""
import json
import os
import pathlib
import select
import socket
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import hostile_client  # noqa: E402
import neighbour  # noqa: E402
import server  # noqa: E402

TENANTS = """
tenants:
  - name: neighbours
    identities: ["uid:0", loopback]
    admin: true
  - name: strangers
    identities: ["uid:5"]
"""
STRANGER = 5
NOBODY = 6  # of no tenant
SECONDS = 4


def connect(door):
    """A connection that says nothing, or None."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.setblocking(False)
    try:
        connection.connect(str(door))
        return connection
    except OSError:
        connection.close()
        return None


def hold_silent_connections(door, count):
    """Holds as many as it gets, and takes a new one for each that is closed; for ever."""
    held = []
    while True:
        while len(held) < count and (connection := connect(door)):
            held.append(connection)
        poll = select.poll()
        for connection in held:
            poll.register(connection, select.POLLIN | select.POLLRDHUP)
        closed = {descriptor for descriptor, _ in poll.poll(20)}
        for connection in [one for one in held if one.fileno() in closed]:
            held.remove(connection)
            connection.close()


class DoorTest(unittest.TestCase):
    def serve(self, more="", **options):
        longwire = self.enterContext(server.Server(config=TENANTS + more, **options))
        longwire.runtime.chmod(0o711)  # other users reach the socket
        return longwire

    def run_beside(self, longwire, *attack, uid):
        """The neighbour's programs, before and beside the attack; the figures of the daemon."""
        to = f"unix:{longwire.door}"
        before = neighbour.run_for(longwire, 1.5, server=to)
        with neighbour.attack(*attack, uid=uid):
            time.sleep(0.5)
            beside = neighbour.run_for(longwire, SECONDS, server=to)
            status = longwire.status()
        print(f"median {neighbour.slowest(before, 0.5):.3f} s before, "
              f"{neighbour.slowest(beside, 0.5):.3f} s beside; slowest "
              f"{max(before):.3f} s and {max(beside):.3f} s", flush=True)
        self.assertLess(max(beside), 5 * max(before) + 1)
        return status["admission"]

    def test_silent_connections_of_a_user(self):
        longwire = self.serve()
        figures = self.run_beside(longwire, hold_silent_connections, longwire.door, 1500,
                                  uid=STRANGER)
        self.assertLessEqual(figures["connections"], 64 + 16)
        self.assertGreater(figures["closed"], 1000)

    def test_silent_connections_of_somebody_who_may_not_use_it(self):
        longwire = self.serve()
        figures = self.run_beside(longwire, hold_silent_connections, longwire.door, 1500,
                                  uid=NOBODY)
        self.assertLessEqual(figures["connections"], 32)

    def test_silent_connections_end_in_time(self):
        longwire = self.serve("admission: {opening_time: 1s}\n")
        with hostile_client.as_user(STRANGER):
            connection = connect(longwire.door)
        self.addCleanup(connection.close)
        poll = select.poll()
        poll.register(connection, select.POLLRDHUP)
        start = time.monotonic()
        self.assertTrue(poll.poll(20_000), "it stays open")
        self.assertGreater(time.monotonic() - start, 0.5)

    def open_many(self, longwire, count):
        """The sentences of sessions that were asked for at once; empty for those that opened."""
        waiting = []
        with hostile_client.as_user(STRANGER):
            for _ in range(count):
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                self.addCleanup(connection.close)
                connection.settimeout(60)
                connection.connect(str(longwire.door))
                connection.send(hostile_client.open_request())
                waiting.append(connection)
        return [hostile_client.sentence_of(connection.recv(200 << 10)) for connection in waiting]

    def test_sessions_that_are_opened_too_fast(self):
        longwire = self.serve("admission: {openings_per_second: 1, openings_at_once: 3}\n")
        said = self.open_many(longwire, 40)
        opened = said.count("")
        self.assertGreaterEqual(opened, 3)
        self.assertLessEqual(opened, 3 + 3 + 2)  # those who waited three seconds, a slow start
        self.assertIn("'uid:5' opens sessions too fast: 3 at once and 1 a second", " ".join(said))
        neighbour.run_for(longwire, 0, server=f"unix:{longwire.door}")
        self.assertGreater(longwire.status()["admission"]["refused_rate"], 20)

    def test_one_identity_does_not_take_all_sessions(self):
        longwire = self.serve("max_sessions: 4\n")
        said = self.open_many(longwire, 5)
        self.assertEqual(3, said.count(""), said)
        self.assertIn("'uid:5' has 3 sessions already", " ".join(said))
        neighbour.run_for(longwire, 0, server=f"unix:{longwire.door}")

    def test_failing_calls_do_not_fill_the_log(self):
        longwire = self.serve()
        client = hostile_client.Client(longwire.door, longwire.build, uid=STRANGER)
        self.addCleanup(client.close)
        self.assertEqual(0, client.code, client.sentence)
        client.create_context()
        block = client.record("lwEventDestroy", hostile_client.u64(77)) * 200
        for _ in range(250):
            client.up.write(block)
            client.skip()
        time.sleep(1.2)
        client.send("lwEventDestroy", hostile_client.u64(77))
        neighbour.run_for(longwire, 0, server=f"unix:{longwire.door}")
        text = longwire.log.read_text()
        self.assertLess(text.count("\n"), 1000)
        server.wait_for(lambda: "more lines of this session were left out"
                        in longwire.log.read_text(), 5, "the number of lines left out")
        self.assertIn("opened for ", text)

    def test_a_workers_lines_are_as_many_as_the_configuration_says(self):
        for limit, least, most in (2, 2, 30), (60, 60, 1000):
            with self.subTest(limit):
                longwire = self.serve(f"admission: {{log_lines_per_second: {limit}}}\n")
                client = hostile_client.Client(longwire.door, longwire.build, uid=STRANGER)
                self.addCleanup(client.close)
                client.create_context()
                mark = f"longwire-worker[{client.worker_pid()}]: "
                block = client.record("lwEventDestroy", hostile_client.u64(77)) * 200
                for _ in range(10):
                    client.up.write(block)
                    client.skip()
                    time.sleep(0.1)
                lines = longwire.log.read_text().count(mark)
                self.assertGreaterEqual(lines, least)
                self.assertLess(lines, most)

    def test_a_worker_that_writes_without_end_is_held_back(self):
        """Whatever the worker's own limit does: its standard error is a pipe with a limit."""
        longwire = self.serve()
        client = hostile_client.Client(longwire.door, longwire.build, uid=STRANGER)
        self.addCleanup(client.close)
        log = self.log_end_of(longwire, client.worker_pid())
        end = time.monotonic() + 1.5
        with open(log, "wb", buffering=0) as pipe:
            os.set_blocking(pipe.fileno(), False)
            while time.monotonic() < end:
                try:
                    pipe.write(b"a line of it\n" * 100 + b"\x1b[31m \xe2\x80\xae \xc2\x9b31m\n")
                except BlockingIOError:
                    pass
                time.sleep(0.001)
        neighbour.run_for(longwire, 0, server=f"unix:{longwire.door}")
        client.close()
        server.wait_for(lambda: "more lines of session" in longwire.log.read_text(), 5,
                        "the number of lines left out")
        text = longwire.log.read_text()
        self.assertLess(text.count("a line of it"), 500)
        self.assertIn(f"longwire-worker[{client.worker_pid()}]: a line of it", text)
        for sign in "\x1b", "\u202e", "\x9b":
            self.assertNotIn(sign, text)

    @staticmethod
    def log_end_of(longwire, worker):
        """The worker's end of the pipe by which it writes to the log."""
        warden = longwire.processes()["longwire-warden"][0]
        read_ends = {end for end in server.open_files(warden).values() if end.startswith("pipe:")}
        return next(link for link, end in server.open_files(worker).items() if end in read_ends)

    def test_text_of_a_client_moves_no_cursor(self):
        longwire = self.serve()
        evil = "evil\x1b[31m\nFAKE LINE\u202e\u009b31m\u2066\u061c\u200f"
        client = hostile_client.Client(longwire.door, longwire.build, uid=STRANGER, program=evil,
                                       host="h\x9bost\u202d")
        self.addCleanup(client.close)
        self.assertEqual(0, client.code, client.sentence)
        plain = longwire.cli("status", "--server", longwire.address)
        data = longwire.cli("status", "--server", longwire.address, "--json")
        for text in longwire.log.read_text(), plain.out, data.out:
            for sign in evil[4:]:
                if not sign.isascii() or sign == "\x1b":
                    self.assertNotIn(sign, text)
            self.assertIn("evil?[31m?FAKE LINE", text)
        self.assertEqual("evil?[31m?FAKE LINE??31m???",
                         json.loads(data.out)["sessions"][0]["program"])


if __name__ == "__main__":
    unittest.main()
