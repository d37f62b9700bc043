"""The group live of tests/gpu/run: running kernels and programs that share pinned memory, natively
first, since a GPU or a host may be one on which a program does not work; then through the server's
local socket."""
import programs
import server

SECONDS = 100
# Each row's program and arguments.
RUNS = (("live_flags", ()), ("mailbox", ("1000",)), ("live_litmus", ("1000000", "ordered", "90")))


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
        for name, arguments in RUNS:
            words = [longwire.program(f"{name}.static"), *arguments]
            native = server.run(words, longwire.environment(), SECONDS)
            report.keep(name, "native", native)
            remote = server.run(longwire.command(*words, server=f"unix:{longwire.door}"),
                                longwire.environment(), SECONDS)
            report.keep(name, "longwire", remote)
            wrong = verdict(name, native, remote)
            report.row(f"{name:40} {native.seconds:8.2f} {remote.seconds:8.2f}  "
                       f"{'BAD ' + wrong if wrong else 'right'}")
            good = good and wrong is None
        if not good:
            report.row(longwire.log_tail(60))
    return good
