"""Bad servers, bad addresses and bad bytes: a clear sentence at the right side, and the daemon
lives."""
import os
import pathlib
import random
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import programs  # noqa: E402
import server  # noqa: E402


class Impostor:
    """Listens where a server might, and answers every connection with the same bytes."""

    def __init__(self, answer):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.answer = answer
        self.connections = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)  # Kept open: a silent server says nothing more.
            try:
                connection.sendall(self.answer)
            except OSError:
                pass

    def close(self):
        self.listener.close()
        for connection in self.connections:
            connection.close()


class FaultsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server())

    def expect_refusal(self, address, *words):
        """The program sees a CUDA error within 5 s, and stderr has one sentence."""
        self.expect_sentence(self.longwire.run("vector_add.static", server=address), *words)

    def expect_sentence(self, result, *words):
        self.assertEqual(1, result.code, result)
        self.assertIn("FAIL", result.out)
        self.assertLess(result.seconds, 6.0)
        lines = result.err.strip().splitlines()
        self.assertEqual(1, len(lines), result.err)
        for word in words:
            self.assertIn(word, lines[0])

    def expect_alive(self):
        result = self.longwire.run("vector_add.static")
        self.assertIsNone(programs.what_is_wrong("vector_add", result), self.longwire.log_tail())
        self.assertIsNone(self.longwire.children["longwired"].poll(), "the daemon ended")

    def with_impostor(self, answer):
        impostor = Impostor(answer)
        self.addCleanup(impostor.close)
        self.expect_refusal(impostor.address, impostor.address)

    def test_wrong_port(self):
        address = f"127.0.0.1:{server.free_port()}"
        self.expect_refusal(address, address)

    def test_a_host_that_never_answers(self):
        # 192.0.2.0/24 is reserved for documentation: packets to it are dropped or refused.
        self.expect_refusal("192.0.2.1:7411", "192.0.2.1:7411")

    def test_a_name_that_is_not_known(self):
        self.expect_refusal("no-such-host.invalid:7411", "no-such-host.invalid")

    def test_an_address_that_is_none(self):
        result = self.longwire.run("vector_add.static", server="127.0.0.1:notaport")
        self.assertEqual(2, result.code, result)
        self.assertIn("notaport", result.err)
        # The program alone, without the command that would have told.
        environment = self.longwire.environment(
            LD_LIBRARY_PATH=self.longwire.dist / "lib" / "longwire",
            LONGWIRE_SERVER="127.0.0.1:notaport")
        result = server.run([self.longwire.program("vector_add.static")], environment)
        self.expect_sentence(result, "notaport")

    def test_a_server_that_sends_garbage(self):
        self.with_impostor(random.Random(1).randbytes(4096))

    def test_a_server_that_speaks_http(self):
        self.with_impostor(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    def test_a_server_that_says_nothing(self):
        self.with_impostor(b"")

    def test_no_server_configured(self):
        library = self.longwire.dist / "lib" / "longwire"
        environment = self.longwire.environment(LD_LIBRARY_PATH=library)
        for name, error in (("hello.static", "No CUDA device"), ("driver_ptx.driver", "gave 100")):
            result = server.run([self.longwire.program(name)], environment)
            self.assertEqual(1, result.code, result)
            self.assertIn(error, result.out)
            self.assertEqual("", result.err)
            self.assertLess(result.seconds, 2.0)

    def test_the_daemon_survives_random_bytes(self):
        source = random.Random(7)
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        for attempt in range(60):
            with socket.create_connection(("127.0.0.1", self.longwire.port), 2) as connection:
                connection.settimeout(0.05)
                start = preface if attempt % 2 else b""
                try:
                    connection.sendall(start + source.randbytes(source.randrange(1, 20000)))
                    connection.recv(100)
                except OSError:
                    pass
        self.expect_alive()

    def test_the_daemon_survives_idle_connections(self):
        connections = [socket.create_connection(("127.0.0.1", self.longwire.port), 2)
                       for _ in range(50)]
        self.addCleanup(lambda: [connection.close() for connection in connections])
        self.expect_alive()

    def test_the_sockets_survive_random_messages(self):
        self.longwire.run("vector_add.static")  # So that there is a link.
        sockets = [self.longwire.door, *self.longwire.runtime.glob("link-*.sock")]
        self.assertGreaterEqual(len(sockets), 2, "no link's socket was found")
        source = random.Random(11)
        for path in sockets:
            for _ in range(60):
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
                    connection.settimeout(0.05)
                    try:
                        connection.connect(str(path))
                        connection.send(source.randbytes(source.randrange(1, 4000)))
                        connection.recv(4096)
                    except OSError:
                        pass
        self.expect_alive()
        result = self.longwire.run("vector_add.static", server=f"unix:{self.longwire.door}")
        self.assertIsNone(programs.what_is_wrong("vector_add", result), self.longwire.log_tail())

    def test_a_daemon_that_dies_is_an_error_of_its_programs(self):
        with server.Server(config="resume_grace: 1s\n") as other:
            program = other.start("steady.static", "until-error")
            os.kill(other.children["longwired"].pid, 9)
            start = time.monotonic()
            out, err = program.communicate(timeout=50)
            self.assertEqual(0, program.returncode, out)
            self.assertIn("ERROR", out)
            self.assertIn(f"the connection to {other.address} was lost", err)
            self.assertLess(time.monotonic() - start, 45)

    def test_doctor_names_the_problem(self):
        address = f"127.0.0.1:{server.free_port()}"
        result = self.longwire.cli("doctor", "--server", address)
        self.assertEqual(1, result.code)
        self.assertIn(address, result.out + result.err)


if __name__ == "__main__":
    unittest.main()
