#!/usr/bin/env python3
"""A tenant whose program sends well-formed but wrong calls, in any order: its worker answers or
ends with a sentence, and daemon, warden, keeper and a neighbour's programs go on as if nothing
were.

usage: tenant_test.py [--long] [--seed N] [--sessions FIRST:END]
The seed is printed; with it, the same sessions send the same calls again.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import any_calls  # noqa: E402
import hostile_client  # noqa: E402
import hostile_code  # noqa: E402
import neighbour  # noqa: E402
import server  # noqa: E402

CONFIG = """
tenants:
  - name: neighbours
    identities: [loopback, "uid:0"]
    admin: true
  - name: hostile
    identities: ["uid:5"]
    memory: 1GiB
    host_memory: 1GiB
"""
HOSTILE = 5  # its uid
CALLS, LONG_CALLS = 30_000, 1_000_000
PER_SESSION = 1_500
AT_ONCE = 32  # records of one write
# A worker ends by itself, or the warden kills it for the daemon: never so.
WORKER_ENDS = re.compile(r"worker \d+ (ended with code (?!0\b)\d+|was killed by signal (?!9\b)\d+)")


class Session:
    """One session of the hostile tenant's."""

    def __init__(self, longwire, seed):
        self.random = random.Random(seed)
        self.calls = any_calls.AnyCalls(longwire.build, self.random)
        self.client = self._open(longwire)
        self.sent = self.answers = 0
        self.sentence = ""  # with which the worker ended the session

    @staticmethod
    def _open(longwire):
        for _ in range(20):
            try:
                client = hostile_client.Client(longwire.door, longwire.build, uid=HOSTILE)
            except OSError:
                time.sleep(0.2)
                continue
            if client.code == 0:
                return client
            client.close()
            time.sleep(0.2)  # it opens too fast, or the last workers are ending
        raise AssertionError("no session: " + client.sentence)

    def furnish(self):
        """What an ordinary program has, so that not every call fails at once."""
        client = self.client
        if client.create_context() != 0:
            raise AssertionError("no context")
        client.send("lwEventCreate", hostile_client.u64(3) + hostile_client.u32(0))
        _, chunks = client.lease([2 << 20, 2 << 20])
        hostile_code.send_image(client, 6, hostile_code.PTX)
        _, module = client.ask("lwModuleLoad", hostile_code.load(6, hostile_code.PTX))
        self.calls.known += chunks
        self.calls.learn(module)

    def batch(self):
        records = []
        for _ in range(AT_ONCE):
            name = self.calls.name()
            ordered = self.calls.ordered[name] or self.random.random() < 0.05
            records.append(self.client.record(
                name, self.calls.arguments(name),
                thread=1 if self.random.random() < 0.8 else self.random.randrange(9),
                context=1 if self.random.random() < 0.9 else self.random.randrange(4),
                stream=self.random.choice((5, 5, 5, 1, 2)) if ordered else 0,
                flags=self.random.choice((0,) * 10 + (1, 2, 2, 3))))
        return b"".join(records)

    def hear(self, seconds=0.001):
        for kind, _, position, payload in self.client.messages(seconds):
            if kind == hostile_client.REPLY:
                self.answers += 1
                self.calls.learn(payload)
            elif kind == hostile_client.ERROR and position == 0:
                self.sentence = payload[4:].decode(errors="replace")

    def run(self):
        """How it ended: open, over or waiting."""
        self.furnish()
        try:
            while self.sent < PER_SESSION and not self.client.down.closed:
                self.client.up.write(self.batch(), seconds=1)
                self.sent += AT_ONCE
                self.hear()
        except TimeoutError:
            return "waiting"  # it gave its own streams something to wait for
        except ConnectionError:
            pass
        self.hear(0.1)
        if not self.client.down.closed:
            return "open"
        self.hear(0.1)
        if not self.sentence:
            raise AssertionError("a worker ended without a sentence")
        return "over"


def attack(longwire, seed, sessions, calls, ends):
    """Sessions until `calls` calls were sent. Returns how many were, and how many answers came."""
    sent = answers = 0
    for index in sessions:
        if sent >= calls:
            break
        session = Session(longwire, f"{seed}/{index}")
        try:
            ends[session.run()] += 1
        except AssertionError as wrong:
            raise AssertionError(f"session {index} of seed {seed}: {wrong}\n"
                                 + longwire.log_tail(80)) from None
        finally:
            sent += session.sent
            answers += session.answers
            session.client.close()
        if session.sentence:
            ends[f"over: {session.sentence[:90]}"] += 1
    return sent, answers


def expect_all_alive(longwire, before):
    now = longwire.processes()
    for name in ("longwired", "longwire-warden", "longwire-keeper"):
        if now[name] != before[name]:
            raise AssertionError(f"{name}: {before[name]} became {now[name]}")
    log = longwire.log.read_text(errors="replace")
    if end := WORKER_ENDS.search(log):
        raise AssertionError(f"{end[0]}\n{longwire.log_tail(80)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, help="1; with --long another one each time")
    parser.add_argument("--sessions", default="0:1000000", metavar="FIRST:END")
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = int.from_bytes(os.urandom(4), "little") if arguments.long else 1
    first, end = map(int, arguments.sessions.split(":"))
    print(f"seed {arguments.seed}", flush=True)
    calls = LONG_CALLS if arguments.long else CALLS
    ends = collections.Counter()
    begun = time.monotonic()
    with server.Server(config=CONFIG) as longwire:
        longwire.runtime.chmod(0o711)  # for the other user's way to the socket
        neighbour.run_for(longwire, 0, least=1)
        before = longwire.processes()
        with neighbour.beside(longwire) as beside:
            sent, answers = attack(longwire, arguments.seed, range(first, end), calls, ends)
            programs = beside.count_right()
        expect_all_alive(longwire, before)
        neighbour.run_for(longwire, 0, least=1)
        server.wait_for(longwire.is_unused, 20, "the hostile sessions' memory")
        expect_all_alive(longwire, before)
    for what, count in ends.most_common():
        print(f"{count:6} {what}")
    print(f"{sent} calls, {answers} answers, {time.monotonic() - begun:.1f} s; "
          f"{programs} programs of a neighbour's beside them")
    if answers < sent // 20:
        raise AssertionError("most calls were not answered: too little was tried")


if __name__ == "__main__":
    main()
