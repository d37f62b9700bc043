"""longwire top on a terminal: what it shows, its keys, and how it leaves the terminal."""
import json
import os
import shutil
import subprocess
import time
import unittest

import server
import terminal


class TopCase(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(server.Server())

    def top(self, *words, columns=80, rows=24, **variables):
        command = [self.longwire.dist / "bin" / "longwire", "top", *words]
        environment = {**self.longwire.environment(), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8",
                       **variables}
        screen = terminal.Terminal(command, environment, columns, rows)
        self.addCleanup(screen.close)
        return screen

    def start(self, name="steady.static"):
        process = self.longwire.start(name, "hold")
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def number(self):
        sessions = self.longwire.status()["sessions"]
        self.assertEqual(1, len(sessions))
        return str(sessions[0]["id"])


class ScreenTest(TopCase):
    def test_a_busy_session_and_its_rates(self):
        self.start()
        number = self.number()
        top = self.top()

        def is_busy(text):
            row = next((line.split() for line in text.splitlines() if number in line), None)
            return row is not None and any(
                word.endswith("%") and int(word[:-1]) > 0 for word in row)
        top.wait_for(is_busy, "a session's GPU time")
        row = next(line for line in top.screen.lines() if number in line)
        self.assertIn("steady.sta", row)
        self.assertRegex(row, r" \d+M ")  # its memory
        self.assertRegex(row, r"(open|shut|HELD)$")
        text = top.text()
        for title in ("DEVICE", "BUSY", "TENANT", "SHARE", "DUE", "WAIT", "SESSION", "GPU%", "n/a"):
            self.assertIn(title, text)
        self.assertRegex(text.splitlines()[0], r"^longwired \S+ at \S+control \(host ")
        self.assertIn("q quit", text.splitlines()[23])

    def test_names_that_are_not_plain(self):
        strange = self.longwire.runtime / "ö日本\x1b[2J\n"
        shutil.copy(self.longwire.program("steady.static"), strange)
        process = subprocess.Popen(self.longwire.command(strange, "hold"),
                                   env=self.longwire.environment(), stdout=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual("READY\n", server.next_line(process))
        top = self.top()
        top.wait_for("ö日本?[2J", "the name")
        # Behind wide characters the columns are where they are.
        lines = top.screen.lines()
        title = next(line for line in lines if line.startswith("SESSION") or " SESSION " in line)
        row = next(line for line in lines if "ö日本" in line)
        self.assertEqual(title.index("IDENTITY"), row.index("loopback") + 2)  # two are wide

    def test_a_terminal_of_another_size(self):
        self.start()
        top = self.top()
        top.wait_for("steady", "the session")
        self.assertNotIn("IDENTITY TENANT", top.text())
        for columns, rows in ((132, 40), (40, 10), (1, 1), (10, 2), (300, 60), (80, 24)):
            top.resize(columns, rows)
            if columns >= 80:
                top.wait_for(lambda _: "q quit" in top.screen.lines()[-1],
                             f"a page of {columns}x{rows}")
                self.assertEqual(columns >= 132, " TENANT " in next(
                    line for line in top.screen.lines() if "SESSION" in line and "GATE" in line))
            else:
                top.read(0.5)
            self.assertIsNone(top.process.poll(), top.text())

    def test_it_starts_on_any_size(self):
        for columns, rows in ((20, 5), (500, 100)):
            top = self.top(columns=columns, rows=rows)
            top.wait_for("longwired", "the first line")
            top.press("q")
            self.assertEqual(0, top.end())


class KeysTest(TopCase):
    def setUp(self):
        super().setUp()
        self.process = self.start()
        self.screen = self.top()
        self.screen.wait_for("steady", "the session")

    def test_a_filter(self):
        self.screen.press("/nobody")
        self.screen.wait_for("none fits the filter", "an empty list")
        self.assertIn("filter: nobody_", self.screen.text())
        self.screen.press("\x7f" * 6 + "stea\r")
        self.screen.wait_for("steady", "the session")
        self.assertIn("filter 'stea'", self.screen.text())
        self.screen.press("\x1b")
        self.screen.wait_for(lambda text: "filter 'stea'" not in text, "no filter")

    def test_another_order(self):
        self.screen.wait_for("GPU%v", "the usual order")
        self.screen.press("\x1bOC")  # right
        self.screen.wait_for("MEMv", "the next column")
        self.screen.press("<r")
        self.screen.wait_for("GPU%^", "the order reversed")

    def test_killing_a_session_asks_first(self):
        number = self.number()
        self.screen.press("k")
        self.screen.wait_for(f"kill session {number} (", "the question")
        self.screen.press("n")
        self.screen.wait_for("nothing was done", "the answer")
        time.sleep(0.5)
        self.assertEqual(number, self.number())
        self.screen.press("k")
        self.screen.wait_for(f"kill session {number} (", "the question")
        self.assertEqual(number, self.number())
        self.screen.press("y")
        self.screen.wait_for(f"session {number} of 'loopback' has been ended", "what was done")
        self.screen.wait_for("no sessions", "an empty list")
        server.wait_for(lambda: not self.longwire.status()["sessions"], 10, "the session's end")

    def test_draining(self):
        self.screen.press("d")
        self.screen.wait_for("drain the server: open no new sessions? y or n", "the question")
        self.screen.press("y")
        self.screen.wait_for("draining: no new sessions are opened (d takes it back)", "the alarm")
        self.assertTrue(self.longwire.status()["draining"])
        self.screen.press("d")
        self.screen.wait_for("open new sessions again? y or n", "the question")
        self.screen.press("y")
        self.screen.wait_for(lambda text: "(d takes it back)" not in text, "the alarm's end")
        self.assertFalse(self.longwire.status()["draining"])

    def test_cordoning(self):
        self.screen.press("c")
        self.screen.wait_for("cordon which device, or take that back? 0_", "the question")
        self.screen.press("\r")
        self.screen.wait_for("cordoned", "the device's state")
        self.assertTrue(self.longwire.status()["devices"][0]["cordoned"])
        self.screen.press("c\r")
        self.screen.wait_for("in use", "the device's state")
        self.assertFalse(self.longwire.status()["devices"][0]["cordoned"])

    def test_help(self):
        self.screen.press("?")
        self.screen.wait_for("kill the selected session (asks first)", "the keys")
        self.screen.press(" ")
        self.screen.wait_for("steady", "the session")

    def test_the_end(self):
        for key in ("q", "\x03"):
            with self.subTest(key=key):
                top = self.top()
                top.wait_for("steady", "the session")
                self.assertFalse(top.is_restored(), "the test sees no difference")
                top.press(key)
                self.assertEqual(0, top.end())
                self.assertTrue(top.is_restored())

    def test_it_is_terminated(self):
        self.screen.process.terminate()
        self.screen.end()
        self.assertTrue(self.screen.is_restored())

    def test_a_server_that_goes_away_and_comes_back(self):
        self.longwire.end_daemon()
        self.screen.wait_for("no answer, these figures are old; trying again", "the alarm")
        self.assertIn("steady", self.screen.text())
        self.longwire.start_daemon()
        self.screen.wait_for(lambda text: "no answer" not in text, "the alarm's end", 20)
        self.screen.wait_for("steady", "the session")
        self.longwire.end_daemon()
        self.screen.wait_for("no answer", "the alarm")
        self.screen.press("q")
        start = time.monotonic()
        self.assertEqual(0, self.screen.end())
        self.assertLess(time.monotonic() - start, 5)
        self.assertTrue(self.screen.is_restored())

    def test_nobody_is_at_the_terminal_any_more(self):
        os.close(self.screen.master)
        self.screen.process.wait(30)
        self.screen.master = os.open("/dev/null", os.O_RDWR)


class OnceTest(TopCase):
    def test_text(self):
        self.start()
        result = self.longwire.cli("top", "--once", "--interval", "0.5")
        self.assertEqual((0, ""), (result.code, result.err))
        self.assertIn("steady.static", result.out)
        self.assertIn("n/a: NVIDIA's management library (NVML) does not tell it of this device",
                      result.out)
        self.assertNotIn("\x1b", result.out)

    def test_json(self):
        self.start()
        result = self.longwire.cli("top", "--once", "--json")
        self.assertEqual((0, ""), (result.code, result.err))
        picture = json.loads(result.out)
        session = picture["sessions"][0]
        self.assertEqual(self.number(), str(session["session"]))
        self.assertGreater(session["gpu_seconds_per_second"], 0)
        self.assertLess(session["gpu_seconds_per_second"], 1.05)
        self.assertGreater(session["bytes_up_per_second"], 0)
        self.assertGreaterEqual(session["memory"], 64 << 20)
        self.assertIsNotNone(session["round_trips_per_second"])
        self.assertAlmostEqual(1, picture["interval_seconds"], delta=0.9)
        self.assertIsNone(picture["devices"][0]["power_watts"])
        self.assertGreater(picture["tenants"][0]["gpu_seconds_per_second"], 0)

    def test_over_the_network(self):
        self.start()
        result = self.longwire.cli("top", "--once", "--json", "--server", self.longwire.address)
        self.assertEqual(0, result.code, result.err)
        self.assertEqual(1, len(json.loads(result.out)["sessions"]))

    def test_without_a_server(self):
        self.longwire.end_daemon()
        for words in ((), ("--once",)):
            top = self.top(*words)
            self.assertEqual(1, top.end())
            self.assertIn("longwire top: no server", top.text())
            self.assertTrue(top.is_restored())

    def test_without_a_terminal(self):
        result = self.longwire.cli("top")
        self.assertEqual((2, ""), result[:2])
        self.assertIn("this is no terminal; --once prints one picture", result.err)
        top = self.top(TERM="no-such-terminal")
        self.assertEqual(1, top.end())
        self.assertIn("the terminal 'no-such-terminal' is not known; set TERM", top.text())


if __name__ == "__main__":
    unittest.main()
