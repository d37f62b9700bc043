"""Messages to a running kernel and back through pinned memory (tests/apps/mailbox): microseconds a
message, natively, over unix:, where kernels reach the program's memory itself, and over TCP, where
flags that are messages by themselves (0 B) are exchanged; also through a relay with a round trip of
1 ms. The native row comes first; on a machine without a GPU there is none. Each figure is the
median of the rounds."""
import re
import statistics

import relays
from server import Server
from server import run as run_command

SIZES = (0, 8, 4096, 65536)  # bytes
MESSAGES, SECONDS = 2000, 120


def figure(command, environment, raw):
    """Microseconds, or None with the reason in the raw output."""
    result = run_command(command, environment, SECONDS)
    raw.write(f"{' '.join(map(str, command))}: code {result.code}\n{result.out}{result.err}\n")
    found = re.search(r"([\d.]+) us a message", result.out)
    return float(found[1]) if found and result.code == 0 else None


def run(build, driver, raw, rounds):
    def say(text):
        print(text, flush=True)
        raw.write(text + "\n")
    with (Server(driver, build=build) as server,
          relays.RelayTo(build, server.port, rtt_ms=1, gbit=10) as relay):
        program = server.program("mailbox.static")

        def through(address):
            return lambda words: server.command(*words, server=address)
        ways = {"native": (SIZES, lambda words: words),
                "unix": (SIZES, through(f"unix:{server.door}")),
                "tcp": (SIZES[:1], through(server.address)),
                "tcp, 1 ms": (SIZES[:1], through(relay.address))}
        say("us a message, there and back " + "".join(f"{size:>8} B" for size in SIZES))
        for name, (sizes, command) in ways.items():
            columns = []
            for size in sizes:
                words = [program, MESSAGES, SECONDS // 2, size, 1]
                found = [figure(command(list(map(str, words))), server.environment(), raw)
                         for _ in range(rounds)]
                good = [value for value in found if value is not None]
                columns.append(f"{statistics.median(good):10.2f}" if len(good) == rounds
                               else f"{'-':>10}")
            say(f"{name:<29}" + "".join(columns))
