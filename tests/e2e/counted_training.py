"""A test whose programs train, stop between steps for their input, and count every kernel."""
import subprocess
import unittest

import server


class TrainingCase(unittest.TestCase):
    def start(self, longwire, **more):
        return self.start_ready(longwire, longwire.program("counted_training.static"), "stdin",
                                **more)

    def start_ready(self, longwire, *words, **more):
        """A program that says so and then waits for its standard input."""
        program = subprocess.Popen(
            longwire.command(*words, **more), env=longwire.environment(), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        self.assertEqual("READY\n", server.next_line(program), longwire.log_tail())
        return program

    def session(self, longwire):
        (session,) = longwire.status()["sessions"]
        return session
