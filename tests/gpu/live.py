"""The group live of tests/gpu/run: running kernels and programs that share pinned memory, natively
first, since a GPU or a host may be one on which a program does not work; then through the server's
local socket, or over TCP what needs no more than words."""
import programs
import server

SECONDS = 100
# Each row's program and arguments.
RUNS = (("live_flags", ()), ("mailbox", ("1000",)), ("live_litmus", ("1000000", "ordered", "90")))
WORDS = tuple(("live_words", (what, "60")) for what in ("flags", "counters", "ordered", "copies"))


def verdict(name, native, remote):
    """What is wrong, or None."""
    for where, result in (("native", native), ("longwire", remote)):
        wrong = programs.what_is_wrong(name, result)
        if wrong:
            return f"{where}: {wrong}"
    return None


def run(build, report):
    """True if every program passes both ways."""
    good = True
    with server.Server(driver="auto", build=build) as longwire:
        report.row(f"{'live: program':40} {'native s':>8} {'remote s':>8}")
        ways = [(run, f"unix:{longwire.door}") for run in RUNS]
        ways += [(run, longwire.address) for run in WORDS]
        for (name, arguments), address in ways:
            words = [longwire.program(f"{name}.static"), *arguments]
            native = server.run(words, longwire.environment(), SECONDS)
            title = " ".join((name, *arguments[:1])) if name == "live_words" else name
            report.keep(title.replace(" ", "_"), "native", native)
            remote = server.run(longwire.command(*words, server=address),
                                longwire.environment(), SECONDS)
            report.keep(title.replace(" ", "_"), "longwire", remote)
            wrong = verdict(name, native, remote)
            report.row(f"{title:40} {native.seconds:8.2f} {remote.seconds:8.2f}  "
                       f"{'BAD ' + wrong if wrong else 'right'}")
            good = good and wrong is None
        if not good:
            report.row(longwire.log_tail(60))
    return good
