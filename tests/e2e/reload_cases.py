"""The table of probes, and the programs that they start."""
import server

PROBES = {}  # key → the function that sees whether it is in force


def probe(*keys):
    def enter(function):
        for key in keys:
            assert key not in PROBES, key
            PROBES[key] = function
        return function
    return enter


def start(case, tenant, name="hold_session.static", *words, to=None, **more):
    """A program that says READY once it has used the device; it ends with the test."""
    process = case.longwire.popen(tenant, case.longwire.program(name), *words, to=to, **more)
    case.addCleanup(process.communicate)
    case.addCleanup(process.kill)
    said = [server.next_line(process)]
    while said[-1] not in ("READY\n", ""):
        said.append(server.next_line(process))
    case.assertEqual("READY\n", said[-1], case.longwire.log_tail())
    return process


def tell(process, word):
    """What allocate says to a line of input: how an allocation went, and what is free."""
    process.stdin.write(f"{word}\n")
    process.stdin.flush()
    count = 1 if word == "free" else 2
    return [server.next_line(process).strip() for _ in range(count)]
