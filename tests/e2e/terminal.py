"""A terminal for tests: a pty with a program on it, and what is to be seen on its screen."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unicodedata

SEQUENCE = re.compile(r"\x1b(?:\[([?>=]?)([0-9;]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|"
                      r"[()][0-9A-B]|[=>78DEHMZc])")
UNFINISHED = re.compile(r"\x1b(?:\[[?>=]?[0-9;]*|\][^\x07\x1b]*\x1b?|[()])?\Z")


class Screen:
    """What an xterm of this size shows. What it does not know is an error."""

    def __init__(self, columns, rows):
        self.rest = ""
        self.alternate = False
        self.cursor_shown = True
        self.resize(columns, rows)

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.cells = [[" "] * columns for _ in range(rows)]
        self.x = self.y = 0
        self.top, self.bottom = 0, rows - 1
        self.last = " "

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def feed(self, text):
        text = self.rest + text
        self.rest = ""
        while text:
            if text[0] == "\x1b":
                found = SEQUENCE.match(text)
                if found:
                    self.obey(found)
                    text = text[found.end():]
                    continue
                if UNFINISHED.match(text):
                    self.rest = text
                    return
                raise AssertionError(f"the terminal does not know {text[:20]!r}")
            self.put(text[0])
            text = text[1:]

    def put(self, character):
        if character == "\r":
            self.x = 0
        elif character == "\n":
            self.down()
        elif character == "\b":
            self.x = max(0, self.x - 1)
        elif character in "\a\x0e\x0f":
            pass
        elif character < " ":
            raise AssertionError(f"a control character reached the terminal: {character!r}")
        elif unicodedata.combining(character):
            self.cells[self.y][max(0, self.x - 1)] += character
        else:
            width = 2 if unicodedata.east_asian_width(character) in "WF" else 1
            if self.x + width > self.columns:
                self.x = 0
                self.down()
            self.cells[self.y][self.x] = character
            if width == 2:
                self.cells[self.y][self.x + 1] = ""
            self.x += width
            self.last = character

    def down(self):
        if self.y == self.bottom:
            self.scroll(self.top, 1)
        else:
            self.y = min(self.y + 1, self.rows - 1)

    def scroll(self, first, count):
        """Lines from `first` to the end of the region go up; down if it is negative."""
        for _ in range(abs(count)):
            del self.cells[first if count > 0 else self.bottom]
            self.cells.insert(self.bottom if count > 0 else first, [" "] * self.columns)

    def obey(self, found):
        private, numbers, letter = found.group(1), found.group(2), found.group(3)
        if letter is None:
            return
        given = [int(number or 0) for number in (numbers or "").split(";")]
        first = given[0]
        count = max(1, first)
        if private:
            if private == "?" and letter in "hl":
                if 1049 in given:
                    self.alternate = letter == "h"
                if 25 in given:
                    self.cursor_shown = letter == "h"
            return
        self.change(letter, given, first, count)
        self.x = min(max(self.x, 0), self.columns - 1)
        self.y = min(max(self.y, 0), self.rows - 1)

    def change(self, letter, given, first, count):
        row = self.cells[self.y]
        x = min(self.x, self.columns - 1)
        if letter in "Hf":
            self.y, self.x = count - 1, max(1, (given + [1])[1]) - 1
        elif letter in "AB":
            self.y += count if letter == "B" else -count
        elif letter in "CD":
            self.x += count if letter == "C" else -count
        elif letter == "G":
            self.x = count - 1
        elif letter == "d":
            self.y = count - 1
        elif letter == "K":
            first_cell, end = [(x, self.columns), (0, x + 1), (0, self.columns)][first]
            row[first_cell:end] = [" "] * (end - first_cell)
        elif letter == "J":
            self.change("K", [first], first, 1)
            for other in range(self.rows):
                if first == 2 or (other > self.y) == (first == 0) and other != self.y:
                    self.cells[other] = [" "] * self.columns
        elif letter == "X":
            end = min(self.columns, x + count)
            row[x:end] = [" "] * (end - x)
        elif letter == "P":
            self.cells[self.y] = (row[:x] + row[x + count:] + [" "] * self.columns)[:self.columns]
        elif letter == "@":
            self.cells[self.y] = (row[:x] + [" "] * count + row[x:])[:self.columns]
        elif letter in "LM":
            self.scroll(self.y, count if letter == "M" else -count)
        elif letter in "ST":
            self.scroll(self.top, count if letter == "S" else -count)
        elif letter == "r":
            self.top, self.bottom = count - 1, (given + [self.rows])[1] - 1
        elif letter == "b":
            for _ in range(count):
                self.put(self.last)
        elif letter not in "mhltn":
            raise AssertionError(f"the terminal does not know CSI {given} {letter}")


class Terminal:
    """A program on a terminal of its own; end it with close."""

    def __init__(self, command, environment, columns=80, rows=24):
        self.master, self.slave = pty.openpty()
        self.screen = Screen(columns, rows)
        self.bytes = b""
        self._tell_size()
        self.before = termios.tcgetattr(self.slave)

        def become_leader():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self.process = subprocess.Popen(command, env=environment, stdin=self.slave,
                                        stdout=self.slave, stderr=self.slave,
                                        preexec_fn=become_leader)

    def _tell_size(self):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ,
                    struct.pack("HHHH", self.screen.rows, self.screen.columns, 0, 0))

    def resize(self, columns, rows):
        self.read(0.05)
        self.screen.resize(columns, rows)
        self._tell_size()
        os.kill(self.process.pid, signal.SIGWINCH)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def read(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.master], [], [], left)[0]:
                return
            self.bytes += os.read(self.master, 65536)
            whole = self.bytes.decode("utf-8", "ignore")
            # The beginning of a character waits for its end.
            kept = self.bytes[len(whole.encode()):]
            self.screen.feed(whole)
            self.bytes = kept

    def text(self):
        return "\n".join(self.screen.lines())

    def wait_for(self, condition, what, seconds=10):
        """`condition`: a text that is to be seen, or a function of what is seen."""
        end = time.monotonic() + 3 * seconds
        is_met = condition if callable(condition) else lambda text: condition in text
        while not is_met(self.text()):
            if time.monotonic() > end:
                raise TimeoutError(f"{what}: not on the screen:\n{self.text()}")
            self.read(0.1)

    def end(self, seconds=10):
        """The exit status of a program that ends; what it writes last is read."""
        end = time.monotonic() + 3 * seconds
        while self.process.poll() is None:
            if time.monotonic() > end:
                raise TimeoutError(f"it does not end; on the screen:\n{self.text()}")
            self.read(0.05)
        self.read(0.2)
        return self.process.returncode

    def is_restored(self):
        return (termios.tcgetattr(self.slave) == self.before and not self.screen.alternate and
                self.screen.cursor_shown)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)
