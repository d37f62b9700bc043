#!/usr/bin/env python3
"""A connection is cut behind each frame and each message, and behind any byte, up and down: the
session goes on bit by bit right, or it ends with an error that every later call repeats; and in
either case nothing is left of it.

cuts_test.py [--boundaries N] [--bytes N] [--openings N] [--seed N]
"""
import argparse
import itertools
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import host_state  # noqa: E402
import relay  # noqa: E402
import server  # noqa: E402

PER_SESSION = 25     # cuts that one session goes through
LARGEST = 3_000_000  # bytes between two cuts
MOST = 60            # seconds that a session may take
WAYS = (relay.UP, relay.DOWN)
PROGRAM = "counted_training.static"


def sessions_of(options, chance):
    """Lists of cuts, each for one session."""
    every = [(way, unit, count) for count in range(1, options.boundaries + 1)
             for unit in ("frame", "message") for way in WAYS]
    somewhere = [(chance.choice(WAYS), "byte", int(LARGEST ** chance.uniform(0.2, 1)))
                 for _ in range(options.bytes)]
    for cuts in (every, somewhere):
        for i in range(0, len(cuts), PER_SESSION):
            yield cuts[i:i + PER_SESSION]


def judge(result, out, err):
    """A sentence if the program did what it must not."""
    if result == 0 and "PASS counted_training" in out and err == "":
        return None
    # No session, or one that ended: with one sentence, and what came later failed as well.
    said = err.startswith("longwire: ") and err.count("\n") == 1
    if said and result == 3 and "ERROR" in out:
        return None
    return f"exit code {result}: {out}{err}"


def go_through(longwire, cuts, opens):
    """One session with these cuts, which begin before it opens or when it is open; how many were
    made, and what is wrong."""
    between = relay.Relay(longwire.port, cuts if opens else ())
    program = subprocess.Popen(
        longwire.command(longwire.program(PROGRAM), "stdin", server=between.address),
        env=longwire.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    try:
        first = server.next_line(program)
        if not opens:
            between.cuts = list(cuts)
        deadline = time.monotonic() + MOST
        while between.cuts and program.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        out, err = program.communicate("", timeout=MOST)
    except subprocess.TimeoutExpired:
        program.kill()
        out, err = program.communicate()
        return len(between.made), f"it hung: {out}{err}"
    finally:
        between.close()
    return len(between.made), judge(program.returncode, first + out, err)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--boundaries", type=int, default=4)
    parser.add_argument("--bytes", type=int, default=10)
    parser.add_argument("--openings", type=int, default=4)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    chance = random.Random(options.seed)
    wrong, made, sessions = [], 0, 0
    with server.Server(config="resume_grace: 3s\n") as longwire:
        if longwire.run(PROGRAM, "0", "3").code != 0:
            raise AssertionError("the program fails without cuts")
        before = host_state.settled(longwire)
        plans = [([cut], True) for cut in itertools.islice(
            ((way, "frame", count) for count in range(1, 1000) for way in WAYS),
            options.openings)]
        plans += [(cuts, False) for cuts in sessions_of(options, chance)]
        for cuts, opens in plans:
            done, problem = go_through(longwire, cuts, opens)
            made += done
            sessions += 1
            if problem is not None:
                wrong.append(f"{cuts}, {done} made: {problem}")
        # Each relay had another address, and so a link of its own, which idles for a minute.
        for pid in longwire.processes()["longwire-link"]:
            subprocess.run(["kill", str(pid)], check=False)
        took, extra = host_state.time_until_back(longwire, before, 20)
        if extra:
            wrong.append(f"after {took:.1f} s there is more: {extra}")
        print(f"{made} cuts in {sessions} sessions")
        for sentence in wrong:
            print("WRONG", sentence)
        if wrong:
            print(longwire.log_tail(60))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
