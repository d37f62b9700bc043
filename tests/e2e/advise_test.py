"""kernel_statistics: and what comes of it: longwire top --kernels, longwire advise, rules explain
--running. Real programs with one fault each, and beside each the same without it."""
import contextlib
import datetime
import json
import subprocess
import unittest
import urllib.request

import server

SAMPLED = {"kernel_statistics": "sampled"}
INCREASE, LONE, CROWDED = "_Z8IncreasePii", "_Z4LonePi", "_Z7CrowdedPi"


@contextlib.contextmanager
def serving(**keys):
    with server.Server(config=json.dumps(keys)) as longwire:
        yield longwire


def told(test, result):
    test.assertEqual(0, result.code, result)
    return json.loads(result.out)


class AdviseTest(unittest.TestCase):
    def run_program(self, longwire, *words, local=False):
        result = longwire.run("advised.static", *words,
                              server=f"unix:{longwire.door}" if local else None)
        self.assertEqual(0, result.code, (result, longwire.log_tail()))
        server.wait_for(lambda: not longwire.status()["sessions"], 20, "the session's end")

    def kernels(self, longwire):
        picture = told(self, longwire.cli("top", "--kernels", "--once", "--json", "--server",
                                          f"unix:{longwire.door}"))
        self.assertTrue(picture["counted"])
        return {kernel["kernel"]: kernel for kernel in picture["kernels"]}

    def advice(self, longwire):
        seen = told(self, longwire.cli("advise", "advised*", "--json", "--server",
                                       f"unix:{longwire.door}"))
        [program] = seen["programs"]
        return {one["kind"]: one for one in program["advice"]}

    def advised(self, *words, local=False):
        with serving(**SAMPLED) as longwire:
            self.run_program(longwire, *words, local=local)
            return self.advice(longwire)

    def test_kernels_are_counted(self):
        with serving(**SAMPLED) as longwire:
            self.run_program(longwire, "tiny")
            self.run_program(longwire, "few")
            kernels = self.kernels(longwire)
            self.assertEqual({INCREASE, LONE}, set(kernels))
            self.assertEqual(80, kernels[INCREASE]["launches"])
            self.assertEqual(4040, kernels[LONE]["launches"])
            lone = kernels[LONE]
            # All of the first launches of each session are timed, and few of the others.
            self.assertGreaterEqual(lone["timed"], 16)
            self.assertLess(lone["timed"], 40)
            self.assertGreater(lone["median_nanoseconds"], 0)
            self.assertRegex(lone["module"], "^[0-9a-f]{64}$")
            self.assertEqual("1x1x1", lone["block"])
            # 32 blocks of one warp.
            self.assertEqual(("blocks", 0.5), (lone["limited_by"], lone["occupancy"]))
            text = longwire.cli("top", "--kernels", "--once", "--server", f"unix:{longwire.door}")
            self.assertIn(INCREASE, text.out)
            self.assertIn("OCCUPANCY", text.out)

    def test_launches_that_come_alone_tell_how_soon_they_began(self):
        with serving(**SAMPLED) as longwire:
            self.run_program(longwire, "waits")
            one = self.kernels(longwire)["_Z4LongPii"]
            self.assertEqual(300, one["launches"])
            self.assertGreater(one["mean_queueing_nanoseconds"], 0)
            self.assertGreaterEqual(one["mean_launch_to_start_nanoseconds"],
                                    one["mean_queueing_nanoseconds"])

    def test_nothing_is_counted_by_default(self):
        with serving() as longwire:
            self.run_program(longwire)
            result = longwire.cli("advise", "advised*", "--server", f"unix:{longwire.door}")
            self.assertEqual(1, result.code)
            self.assertIn("kernel_statistics: sampled", result.err)

    def test_a_reload_begins_and_ends_it(self):
        with serving() as longwire:
            process = subprocess.Popen(
                longwire.command(longwire.program("advised.static"), "ready", "few", "ready",
                                 "few"),
                env=longwire.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True)

            def go_on_with(config):
                self.assertEqual("READY\n", server.next_line(process))
                longwire.config_file.write_text(json.dumps(config))
                reloaded = longwire.cli("admin", "reload", "--server", f"unix:{longwire.door}")
                self.assertEqual(0, reloaded.code, reloaded)
                process.stdin.write("\n")
                process.stdin.flush()
            go_on_with(SAMPLED)
            go_on_with({})
            self.assertIn("PASS", process.communicate(timeout=60)[0])
            picture = told(self, longwire.cli("top", "--kernels", "--once", "--json", "--server",
                                              f"unix:{longwire.door}"))
            self.assertEqual([(LONE, 40)], [(one["kernel"], one["launches"])
                                            for one in picture["kernels"]])
            self.assertFalse(picture["counted"])

    def test_a_program_without_faults(self):
        self.assertEqual({}, self.advised("few", "beside", "pinned", "flows", local=True))

    def test_low_occupancy(self):
        advice = self.advised("low")
        self.assertEqual(["occupancy"], list(advice))
        one = advice["occupancy"]
        self.assertEqual(CROWDED, one["subject"])
        self.assertIn("limited by shared memory", one["seen"])
        # 6 or 7 blocks of 64 threads, of 2048.
        self.assertAlmostEqual(one["numbers"]["active_blocks"] * 64 / 2048,
                               one["numbers"]["occupancy"], 3)
        self.assertEqual(32768, one["numbers"]["shared_bytes"])
        self.assertEqual(2000, one["numbers"]["blocks"])
        self.assertEqual(100, one["rule"]["shared_memory"])

    def test_many_tiny_launches(self):
        advice = self.advised("tiny")
        self.assertEqual(["launches"], list(advice))
        self.assertEqual(4000, advice["launches"]["numbers"]["launches"])
        self.assertIsNone(advice["launches"]["rule"])

    def test_copies_that_are_not_pinned(self):
        advice = self.advised("pageable", local=True)
        self.assertEqual(["copies"], list(advice))
        self.assertEqual(40, advice["copies"]["numbers"]["copies"])
        self.assertEqual(20 << 20, advice["copies"]["numbers"]["bytes_up"])
        self.assertEqual(20 << 20, advice["copies"]["numbers"]["bytes_down"])

    def test_over_the_network_pinned_memory_would_change_nothing(self):
        self.assertEqual({}, self.advised("pageable"))

    def test_streams_that_wait_for_each_other(self):
        advice = self.advised("turns")
        self.assertEqual(["streams"], list(advice))
        self.assertGreaterEqual(advice["streams"]["numbers"]["turns"], 100)

    def test_a_wait_behind_each_launch(self):
        advice = self.advised("waits")
        self.assertEqual(["synchronizations"], list(advice))
        self.assertGreaterEqual(advice["synchronizations"]["numbers"]["late_launches"], 250)

    def test_advice_becomes_rules(self):
        with serving(**SAMPLED) as longwire:
            file = longwire.runtime / "rules.yaml"
            file.write_text("# Mine.\nkernel_statistics: sampled\nrules:\n"
                            "  # It stays.\n  - name: mine\n    validate: true\n")
            self.run_program(longwire, "few")

            def apply():
                return longwire.cli("advise", "advised*", "--server", f"unix:{longwire.door}",
                                    "--apply", str(file))
            before = file.read_text()
            nothing = apply()
            self.assertEqual(1, nothing.code, nothing)
            self.assertIn("nothing applies", nothing.err)
            self.assertEqual(before, file.read_text())
            self.run_program(longwire, "low")
            done = apply()
            self.assertEqual(0, done.code, done)
            self.assertIn(f'+    kernel: "{CROWDED}"', done.out)
            self.assertIn("+    launch: {shared_memory: 100}", done.out)
            self.assertNotIn("grid", file.read_text())
            self.assertLess(file.read_text().index("advised-1"), file.read_text().index("mine"))
            self.assertIn("# It stays.", file.read_text())
            checked = longwire.cli("rules", "check", str(file))
            self.assertEqual(0, checked.code, checked)
            again = apply()
            self.assertEqual(1, again.code, again)  # it is there
            longwire.config_file.write_text(file.read_text())
            reloaded = longwire.cli("admin", "reload", "--server", f"unix:{longwire.door}")
            self.assertEqual(0, reloaded.code, reloaded)
            self.run_program(longwire, "low")
            [tenant] = told(self, longwire.cli(
                "rules", "explain", "advised.static", "--running", "--json", "--server",
                f"unix:{longwire.door}"))["tenants"]
            used = {rule["rule"]: rule["used"]["launches"] for rule in tenant["rules"]}
            self.assertEqual({"'advised-1'": 12, "'mine'": 52}, used)

    def test_rules_are_counted_without_statistics(self):
        rules = [{"name": "no-lone", "kernel": LONE, "deny": "cuLaunchKernel"},
                 {"name": "level", "jit": {"optimization": 2}},
                 {"name": "elsewhere", "kernel": "nobody*", "validate": True}]
        with serving(rules=rules) as longwire:
            result = longwire.run("advised.static", "few")
            self.assertNotEqual(0, result.code)
            server.wait_for(lambda: not longwire.status()["sessions"], 20, "the session's end")
            explained = longwire.cli("rules", "explain", "advised.static", "--running",
                                     "--server", f"unix:{longwire.door}")
            self.assertIn("rule 'no-lone' (kernels _Z4LonePi)\n    deny: cuLaunchKernel\n"
                          "    used for: 40 launches, 0 modules and other calls", explained.out)
            self.assertRegex(explained.out, "rule 'level'\n    jit: level 2\n"
                                            "    used for: 0 launches, [1-9]")
            self.assertIn("validate: addresses are checked\n    used for: 0 launches, 0",
                          explained.out)

    def test_a_drift_over_days(self):
        with server.Server() as longwire:
            history = longwire.runtime / "kernels.tsv"
            longwire.end_daemon()
            longwire.config_file.write_text(json.dumps({**SAMPLED, "metrics": (
                f"127.0.0.1:{server.free_port()}"), "kernel_history": str(history)}))
            longwire.start_daemon()
            for _ in range(2):
                self.run_program(longwire, "few")
            self.assertEqual({}, self.advice(longwire))
            longwire.end_daemon()
            today = int(datetime.datetime.now().timestamp()) // 86400
            lines = [line.split("\t") for line in history.read_text().splitlines()]
            self.assertEqual({str(today)}, {line[0] for line in lines})
            [lone] = [line for line in lines if line[4] == LONE]
            # It was ten times as fast on the days before.
            with open(history, "a") as file:
                for day in range(1, 5):
                    file.write("\t".join([str(today - day), *lone[1:9],
                                          str(max(1, int(lone[9]) // 10)), lone[10]]) + "\n")
            longwire.start_daemon()
            self.run_program(longwire, "few")
            advice = self.advice(longwire)
            self.assertEqual(["drift"], list(advice))
            self.assertEqual(LONE, advice["drift"]["subject"])
            self.assertGreater(advice["drift"]["numbers"]["ratio"], 2)
            self.assertEqual(4, advice["drift"]["numbers"]["days"])
            port = json.loads(longwire.config_file.read_text())["metrics"]
            page = urllib.request.urlopen(f"http://{port}/metrics", timeout=30).read().decode()
            self.assertRegex(page, rf'longwire_kernel_time_drift_ratio{{[^}}]*kernel="{LONE}"')


if __name__ == "__main__":
    unittest.main()
