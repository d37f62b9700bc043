"""The group live of tests/gpu/run: running kernels and programs that share pinned memory, natively
first, since a GPU or a host may be one on which a program does not work; then through the server's
local socket; and over TCP what needs words, or messages of many words behind flags."""
import re

import programs
import server

SECONDS = 100
# Each row's program and arguments.
RUNS = (("live_flags", ()), ("mailbox", ("1000",)), ("live_litmus", ("1000000", "ordered", "90")))
WORDS = tuple(("live_words", (what, "60")) for what in ("flags", "counters", "ordered", "copies"))
# Seconds each: the rows of the last one are given up after one.
MESSAGES = tuple(("mailbox", ("100", "60", "-", "3", memory))
                 for memory in ("allocated", "registered", "managed"))
MESSAGES += (("live_litmus", ("20000", "messages", "60", "1")),
             ("channels", ("16", "20", "131072", "30", "awaited")))
# What is exchanged, rounds, bytes of a message.
BORDERS = tuple(("border_litmus", (*row, "30")) for row in (
    ("down", "300", "1048576"), ("down", "2000", "4096"), ("up", "30", "1048576"),
    ("both", "100", "262144"), ("load", "50", "65536")))
ROUNDS = re.compile(r"^(\d+) rounds, \d+ forbidden$|^(.* us a message)$", re.MULTILINE)


def verdict(name, native, remote):
    """What is wrong, or None."""
    for where, result in (("native", native), ("longwire", remote)):
        wrong = programs.what_is_wrong(name, result)
        if wrong:
            return f"{where}: {wrong}"
    return None


def title_of(name, arguments):
    """What is unlike others of the program."""
    if name == "live_words":
        return f"{name} {arguments[0]}"
    if (name, arguments) in BORDERS:
        return f"{name} {arguments[0]} {arguments[2]} B"
    if (name, arguments) in MESSAGES:
        return f"{name} over TCP {arguments[-1] if name == 'mailbox' else arguments[1]}"
    return name


def run(build, report):
    """True if every program passes both ways."""
    good = True
    with server.Server(driver="auto", build=build) as longwire:
        report.row(f"{'live: program':40} {'native s':>8} {'remote s':>8}")
        ways = [(run, f"unix:{longwire.door}") for run in RUNS]
        ways += [(run, longwire.address) for run in WORDS + MESSAGES + BORDERS]
        for (name, arguments), address in ways:
            words = [longwire.program(f"{name}.static"), *arguments]
            native = server.run(words, longwire.environment(), SECONDS)
            title = title_of(name, arguments)
            report.keep(title.replace(" ", "_"), "native", native)
            remote = server.run(longwire.command(*words, server=address),
                                longwire.environment(), SECONDS)
            report.keep(title.replace(" ", "_"), "longwire", remote)
            wrong = verdict(name, native, remote)
            counted = ROUNDS.search(remote.out)
            report.row(f"{title:40} {native.seconds:8.2f} {remote.seconds:8.2f}  "
                       f"{'BAD ' + wrong if wrong else 'right'}"
                       f"{', ' + counted[0] if counted else ''}")
            good = good and wrong is None
        if not good:
            report.row(longwire.log_tail(60))
    return good
