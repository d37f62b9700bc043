"""A wire that carries nothing any more, and tells nobody: both sides notice within 15 seconds and
say so, the session is resumed over a new connection, and both logs say that too."""
import re
import time
import unittest

import server
from proxy import Proxy

LIMIT = 15  # seconds


class SilenceTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(server.Server(config="resume_grace: 60s\n"))
        self.proxy = Proxy(self.longwire.port)
        self.addCleanup(self.proxy.close)
        # The program's own link, with a log.
        self.link_log = self.longwire.runtime / "link.log"
        self.link = self.longwire.runtime / "link"
        self.link.write_text(f'#!/bin/sh\nexec {self.longwire.dist}/bin/longwire-link "$@" '
                             f"--log {self.link_log}\n")
        self.link.chmod(0o755)

    def start(self, name, *arguments):
        return self.longwire.start(name, *arguments, server=self.proxy.address,
                                   LONGWIRE_LINK=self.link)

    def logs(self):
        return {"link": self.link_log.read_text(), "daemon": self.longwire.log.read_text()}

    def await_words(self, words, since):
        """Seconds until each side's log has its words of both sessions."""
        found = {}
        while len(found) < len(words):
            self.assertLess(time.monotonic() - since, 3 * LIMIT, (found, self.logs()))
            for side, text in self.logs().items():
                sessions = re.findall(rf"session (\d+): {words[side]}", text)
                if side not in found and len(set(sessions)) == 2:
                    found[side] = time.monotonic() - since
            time.sleep(0.05)
        return found

    def test_both_sides_notice_and_go_on(self):
        """With calls under way, and without any."""
        idle, busy = self.start("hold_session.static"), self.start("steady.static", "20")
        self.addCleanup(idle.communicate)
        self.addCleanup(idle.kill)
        since = time.monotonic()
        self.proxy.fall_silent()
        noticed = self.await_words({"link": "connection lost", "daemon": "its connection broke"},
                                   since)
        self.assertLess(max(noticed.values()), LIMIT, (noticed, self.logs()))
        words = r"resumed after \d+\.\d s without a connection"
        self.await_words({"link": words, "daemon": words}, since)
        self.assertIsNone(idle.poll())
        out, err = busy.communicate(timeout=60)
        self.assertEqual((0, "PASS steady\n"), (busy.returncode, out), err)


if __name__ == "__main__":
    unittest.main()
