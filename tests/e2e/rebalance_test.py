"""A session that fits on no device gets room by best-effort sessions that move to others
(`rebalance`): their programs compute everything a second time on the host, count their kernels,
and notice nothing."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import scrape
import server
import tenants

MIB = 1 << 20
DEVICE = 512 * MIB
WHOLE = "480MiB"  # no other session fits beside it
CLIENT = pathlib.Path(__file__).with_name("memory_client.py")
SEED = int(os.environ.get("LONGWIRE_SEED", "0")) or random.randrange(1 << 30)


class RebalanceTest(unittest.TestCase):
    def serve(self, devices=2, rebalance=True):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="longwire-usage-"))
        self.usage = pathlib.Path(folder) / "usage.jsonl"
        self.metrics = f"127.0.0.1:{server.free_port()}"
        self.longwire = self.enterContext(tenants.TenantServer(
            {"batch": {}, "large": {}, "serving": {"priority": "latency_critical"},
             "small": {"memory": "256MiB"}, "pairs": {"devices": 2}, "admin": {"admin": True}},
            {"placement": "spread", "rebalance": rebalance, "memory": {"prepared": "0"},
             "software_device": {"count": devices}, "metrics": self.metrics,
             "usage": {"file": str(self.usage)}},
            software_devices=devices, software_memory=DEVICE, warm_workers=0))
        return self.longwire

    def popen(self, tenant, *words, **variables):
        process = subprocess.Popen(
            self.longwire.command(*words),
            env=self.longwire.environment_of(tenant, PYTHONDONTWRITEBYTECODE=1, **variables),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def ready(self, process):
        line = server.next_line(process)
        if line != "READY\n":
            process.kill()
            self.fail((line, process.communicate(), self.longwire.log_tail()))
        return process

    def training(self, tenant="batch"):
        return self.ready(self.popen(
            tenant, self.longwire.program("counted_training.static"), "stdin"))

    def client(self, tenant, **variables):
        return self.popen(tenant, sys.executable, str(CLIENT), **variables)

    def say(self, process, *words):
        process.stdin.write(" ".join(map(str, words)) + "\n")
        process.stdin.flush()
        return server.next_line(process).strip()

    def large(self, memory=WHOLE, **variables):
        return self.client("large", LONGWIRE_MEMORY=memory, **variables)

    def refused(self, process):
        out, err = process.communicate(timeout=120)
        self.assertNotEqual(0, process.returncode, out)
        return err

    def where(self, tenant=None):
        """The devices of each session of the tenant, by its program's process."""
        return {one["client_pid"]: [seat.get("device", 0) for seat in one["seats"]]
                for one in self.longwire.status_as("admin")["sessions"]
                if tenant in (None, one["tenant"])}

    def all_end(self, programs):
        """Each has found every value and every count as it computed them."""
        for program in programs:
            out, err = program.communicate(timeout=60)
            self.assertEqual((0, ""), (program.returncode, err), (out, self.longwire.log_tail()))
            self.assertRegex(out, r"RESULT [0-9a-f]{8} of \d+ steps, \d+ launches")

    def log(self):
        return self.longwire.log.read_text()

    def test_four_programs_leave_a_device_to_a_large_one(self):
        self.serve()
        programs = [self.training() for _ in range(4)]
        before = self.where("batch")
        self.assertEqual([[0], [0], [1], [1]], sorted(before.values()))
        large = self.ready(self.large())
        self.assertEqual("done", self.say(large, "alloc", 440), self.longwire.log_tail())
        [[its]] = self.where("large").values()
        self.assertEqual({pid: [1 - its] for pid in before}, self.where("batch"))
        why = (f"to make room for a session of 'large' of the tenant 'large' ("
               f"{os.path.realpath(sys.executable)}), which asks for 1 device with 0.5 GiB free")
        self.assertEqual(2, self.log().count(f" meanwhile, {why}"), self.log())
        self.assertIn(f"moved 2 sessions {why}", self.log())
        seen = scrape.Scrape(self.metrics)
        self.assertEqual(2, seen.values['longwire_moves_total{kind="rebalance"}'])
        self.assertEqual(0, seen.values['longwire_moves_total{kind="device"}'])
        server.wait_for(lambda: self.usage.read_text().count(why) == 2, 10, "the usage records")
        time.sleep(0.5)
        self.all_end(programs)
        # What it has it keeps.
        self.assertEqual("done", self.say(large, "free"))
        self.assertEqual("done", self.say(large, "alloc", 440))

    def test_it_is_off_by_default(self):
        self.serve(rebalance=False)
        programs = [self.training() for _ in range(2)]
        before = self.where()
        self.assertIn("no device has that much", self.refused(self.large()))
        self.assertEqual(before, self.where())
        self.all_end(programs)

    def test_who_may_not_wait_is_not_moved(self):
        self.serve()
        programs = [self.training("serving"), self.training("serving")]
        before = self.where()
        self.assertIn("no device has that much", self.refused(self.large()))
        self.assertEqual(before, self.where())
        # A best-effort one beside them moves; the device with them has no room.
        programs.append(self.training())
        self.assertIn("no device has that much", self.refused(self.large()))
        self.assertEqual(before, self.where("serving"))
        self.all_end(programs)

    def test_nothing_moves_for_what_its_tenant_may_not_have(self):
        self.serve()
        programs = [self.training() for _ in range(2)]
        before = self.where()
        self.refused(self.client("small", LONGWIRE_MEMORY=WHOLE))
        self.refused(self.client("small", LONGWIRE_MEMORY="600MiB"))
        self.assertEqual(before, self.where())
        self.all_end(programs)

    def test_one_that_refuses_makes_another_plan(self):
        self.serve()
        stays = self.ready(self.client("batch"))
        self.assertEqual("done", self.say(stays, "alloc", 1))
        self.assertEqual("done", self.say(stays, "share"))
        self.assertEqual([[0]], list(self.where().values()))
        moves = self.ready(self.client("batch"))  # more to move, so that it is not the first choice
        self.assertEqual("done", self.say(moves, "alloc", 128))
        program = self.training("serving")
        large = self.ready(self.large("400MiB"))
        self.assertRegex(self.log(), r"session \d+ does not move: it has called lwShare")
        where = self.where()
        self.assertEqual([1], where[large.pid], (where, self.log()))
        self.assertEqual([0], where[stays.pid])
        self.all_end([program])

    def test_one_that_has_just_moved_stays(self):
        self.serve()
        program = self.training()
        [here] = self.where()[program.pid]
        other = self.ready(self.client("batch"))
        first = self.ready(self.large())
        [its] = self.where()[first.pid]
        first.kill()
        first.communicate()
        server.wait_for(lambda: first.pid not in self.where(), 20, "the end of the large one")
        # That device has a session that stays, the other one one that has just come.
        stays = self.ready(self.client("serving"))
        self.assertEqual([its], self.where()[stays.pid], here)
        before = self.where()
        self.assertIn("no device has that much", self.refused(self.large("450MiB")))
        self.assertEqual(before, self.where())
        self.assertEqual("done", self.say(other, "alloc", 1))
        self.all_end([program])

    def test_two_that_ask_at_once_both_get_in(self):
        self.serve(devices=3)
        programs = [self.training() for _ in range(3)]
        both = [self.large(), self.large()]
        for one in both:
            self.ready(one)
        where = self.where()
        self.assertNotEqual(where[both[0].pid], where[both[1].pid])
        self.assertEqual(1, len({tuple(where[one.pid]) for one in programs}), where)
        self.all_end(programs)

    def test_several_devices_at_once(self):
        self.serve(devices=3)
        programs = [self.training() for _ in range(3)]
        large = self.ready(self.client("pairs", LONGWIRE_MEMORY=WHOLE))
        where = self.where()
        self.assertEqual(2, len(where[large.pid]))
        self.assertEqual({tuple({0, 1, 2} - set(where[large.pid]))},
                         {tuple(where[one.pid]) for one in programs})
        self.all_end(programs)

    def test_those_that_were_moved_for_nobody_go_on(self):
        """The large one is killed at some moment: nothing is kept for it any more."""
        print(f"LONGWIRE_SEED={SEED}", file=sys.stderr)
        moments = random.Random(SEED)
        self.serve()
        programs = [self.training() for _ in range(3)]
        for _ in range(3):
            large = self.large()
            time.sleep(moments.random())
            os.kill(large.pid, signal.SIGKILL)
            large.communicate()
        server.wait_for(lambda: not self.where("large"), 60, "the end of the large ones")
        # Three sessions with all that there is but their own first leases.
        for _ in range(2):
            self.ready(self.client("batch", LONGWIRE_MEMORY="128MiB"))
        self.assertEqual(5, len(self.where("batch")))
        self.all_end(programs)


if __name__ == "__main__":
    unittest.main()
