"""Reloading the configuration while sessions run: what is good comes into force, what is bad
changes nothing, and everybody who asked hears why."""
import os
import pathlib
import re
import signal
import unittest

import server


class ReloadTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(server.Server(config="resume_grace: 2s\n"))
        self.daemon = self.longwire.children["longwired"]

    def write(self, text):
        """The daemon's file, replaced at once as an editor does it."""
        later = self.longwire.config_file.with_suffix(".new")
        later.write_text(text)
        os.replace(later, self.longwire.config_file)

    def log(self):
        return self.longwire.log.read_text(errors="replace")

    def hang_up(self):
        """SIGHUP; what the log says about it."""
        before = len(self.log())
        self.daemon.send_signal(signal.SIGHUP)

        def said():
            # The last line; the sentences stand before it.
            return re.search(r"configuration read again for SIGHUP.*\n", self.log()[before:])
        server.wait_for(said, 20, "the daemon's word about the reload")
        self.answers()
        return self.log()[before:]

    def answers(self):
        """The daemon lives and reports its sessions."""
        self.assertIsNone(self.daemon.poll(), self.longwire.log_tail())
        return self.longwire.status()["sessions"]

    def refused_because_full(self):
        result = self.longwire.run("vector_add.static")
        return result.code != 0 and "max_sessions allows" in result.err

    def test_a_good_file_comes_into_force_and_sessions_go_on(self):
        program = self.longwire.start("steady.static", "hold")
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        before = self.answers()
        self.assertEqual(1, len(before))
        self.write("resume_grace: 2s\nmax_sessions: 1\nlog_level: debug\n")
        log = self.hang_up()
        self.assertIn("max_sessions: '256' becomes '1'", log)
        self.assertIn("log_level: 'info' becomes 'debug'", log)
        self.assertTrue(self.refused_because_full())
        after = self.answers()
        self.assertEqual([(one["id"], one["worker_pid"]) for one in before],
                         [(one["id"], one["worker_pid"]) for one in after])
        self.write("")
        self.assertIn("max_sessions: '1' becomes '256'", self.hang_up())
        self.assertEqual(0, self.longwire.run("vector_add.static").code)
        self.assertIsNone(program.poll())

    def test_a_bad_file_changes_nothing_and_every_mistake_is_told(self):
        file = self.longwire.config_file
        self.write("max_sessions: 1\nlisten: 127.0.0.1\ntenants:\n  - nam: a\n")
        log = self.hang_up()
        self.assertIn("refused: all stays as it was", log)
        self.assertIn(f"{file}:2:9: listen: expected host:port", log)
        self.assertIn(f"{file}:4:5: unknown key 'nam' in tenants; did you mean 'name'?", log)
        self.assertIn(f"{file}:4:5: tenants: 'name' is missing", log)
        first = self.longwire.start("steady.static", "hold")
        self.addCleanup(first.communicate)
        self.addCleanup(first.kill)
        result = self.longwire.run("vector_add.static")
        self.assertEqual(0, result.code, result.err)

    def test_what_is_read_at_the_start_only_is_refused_with_all_else(self):
        self.write("max_sessions: 1\nsoftware_device:\n  memory: 64MiB\n")
        log = self.hang_up()
        self.assertIn(f"{self.longwire.config_file}:3:11: software_device.memory: expected "
                      "nothing as long as longwired runs, found '64MiB'", log)
        self.assertNotIn("becomes", log)

    def test_the_command_line_wins_at_a_reload_too(self):
        self.write("listen: 127.0.0.1:1\nwarm_workers: 7\ndriver: auto\n")
        self.assertIn("resume_grace: '2s' becomes '30s'", self.hang_up())

    def test_a_file_that_is_gone(self):
        self.longwire.config_file.unlink()
        self.assertIn("cannot be read: No such file", self.hang_up())
        self.write("max_sessions: 3\n")
        self.assertIn("max_sessions: '256' becomes '3'", self.hang_up())


    def test_whoever_asks_hears_what_became_of_it(self):
        """Over the network and beside the door: both are answered, for good files and bad ones."""
        for number, server_name in enumerate((self.longwire.address, f"unix:{self.longwire.door}",
                                              None)):
            words = ("admin", "reload", *(("--server", server_name) if server_name else ()))
            self.write(f"max_sessions: {number + 10}\n")
            good = self.longwire.cli(*words)
            self.assertEqual((0, ""), (good.code, good.err), server_name)
            self.assertIn(f"becomes '{number + 10}'\n", good.out)
            self.write("max_sessions: many\nlisten: [\n")
            bad = self.longwire.cli(*words)
            self.assertEqual((1, ""), (bad.code, bad.out), server_name)
            self.assertIn("not reloaded\n", bad.err)
            self.assertIn(f"{self.longwire.config_file}:3:1: expected YAML", bad.err)
        nobody = self.longwire.cli("admin", "reload", "--server", "unix:/nonexistent/door")
        self.assertEqual(1, nobody.code)
        self.assertIn("no longwired answers at /nonexistent/control", nobody.err)


class StartTest(unittest.TestCase):
    """What longwired and longwire config say before anything runs."""

    def command(self, *words):
        folder = server.build_folder() / "dist" / "bin"
        return server.run([folder / words[0], *words[1:]], dict(os.environ))

    def test_the_daemon_does_not_start_with_a_bad_file(self):
        bad = pathlib.Path(__file__).parents[1] / "config" / "testdata" / "06-key-twice.yaml"
        result = self.command("longwired", "--config", bad)
        self.assertEqual((2, ""), (result.code, result.out))
        self.assertEqual(f"{bad}:3:1: 'listen' stands here a second time; expected it once (the "
                         "first is in line 1)\n", result.err)
        checked = self.command("longwire", "config", "check", bad)
        self.assertEqual((1, "", result.err), checked[:3])

    def test_the_default_file_is_good_and_says_the_defaults(self):
        file = pathlib.Path(__file__).parents[2] / "deploy" / "longwired.yaml"
        self.assertEqual(0, self.command("longwire", "config", "check", file).code)
        self.assertEqual(file.read_text(), self.command("longwire", "config", "default").out)
        shown = self.command("longwire", "config", "show", "--effective", file)
        self.assertIn("max_sessions: 256\nresume_grace: 30s\n", shown.out)
        self.assertEqual("", self.command("longwire", "config", "show", file).out)

    def test_words_that_mean_nothing(self):
        for words in ((), ("frob",), ("check", "a", "b"), ("show", "--all")):
            self.assertEqual(2, self.command("longwire", "config", *words).code, words)


if __name__ == "__main__":
    unittest.main()
