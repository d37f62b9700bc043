"""What a scrape says of sessions that moved, of each kind, and of those that did not."""
import json
import tempfile
import time
import unittest

import scrape
import server
from two_servers import Step, TwoServers

KINDS = {"device", "server", "checkpoint", "restore", "rebalance"}


class MovingMetricsTest(TwoServers):
    def serve(self, moves_from=("any",), **there):
        """The second one takes sessions of those servers."""
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="longwire-kept-"))
        self.both, self.pages = [], []
        if moves_from:
            there["moves_from"] = list(moves_from)
        for more in ({"checkpoint_dir": f"{folder}/sessions"}, there):
            self.pages.append(f"127.0.0.1:{server.free_port()}")
            config = {"resume_grace": "20s", "metrics": self.pages[-1]}
            self.both.append(self.enterContext(server.Server(
                config=json.dumps({**config, **more}), software_devices=2)))
        return self.both

    def counts(self, number=0, **labels):
        """Of one server: all that is not 0, by family and the other labels."""
        seen = scrape.Scrape(self.pages[number])
        found = {}
        for name in ("longwire_moves_total", "longwire_moves_refused_total",
                     "longwire_moves_gone_back_total", "longwire_moves_lost_total"):
            family = seen.families[name]
            self.assertEqual(KINDS, {own["kind"] for own, _ in family.samples})
            for own, value in family.samples:
                if value and labels.items() <= own.items():
                    what = name.removeprefix("longwire_moves_").removesuffix("_total")
                    found[(what, own["kind"], own.get("reason", ""))] = value
        return found

    def expect_pause(self, kind, least, number=0):
        """Its moves have stood still, for longer than that, and have had memory."""
        seen = scrape.Scrape(self.pages[number])
        of = f'{{kind="{kind}"}}'
        done = seen.values["longwire_moves_total" + of]
        self.assertEqual(done, seen.values["longwire_move_pause_seconds_count" + of])
        self.assertGreater(seen.values["longwire_move_pause_seconds_sum" + of], least)
        self.assertLess(seen.values["longwire_move_pause_seconds_sum" + of], 60 * done)
        self.assertGreaterEqual(seen.values["longwire_moved_bytes_total" + of], done * 4096)
        buckets = [value for own, value in seen.families["longwire_move_pause_seconds"].samples
                   if own["kind"] == kind and "le" in own]
        self.assertEqual(sorted(buckets), buckets)
        self.assertEqual(done, buckets[-1])

    def test_each_kind(self):
        here, there = self.serve()
        program = self.start(here)
        self.assertEqual({}, self.counts())

        def does(*words):
            done = here.cli("admin", *map(str, words), timeout=60)
            self.assertEqual(0, done.code, (done, self.logs()))
        device = self.session(here)["seats"][0].get("device", 0)
        does("migrate", self.session(here)["id"], 1 - device)
        does("migrate", self.session(here)["id"], device)
        does("checkpoint", self.session(here)["id"], "one")
        does("restore", "one")
        self.expect_steps(program, here)  # its link has come back
        with Step(here, "held") as stop:
            move = self.begin(here, self.session(here)["id"], there.address)
            self.assertTrue(stop.reached(move), self.logs())
            time.sleep(1)
        self.assertEqual(0, move.wait(60), self.logs())
        self.assertEqual({("total", "device", ""): 2, ("total", "checkpoint", ""): 1,
                          ("total", "restore", ""): 1, ("total", "server", ""): 1}, self.counts())
        for kind, least in (("device", 0), ("checkpoint", 0), ("restore", 0), ("server", 1)):
            self.expect_pause(kind, least)
        self.assertEqual({}, self.counts(1))
        self.expect_right(program)

    def test_what_does_not_move(self):
        here, there = self.serve(moves_from=())
        program = self.start(here)
        local = self.start(here, server=f"unix:{here.door}")
        by_program = {one["client_pid"]: one["id"] for one in here.status()["sessions"]}
        for pid, place, reason in ((local.pid, "1", "session"), (program.pid, "7", "place"),
                                   (program.pid, there.address, "place")):
            before = self.counts()
            kind = "device" if place in ("1", "7") else "server"
            self.assertEqual(1, self.migrate(here, by_program[pid], place).code)
            key = ("refused", kind, reason)
            self.assertEqual({**before, key: before.get(key, 0) + 1}, self.counts())
        before = self.counts()
        self.assertEqual(1, self.migrate(here, 77, 1).code)  # there is none
        self.assertEqual(before, self.counts())
        self.expect_right(local)
        self.expect_right(program)

    def test_one_that_goes_back_and_one_that_is_lost(self):
        here, there = self.serve(resume_grace="8s")
        program = self.start(here)
        with Step(here, "held") as stop:
            move = self.begin(here, self.session(here)["id"], there.address)
            self.assertTrue(stop.reached(move), self.logs())
            self.restart(there)
        self.assertEqual(1, move.wait(60), self.logs())
        self.assertEqual({("gone_back", "server", ""): 1}, self.counts())
        with Step(here, "ended") as stop:
            move = self.begin(here, self.session(here)["id"], there.address)
            self.assertTrue(stop.reached(move), self.logs())
            self.restart(there)
        self.assertEqual(1, move.wait(60), self.logs())
        program.communicate(timeout=60)
        self.assertEqual({("gone_back", "server", ""): 1, ("lost", "server", ""): 1},
                         self.counts())


if __name__ == "__main__":
    unittest.main()
