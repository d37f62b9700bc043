"""An ordinary user beside an attack: programs that run again and again."""
import contextlib
import multiprocessing
import os
import signal
import sys
import time

import programs

PROGRAM = "vector_add.static"


def run_for(longwire, seconds, least=3, **how):
    """The times of the programs that ran in the seconds, of `least` ones if that takes longer;
    AssertionError if one was wrong."""
    times = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times) < least:
        result = longwire.run(PROGRAM, **how)
        wrong = programs.what_is_wrong("vector_add", result)
        if wrong:
            raise AssertionError(f"the neighbour's program {len(times)}: {wrong}\n"
                                 + longwire.log_tail())
        times.append(result.seconds)
    return times


def slowest(times, part=0.99):
    """A quantile of the times."""
    return sorted(times)[min(len(times) - 1, int(part * len(times)))]


def _attack(function, uid, arguments):
    try:
        if uid is not None:
            os.setgroups([])
            os.setgid(60)
            os.setuid(uid)
            os.nice(10)
        function(*arguments)
    finally:
        sys.stdout.flush()
        os._exit(0)


@contextlib.contextmanager
def attack(function, *arguments, uid=None):
    """Runs the function beside what the block does, in a process of its own, as another user."""
    process = multiprocessing.get_context("fork").Process(
        target=_attack, args=(function, uid, arguments), daemon=True)
    process.start()
    try:
        yield process
    finally:
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
        process.join()


def _run_until(over, longwire, results):
    count, wrong = 0, None
    try:
        while not over.is_set() and not wrong:
            wrong = programs.what_is_wrong("vector_add", longwire.run(PROGRAM))
            count += 1
    finally:
        results.send((count, wrong))
        os._exit(0)


class Beside:
    """A neighbour whose programs run in a row, until `count_right` is called; in a process of its
    own."""

    def __init__(self, longwire):
        fork = multiprocessing.get_context("fork")
        self.longwire = longwire
        self.over = fork.Event()
        self.results, end = fork.Pipe()
        self.process = fork.Process(target=_run_until, args=(self.over, longwire, end), daemon=True)
        self.process.start()
        end.close()

    def count_right(self):
        """How many ran; AssertionError if one was wrong."""
        self.over.set()
        count, wrong = self.results.recv()
        self.process.join()
        if wrong or count == 0:
            raise AssertionError(f"the neighbour's program {count}: {wrong}\n"
                                 + self.longwire.log_tail())
        return count


@contextlib.contextmanager
def beside(longwire):
    """A Beside while the block runs."""
    one = Beside(longwire)
    try:
        yield one
    finally:
        one.over.set()
        one.process.join(60)
