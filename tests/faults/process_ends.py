"""What follows when a process gets a signal: the table of docs/errors.md, row by row.

shown_by: the test that shows the row; process_ends_test.py runs those of its own name, and looks
that each named file of tests/ exists and that the page has the same rows.
"""
import collections

Row = collections.namedtuple("Row", "process signals program neighbours operator shown_by")

HERE = "faults/process_ends_test.py"
NOTHING = "nothing"

ROWS = [
    Row("program", "KILL, TERM", "", NOTHING,
        "its session is gone from `longwire status` within 1 s; the log has `ended after`", HERE),
    Row("program", "STOP, CONT", "right results, later", NOTHING,
        "nothing; a stopped program's session stays", HERE),
    Row("link", "KILL, TERM", "right results, after a pause",
        "programs of the same link: the same; others: nothing",
        "both logs have `resumed after`", HERE),
    Row("link", "STOP, CONT", "right results, later, if it goes on within `resume_grace`; else 719",
        "programs of the same link: the same; others: nothing",
        "after 15 s the log has `its connection broke`", HERE),
    Row("link and its program", "KILL", "", NOTHING,
        "the session is gone within 2 s", HERE),
    Row("link, guard and program", "KILL", "", NOTHING,
        "the session is gone when the same user opens another one, else after `resume_grace`",
        HERE),
    Row("guard", "KILL, TERM, STOP", NOTHING, NOTHING, NOTHING, HERE),
    Row("worker", "KILL, TERM", "719 from every later call, within 2 s, with a sentence", NOTHING,
        "the log has `ended by signal`, or `died of signal` with a stack", HERE),
    Row("worker", "STOP, CONT", "right results, later", NOTHING, NOTHING, HERE),
    Row("daemon", "KILL, TERM",
        "right results, if another one starts within `resume_grace`; else 719", "the same",
        "the next one's log has `resumed after`", "e2e/daemon_restarts_test.py"),
    Row("daemon", "STOP, CONT", "right results, later", "the same", NOTHING,
        "faults/ends_test.py"),
    Row("keeper", "KILL, TERM",
        "right results; 719 where its memory was swapped to the host", "the same",
        "the warden starts another one", "e2e/keepers_test.py"),
    Row("keeper", "STOP, CONT", "right results; new memory later", "the same", NOTHING,
        "faults/ends_test.py"),
    Row("warden", "KILL, TERM", "719 from every later call, within 2 s, with a sentence",
        "the same", "the log has `longwire-warden went away`", "e2e/wardens_test.py"),
    Row("warden", "STOP, CONT", "right results; new sessions open later", "the same", NOTHING,
        "faults/ends_test.py"),
    Row("signer", "KILL, TERM, STOP", NOTHING, NOTHING,
        "no certificates until it runs again", HERE),
]


def as_page():
    """The rows as docs/errors.md has them."""
    return ["| " + " | ".join([row.process, row.signals, row.program or "–", row.neighbours,
                               row.operator]) + " |" for row in ROWS]
