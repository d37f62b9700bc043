"""What sessions have used: a record of each that ends, and longwire usage, which sums them up."""
import datetime
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import proxy
import server
import tenants

FIELDS = ["session", "identity", "tenant", "program", "program_id", "host", "pid", "devices",
          "opened", "ended", "gpu_seconds", "memory_byte_hours", "memory_estimated",
          "bytes_up", "bytes_down", "calls", "code", "reason"]


class UsageServer(tenants.TenantServer):
    """Records are in its folder, or in a folder of it that is not there."""
    below = ""

    def configure(self, blocks, settings=None):
        self.usage = self.runtime / self.below / "usage.jsonl"
        super().configure(blocks, {"resume_grace": "1s", **(settings or {}),
                                   "usage": {"file": str(self.usage), "size": "64KiB"}})

    def records(self):
        if not self.usage.exists():
            return []
        return [json.loads(line) for line in self.usage.read_text().splitlines()]


def utc(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class UsageCase(unittest.TestCase):
    server_class = UsageServer

    def setUp(self):
        blocks = {"operator": {"admin": True}, "research": {}, "batch": {}}
        self.longwire = self.enterContext(self.server_class(blocks))

    def start(self, tenant, mode="hold", address=None):
        process = subprocess.Popen(
            self.longwire.command(self.longwire.program("steady.static"), mode, server=address),
            env=self.longwire.environment_of(tenant), stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual("READY\n", server.next_line(process), self.longwire.log_tail())
        return process

    def session(self, tenant):
        return next(session for session in self.longwire.status_as("operator")["sessions"]
                    if session["tenant"] == tenant)

    def record(self, seconds=20):
        """The only one, once it is there."""
        server.wait_for(lambda: self.longwire.records(), seconds, "a record of usage")
        records = self.longwire.records()
        self.assertEqual(1, len(records), records)
        self.assertEqual(FIELDS, list(records[0]))
        return records[0]

    def usage(self, *words):
        result = self.longwire.cli("usage", "--file", str(self.longwire.usage), *words)
        self.assertEqual((0, ""), (result.code, result.err))
        return result.out

    def sums(self, *words):
        return json.loads(self.usage("--json", *words))


class RecordTest(UsageCase):
    def test_the_figures_of_a_known_program(self):
        before = time.time()
        process = self.start("research")
        held = time.time()
        at_first = self.session("research")
        time.sleep(3)
        at_last = self.session("research")
        self.assertEqual(at_first["leased"], at_last["leased"])
        self.assertGreaterEqual(at_last["leased"], 64 << 20)
        released = time.time()
        process.kill()
        record = self.record()
        after = time.time()
        self.assertEqual((at_last["id"], "research", "research", os.uname().nodename, [0]),
                         tuple(record[name] for name in
                               ("session", "identity", "tenant", "host", "devices")))
        self.assertTrue(record["program"].endswith("steady.static"), record)
        self.assertEqual(process.pid, record["pid"])
        opened, ended = utc(record["opened"]), utc(record["ended"])
        self.assertTrue(before - 0.01 <= opened <= held and
                        released - 0.01 <= ended <= after, record)
        # Its memory does not change from `held` on, and it had no more before.
        hours = record["memory_byte_hours"] * 3600 / at_last["leased"]
        self.assertLessEqual(released - held, hours + 0.01, record)
        self.assertLessEqual(hours, ended - opened + 0.01, record)
        self.assertFalse(record["memory_estimated"])
        gpu = at_last["seats"][0]["gpu_seconds"]
        self.assertGreater(gpu, 0)
        self.assertTrue(gpu <= record["gpu_seconds"] <= gpu + after - released, (gpu, record))
        self.assertGreater(record["calls"], at_first["calls"])
        self.assertGreaterEqual(record["calls"], at_last["calls"])
        for name in ("bytes_up", "bytes_down"):
            self.assertGreaterEqual(record[name], at_last[name], name)
            self.assertLess(record[name], at_last[name] + (1 << 20), name)

    def test_a_program_that_ends_by_itself(self):
        result = self.longwire.run_as("research", self.longwire.program("steady.static"), "1")
        self.assertEqual(0, result.code, result.err)
        record = self.record()
        self.assertEqual(0, record["code"])
        # Its link may have gone by then, for it had no other program.
        self.assertIn(record["reason"],
                      ("its program ended", "its program and its link have ended"))
        self.assertGreater(record["memory_byte_hours"], 0)

    def test_the_log_has_it_too(self):
        self.start("research").kill()
        record = self.record()
        server.wait_for(lambda: "s of GPU time and" in self.longwire.log_tail(), 10, "the log")
        self.assertIn(f"session {record['session']}: has used {record['gpu_seconds']:.6f} s of GPU",
                      self.longwire.log_tail())

    def test_a_running_session_has_none(self):
        self.start("research")
        time.sleep(1.5)
        self.assertEqual([], self.longwire.records())


class ReasonTest(UsageCase):
    def admin(self, *words):
        result = self.longwire.cli("admin", *words)
        self.assertEqual(0, result.code, result.err)

    def expect(self, reason, code=719):
        record = self.record()
        self.assertEqual((code, reason), (record["code"], record["reason"]))

    def test_killed(self):
        self.start("research")
        self.admin("kill", str(self.session("research")["id"]))
        self.expect("the server's administrator ended this session")
        for who, seen in (("operator", 1), ("research", 1), ("batch", 0)):
            ended = self.longwire.status_as(who).get("ended", [])
            self.assertEqual(seen, len(ended), who)
            for one in ended:
                self.assertEqual("the server's administrator ended this session", one["reason"])

    def test_evicted(self):
        self.start("research")
        self.admin("evict", "research")
        self.expect("the server's administrator ended all sessions of the tenant 'research'")

    def test_its_worker_died(self):
        self.start("research")
        os.kill(self.session("research")["worker_pid"], signal.SIGKILL)
        record = self.record()
        self.assertEqual(719, record["code"])
        self.assertIn("signal 9", record["reason"])
        self.assertGreater(record["gpu_seconds"], 0)

    def test_its_connection_broke(self):
        wire = proxy.Proxy(self.longwire.port)
        self.addCleanup(wire.close)
        self.start("research", address=wire.address)
        wire.listener.close()
        with wire.cut_again_and_again():  # one more was accepted perhaps
            self.expect("its connection broke")

    def test_the_server_was_shut_down(self):
        self.start("research")
        self.longwire.children["longwired"].send_signal(signal.SIGINT)
        self.expect("the server shuts down")

    def test_a_session_that_outlasts_its_daemon_has_one_record(self):
        process = self.start("research")
        number = self.session("research")["id"]
        self.longwire.end_daemon()
        self.longwire.start_daemon()
        server.wait_for(lambda: self.longwire.status_as("operator")["sessions"], 20, "the session")
        self.assertEqual([], self.longwire.records())
        opened = time.time() - self.session("research")["seconds"]
        process.kill()
        record = self.record()
        self.assertEqual(number, record["session"])
        self.assertAlmostEqual(opened, utc(record["opened"]), delta=2)
        self.assertGreater(record["memory_byte_hours"], 0)

    def test_a_session_that_ended_without_a_daemon(self):
        self.start("research")
        worker = self.session("research")["worker_pid"]
        self.longwire.end_daemon()
        os.kill(worker, signal.SIGKILL)
        server.wait_for(lambda: not server.is_alive(worker), 10, "the worker's end")
        self.longwire.start_daemon()
        record = self.record()
        self.assertIn("ended while there was no longwired", record["reason"])
        self.assertIsNone(record["gpu_seconds"])
        self.assertIn("sessions that ended while there was no longwired: 1", self.usage())
        self.assertEqual(1, self.sums()["total"]["sessions_unknown"])


class SumsTest(UsageCase):
    def test_sums_are_those_of_the_records(self):
        for tenant in ("research", "batch", "research"):
            result = self.longwire.run_as(tenant, self.longwire.program("vector_add.static"))
            self.assertEqual(0, result.code, result.err)
        server.wait_for(lambda: len(self.longwire.records()) == 3, 20, "the records")
        records = self.longwire.records()
        for by in ("tenant", "identity", "program"):
            sums = self.sums("--by", by)
            self.assertEqual(0, sums["damaged_lines"])
            self.assertEqual(3, sums["total"]["sessions"])
            names = {record[by] for record in records}
            self.assertEqual(sorted(names), [group[by] for group in sums["groups"]])
            for group in sums["groups"]:
                own = [record for record in records if record[by] == group[by]]
                self.assertEqual(len(own), group["sessions"])
                for name in ("gpu_seconds", "memory_byte_hours", "bytes_up", "bytes_down", "calls"):
                    self.assertAlmostEqual(sum(record[name] for record in own), group[name], 4,
                                           name)
        text = self.usage().splitlines()
        self.assertRegex(text[0], "^TENANT +SESSIONS +GPU TIME")
        self.assertRegex(text[1], "^batch +1 ")
        self.assertRegex(text[2], "^research +2 ")
        self.assertRegex(text[3], r"^\(all\) +3 ")
        self.assertEqual(4, len(text), text)

    def test_a_span_of_time(self):
        self.longwire.run_as("research", self.longwire.program("vector_add.static"))
        ended = self.record()["ended"]
        for words, sessions in ((("--since", ended), 1), (("--until", ended), 0),
                                (("--since", "1h"), 1), (("--until", "1h"), 0),
                                (("--since", "2020-01-01", "--until", "2021-01-01T00:00"), 0)):
            self.assertEqual(sessions, self.sums(*words)["total"]["sessions"], words)

    def test_damaged_lines_are_counted_and_said(self):
        self.longwire.run_as("research", self.longwire.program("vector_add.static"))
        self.record()
        with open(self.longwire.usage, "ab") as file:
            file.write(b'{"session":1,"identity":"a"\n\x00\xff\n{}\n' + b"x" * 200000 + b"\n{\"cut")
        sums = self.sums()
        self.assertEqual((6, 5, 1),
                         (sums["lines"], sums["damaged_lines"], sums["total"]["sessions"]))
        self.assertIn("damaged lines: 5; what they told is not in the sums", self.usage())
        # The next record is whole all the same.
        self.longwire.run_as("research", self.longwire.program("vector_add.static"))
        server.wait_for(lambda: self.sums()["total"]["sessions"] == 2, 20, "the next record")
        self.assertEqual(5, self.sums()["damaged_lines"])

    def test_a_file_that_is_not_there(self):
        result = self.longwire.cli("usage", "--file", "/nonexistent/usage.jsonl")
        self.assertEqual((1, ""), result[:2])
        self.assertIn("longwire usage: there are no records: /nonexistent/usage.jsonl is not there",
                      result.err)


class DefaultTest(unittest.TestCase):
    def run_on(self, **variables):
        with server.Server(variables=variables) as longwire:
            self.assertEqual(0, longwire.run("vector_add.static").code)
            server.wait_for(lambda: "has used" in longwire.log_tail(), 20, "the record in the log")
            return list(longwire.runtime.glob("**/usage*"))

    def test_the_file_is_in_the_state_directory_of_systemd(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual([], self.run_on(STATE_DIRECTORY=folder))
            record = json.loads((pathlib.Path(folder) / "usage.jsonl").read_text())
            self.assertTrue(record["program"].endswith("vector_add.static"))

    def test_there_is_none_where_there_is_no_such_directory(self):
        self.assertEqual([], self.run_on())


class FullServer(UsageServer):
    below = "missing"


class NoRoomTest(UsageCase):
    server_class = FullServer

    def test_sessions_end_as_ever_and_the_log_says_what_is_missing(self):
        for _ in range(2):
            result = self.longwire.run_as("research", self.longwire.program("vector_add.static"))
            self.assertEqual(0, result.code, result.err)
        server.wait_for(lambda: self.longwire.log_tail(100).count("has used") == 2, 20, "the log")
        log = self.longwire.log_tail(100)
        self.assertEqual(1, log.count("records of usage are in this log only"), log)
        self.longwire.usage.parent.mkdir()
        self.longwire.run_as("research", self.longwire.program("vector_add.static"))
        server.wait_for(lambda: "it lacks 2 records of usage" in self.longwire.log_tail(100), 20,
                        "the end of the trouble")
        self.assertEqual(1, len(self.longwire.records()))


if __name__ == "__main__":
    unittest.main()
