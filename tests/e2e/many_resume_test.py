"""A host with many sessions whose daemon is killed: how long until all have resumed.

many_resume_test.py [--sessions N]
"""
import argparse
import re
import sys
import threading
import time

import server

WITHIN = 5  # seconds from the new daemon's start; three times that where others work
AT_ONCE = 8  # programs that start at once
MEMORY = 32 << 30  # of the device; a page that nobody writes is none
# All of one user, who opens them one after the other.
CONFIG = "max_sessions: 1000\nadmission: {openings_per_second: 1000, openings_at_once: 1000}\n"


class Holders:
    """Programs that hold a session each."""

    def __init__(self, longwire, count):
        self.longwire = longwire
        self.left = count
        self.lock = threading.Lock()
        self.programs = []
        threads = [threading.Thread(target=self.start_some) for _ in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def start_some(self):
        while True:
            with self.lock:
                if self.left == 0:
                    return
                self.left -= 1
            program = self.longwire.start("hold_session.static", LONGWIRE_TRANSFER_STREAMS=1)
            with self.lock:
                self.programs.append(program)

    def running(self):
        return [program for program in self.programs if program.poll() is None]

    def end(self):
        for program in self.programs:
            program.kill()
            program.communicate()


def measure(count):
    with server.Server(config=CONFIG, software_memory=MEMORY) as longwire:
        holders = Holders(longwire, count)
        try:
            ids = {session["id"] for session in longwire.status()["sessions"]}
            assert len(ids) == count, f"{len(ids)} of {count} sessions: {longwire.log_tail()}"
            daemon = longwire.children.pop("longwired")
            daemon.kill()
            daemon.wait()
            logged = len(longwire.log.read_text())
            began = time.monotonic()
            longwire.start_daemon()
            ready = time.monotonic() - began

            def resumed():
                text = longwire.log.read_text()[logged:]
                return len(set(re.findall(r"session (\d+): resumed after", text))) == count
            server.wait_for(resumed, WITHIN, f"the sessions: {longwire.log_tail()}")
            everybody = time.monotonic() - began
            assert {session["id"] for session in longwire.status()["sessions"]} == ids
            assert len(holders.running()) == count, "a program ended"
        finally:
            holders.end()
    return ready, everybody


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=200)
    count = parser.parse_args().sessions
    ready, everybody = measure(count)
    print(f"{count} sessions: the new daemon serves after {ready:.2f} s, all have resumed after "
          f"{everybody:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
