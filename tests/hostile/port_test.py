#!/usr/bin/env python3
"""What a stranger, or somebody with a certificate, can do at the daemon's port: others notice
nothing, and a session whose connection breaks is resumed."""
import pathlib
import resource
import select
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import hostile_client  # noqa: E402
import http2  # noqa: E402
import neighbour  # noqa: E402
import programs  # noqa: E402
import server  # noqa: E402

MIB = 1 << 20


class Proxy:
    """Forwards connections to the server, and can cut them all."""

    def __init__(self, port):
        self.to = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.pairs = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.to), 5)
            except OSError:
                return
            with self.lock:
                self.pairs.append((client, far))
            for one, other in ((client, far), (far, client)):
                threading.Thread(target=self._forward, args=(one, other), daemon=True).start()

    @staticmethod
    def _forward(one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
        except OSError:
            pass
        for end in one, other:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        one.close()

    def cut(self):
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.listener.close()
        self.cut()


class PortTest(unittest.TestCase):
    """With mutual TLS: alice is the neighbour, mallory the other one."""

    def serve(self, more="", **options):
        self.papers = pathlib.Path(self.enterContext(server.tempfile.TemporaryDirectory()))
        config = (f"tls: {{certificate: {self.papers}/127.0.0.1.crt, key: "
                  f"{self.papers}/127.0.0.1.key, authority: {self.papers}/ca.crt}}\n"
                  "tenants:\n  - {name: friends, identities: [alice], admin: true}\n"
                  "  - {name: others, identities: [mallory]}\n" + more)
        longwire = server.Server(config=config, **options)
        for words in (("init",), ("server", "--name", "127.0.0.1"), ("client", "--name", "alice"),
                      ("client", "--name", "mallory")):
            made = server.run([longwire.dist / "bin" / "longwire", "cert", *words, "--dir",
                               self.papers], {"HOME": str(self.papers)})
            self.assertEqual(0, made.code, made.err)
        longwire.everywhere = {"LONGWIRE_CERT": self.papers / "alice.crt",
                               "LONGWIRE_KEY": self.papers / "alice.key",
                               "LONGWIRE_CA": self.papers / "ca.crt"}
        return self.enterContext(longwire)

    def mallory(self, longwire, **how):
        connection = http2.Connection(longwire.port, http2.tls_context(self.papers, "mallory"),
                                      **how)
        self.addCleanup(connection.close)
        return connection

    def daemon(self, longwire):
        return longwire.children["longwired"].pid

    def threads(self, longwire):
        return len(list(pathlib.Path(f"/proc/{self.daemon(longwire)}/task").iterdir()))

    def test_streams_without_a_session(self):
        """Many connections with streams that ping: few threads, an end in time, and resumes."""
        longwire = self.serve("admission: {opening_time: 3s}\n")
        proxy = Proxy(longwire.port)
        self.addCleanup(proxy.close)
        victim = longwire.start("steady.static", "8", server=f"127.0.0.1:{proxy.port}")
        self.addCleanup(victim.kill)
        threads = self.threads(longwire)
        connections, streams = [], []
        for _ in range(100):
            connection = self.mallory(longwire)
            connections.append(connection)
            streams += [(connection, connection.open()) for _ in range(http2.MOST_STREAMS)]
        end = time.monotonic() + 4
        while time.monotonic() < end:
            for connection, stream in streams:
                connection.ping(stream)
            time.sleep(0.5)
            if time.monotonic() < end - 2.5:
                proxy.cut()
                self.assertLess(self.threads(longwire) - threads, 120)
        neighbour.run_for(longwire, 1)
        out, err = victim.communicate(timeout=60)
        self.assertEqual((0, ""), (victim.returncode, err), out + longwire.log_tail())
        server.wait_for(lambda: sum(one.ended_streams for one in connections)
                        + sum(http2.MOST_STREAMS for one in connections if one.closed.is_set()) >= len(streams),
                        10, "the end of the streams that only ping")
        figures = longwire.status()["admission"]
        self.assertGreater(figures["refused_streams"], 100)
        self.assertEqual(0, figures["streams"])

    def test_streams_of_one_connection(self):
        """No more than a session's log needs, whether or not there is one."""
        longwire = self.serve()
        connection = self.mallory(longwire)
        time.sleep(0.3)
        for _ in range(http2.MOST_STREAMS):
            connection.ping(connection.open())
        self.assertFalse(connection.closed.wait(1), "it is closed")
        connection.ping(connection.open())
        self.assertTrue(connection.closed.wait(10), "one more is taken")

    def test_a_thousand_streams_of_one_connection(self):
        longwire = self.serve()
        connection = self.mallory(longwire)
        time.sleep(0.3)
        for _ in range(1000):
            if connection.closed.is_set():
                break
            connection.ping(connection.open())
        self.assertTrue(connection.closed.wait(10), "it stays open")
        neighbour.run_for(longwire, 0)

    def test_messages_that_never_end(self):
        longwire = self.serve()
        neighbour.run_for(longwire, 0)
        before = hostile_client.resident_mib(self.daemon(longwire))
        data = http2.message(b"x" * (2 * MIB - 1000), 2 * MIB)
        sent, most = 0, 0
        for method in (b"Open", b"Inspect", b"Execute") * 8:
            connection = self.mallory(longwire, settings_acknowledged=False)
            for _ in range(12):
                sent += connection.pour(connection.open(method), data)
                if connection.closed.is_set():
                    break
            most = max(most, hostile_client.resident_mib(self.daemon(longwire)))
        print(f"{sent // MIB} MiB sent; {before} MiB before, at most {most} MiB", flush=True)
        neighbour.run_for(longwire, 1)
        self.assertGreater(sent, 64 * MIB)
        self.assertLess(most - before, 160)

    def test_connections_that_say_nothing(self):
        longwire = self.serve("admission: {opening_time: 2s, waiting_of_address: 100}\n")
        with neighbour.attack(hold_connections, longwire.port, 600):
            time.sleep(0.5)
            neighbour.run_for(longwire, 3)
            figures = longwire.status()["admission"]
        self.assertGreater(figures["closed"], 300)
        # While it goes on they come as fast as others are closed, and those count until they are.
        server.wait_for(lambda: longwire.status()["admission"]["connections"] < 20, 10,
                        "the end of the attacker's connections")


def hold_connections(port, count):
    """Holds as many connections as it gets, for ever."""
    held = []
    while True:
        while len(held) < count:
            try:
                held.append(socket.create_connection(("127.0.0.1", port), 0.2))
            except OSError:
                break
        poll = select.poll()
        for connection in held:
            poll.register(connection, select.POLLRDHUP)
        closed = {descriptor for descriptor, _ in poll.poll(50)}
        for connection in [one for one in held if one.fileno() in closed]:
            held.remove(connection)
            connection.close()


class DescriptorsTest(unittest.TestCase):
    def test_strangers_use_up_no_descriptor_of_a_session(self):
        """Without TLS, with few descriptors: connections that come and go and say nothing, and
        sessions that open meanwhile."""
        longwire = self.enterContext(server.Server())
        resource.prlimit(longwire.children["longwired"].pid, resource.RLIMIT_NOFILE, (256, 256))
        victim = longwire.start("steady.static", "10")
        self.addCleanup(victim.kill)
        results = []
        for _ in range(6):
            held = []
            for _ in range(300):
                try:
                    held.append(socket.create_connection(("127.0.0.1", longwire.port), 0.2))
                except OSError:
                    break
            others = [threading.Thread(target=lambda: results.append(
                longwire.run("vector_add.static"))) for _ in range(3)]
            for thread in others:
                thread.start()
            time.sleep(0.7)
            for connection in held:
                connection.close()
            for thread in others:
                thread.join()
        out, err = victim.communicate(timeout=60)
        self.assertEqual((0, ""), (victim.returncode, err), out + longwire.log_tail())
        good = sum(programs.what_is_wrong("vector_add", one) is None for one in results)
        self.assertEqual(len(results), good, (results, longwire.log_tail()))
        used = len(list(pathlib.Path(
            f"/proc/{longwire.children['longwired'].pid}/fd").iterdir()))
        self.assertLess(used, 200)


if __name__ == "__main__":
    unittest.main()
