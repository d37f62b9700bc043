"""Probes for the keys of admission: what waits at the sockets for a session, and how fast sessions
are opened. The sockets' own tests are tests/hostile/door_test.py and port_test.py."""
import pathlib
import select
import socket
import sys
import time

import server
from keys_server import MIB
from reload_cases import probe

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "hostile"))
import hostile_client  # noqa: E402
import http2  # noqa: E402

SETTLES = 0.5  # seconds


def silent(case, count, local=False):
    """Connections that say nothing."""
    made = []
    for _ in range(count):
        if local:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            connection.connect(str(case.longwire.door))
        else:
            connection = socket.create_connection(("127.0.0.1", case.longwire.port), 10)
        case.addCleanup(connection.close)
        made.append(connection)
    return made


def still_open(connections):
    poll = select.poll()
    for connection in connections:
        poll.register(connection, select.POLLIN | select.POLLRDHUP)
    return len(connections) - len(poll.poll(0))


def expect_open(case, connections, count):
    """All but `count` are closed, and those stay."""
    server.wait_for(lambda: still_open(connections) <= count, 20, "the end of waiting connections")
    time.sleep(SETTLES)
    case.assertEqual(count, still_open(connections))
    for connection in connections:
        connection.close()


def expect_limit(case, **limit):
    """Of nine connections to the port. Links may have some, too: idle ones, without a session."""
    [most] = limit.values()
    many = silent(case, 9)
    time.sleep(SETTLES)
    case.assertEqual(9, still_open(many))
    for connection in many:
        connection.close()
    case.longwire.reload(admission=limit)
    many = silent(case, 9)
    server.wait_for(lambda: still_open(many) <= most, 20, "the end of waiting connections")
    for connection in many:
        connection.close()


def open_sessions(case, count):
    """How many of `count` sessions of the local user, asked for at once, are opened; and the
    sentences of the others."""
    asked = silent(case, count, local=True)
    for connection in asked:
        connection.settimeout(60)
        connection.send(hostile_client.open_request())
    said = [hostile_client.sentence_of(connection.recv(200 << 10)) for connection in asked]
    for connection in asked:
        connection.close()
    server.wait_for(lambda: not case.status()["sessions"], 20, "the sessions' end")
    return said.count(""), " ".join(said)


@probe("admission.opening_time")
def end_silent_connections(case):
    [connection] = silent(case, 1, local=True)
    time.sleep(2)
    case.assertEqual(1, still_open([connection]))
    case.longwire.reload(admission={"opening_time": "1s"})
    expect_open(case, silent(case, 1, local=True), 0)


@probe("admission.waiting_of_identity")
def limit_what_waits_of_a_user(case):
    for limit in 2, 4:
        case.longwire.reload(admission={"waiting_of_identity": limit})
        expect_open(case, silent(case, 8, local=True), limit)


@probe("admission.waiting_of_address")
def limit_what_waits_of_an_address(case):
    expect_limit(case, waiting_of_address=3)


@probe("admission.waiting")
def limit_what_waits_of_all(case):
    expect_limit(case, waiting=4)
    case.assertEqual(4, case.status()["admission"]["waiting_limit"])


@probe("admission.waiting_memory")
def limit_what_waits_in_bytes(case):
    def poured():
        """Whether a connection that sends 3 MiB without a session is still open."""
        connection = http2.Connection(case.longwire.port,
                                      http2.tls_context(case.longwire.papers, "alpha"))
        case.addCleanup(connection.close)
        for _ in range(2):
            connection.pour(connection.open(b"Open"), http2.message(b"x" * (3 * MIB // 2), 2 * MIB))
        return not connection.closed.wait(2)
    case.assertTrue(poured())
    case.longwire.reload(admission={"waiting_memory": "1MiB"})
    case.assertFalse(poured())


@probe("admission.openings_at_once")
def open_at_once(case):
    for limit in 3, 2:
        case.longwire.reload(admission={"openings_at_once": limit, "openings_per_second": 1})
        opened, said = open_sessions(case, 12)
        case.assertLess(opened, limit + 6)
        case.assertIn(f"opens sessions too fast: {limit} at once and 1 a second", said)


@probe("admission.openings_per_second")
def open_in_a_second(case):
    case.longwire.reload(admission={"openings_at_once": 1, "openings_per_second": 1})
    opened, said = open_sessions(case, 12)
    case.assertLess(opened, 7)
    case.assertIn("1 at once and 1 a second", said)
    case.longwire.reload(admission={"openings_at_once": 1, "openings_per_second": 1000})
    time.sleep(1)
    opened, said = open_sessions(case, 12)
    case.assertEqual(12, opened, said)


@probe("admission.sessions_of_identity")
def limit_sessions_of_a_user(case):
    for limit in 2, 3:
        case.longwire.reload(admission={"sessions_of_identity": limit})
        opened, said = open_sessions(case, 5)
        case.assertEqual(limit, opened, said)
        case.assertIn(f"has {limit} sessions already", said)


@probe("admission.log_lines_per_second")
def limit_lines(case):
    def left_out():
        """Of the lines about 40 calls of somebody whom no tenant lists."""
        before = case.status()["admission"].get("log_lines_left_out", 0)
        calls = []
        for _ in range(14):
            connection = http2.Connection(case.longwire.port,
                                          http2.tls_context(case.longwire.papers, "stranger"))
            case.addCleanup(connection.close)
            for _ in range(http2.MOST_STREAMS):
                connection.ping(connection.open())
            calls.append(connection)
        server.wait_for(lambda: all(one.ended_streams == http2.MOST_STREAMS or one.closed.is_set()
                                    for one in calls), 10, "the end of refused calls")
        return case.status()["admission"].get("log_lines_left_out", 0) - before
    case.longwire.reload(admission={"log_lines_per_second": 1000})
    case.assertEqual(0, left_out())
    case.longwire.reload(admission={"log_lines_per_second": 1})
    case.assertGreater(left_out(), 10)
