"""What tools see through libnvidia-ml.so.1: the session's devices, without opening a session."""
import json
import pathlib
import subprocess
import sys
import unittest

import server
import tenants

CLIENT = pathlib.Path(__file__).resolve().parent / "nvml_client.py"
MIB = 1 << 20
NOT_LOADED, LOST = 9, 15


def command(longwire, *questions, **options):
    return longwire.command(sys.executable, CLIENT, *questions, **options)


def answers(result, longwire):
    if result.code != 0:
        raise AssertionError(f"{result}\n{longwire.log_tail()}")
    return [json.loads(line) for line in result.out.splitlines()]


def ask(longwire, *questions, server_address=None, **environment):
    return answers(server.run(command(longwire, *questions, server=server_address),
                              longwire.environment(**environment)), longwire)


class Tool:
    """A process that answers and then waits."""

    def __init__(self, test, words, environment):
        self.process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.process.communicate)
        test.addCleanup(self.process.kill)

    def answer(self):
        return json.loads(server.next_line(self.process))

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.answer()


class TwoDevicesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.longwire = cls.enterClassContext(server.Server(software_devices=2, warm_workers=0))

    def setUp(self):
        # The forecast of the next session's devices is right if no session comes or goes meanwhile.
        server.wait_for(lambda: len(self.longwire.status()["devices"]) == 2
                        and self.longwire.is_unused(), 10, "both devices, unused")

    def test_as_many_devices_as_a_session_gets_and_the_same(self):
        for count in (1, 2):
            with self.subTest(count):
                seen, used, again = ask(self.longwire, "uuids", "cuda", "uuids",
                                        LONGWIRE_DEVICES=count)
                self.assertEqual(count, len(seen))
                self.assertEqual(used, again)
                self.assertEqual(seen, again)

    def test_the_uuids_that_a_program_prints(self):
        program = self.longwire.run("visible_devices.static", LONGWIRE_DEVICES=2)
        printed = [line.split()[0] for line in program.out.splitlines() if line[:4] == "GPU-"]
        self.assertEqual([printed], ask(self.longwire, "uuids", LONGWIRE_DEVICES=2))

    def test_visible_devices_are_for_cuda_alone(self):
        seen, used = ask(self.longwire, "uuids", "cuda", LONGWIRE_DEVICES=2,
                         CUDA_VISIBLE_DEVICES="1")
        self.assertEqual(2, len(seen))
        self.assertEqual(seen[1:], used)

    def test_the_same_through_the_local_socket(self):
        door = f"unix:{self.longwire.door}"
        questions = ("uuids", "facts", "by_other_names")
        self.assertEqual(ask(self.longwire, *questions, LONGWIRE_DEVICES=2),
                         ask(self.longwire, *questions, LONGWIRE_DEVICES=2, server_address=door))

    def test_the_devices_of_the_session_that_the_program_has(self):
        # One session on each device in the end: the next one would get the first device again.
        holder = self.longwire.start("hold_session.static")
        self.addCleanup(holder.communicate)
        self.addCleanup(holder.kill)
        all_devices = ask(self.longwire, "uuids", LONGWIRE_DEVICES=2)[0]
        status = self.longwire.status()["sessions"]
        held = [seat["device"] for one in status for seat in one["seats"]]
        before, used, after = ask(self.longwire, "uuids", "cuda", "uuids")
        self.assertEqual([all_devices[1 - held[0]]], before)
        self.assertEqual(used, after)

    def test_a_child_uses_cuda_after_its_parent_used_nvml(self):
        before, child_before, cuda, child_after = ask(self.longwire, "forked")[0]
        self.assertEqual(before, child_before)
        self.assertEqual(cuda, child_after)
        self.assertEqual(1, len(cuda))

    def test_it_leaves_no_thread_and_no_descriptor_and_opens_no_session(self):
        opened = self.longwire.status()["sessions_opened"]
        before, _, after = ask(self.longwire, "threads", "memory", "threads")
        self.assertEqual(1, after[0])
        self.assertEqual(before, after)
        self.assertEqual(opened, self.longwire.status()["sessions_opened"])

    def test_processes_with_their_memory(self):
        holder = self.longwire.start("hold_session.static", LONGWIRE_DEVICES=2)
        self.addCleanup(holder.communicate)
        self.addCleanup(holder.kill)
        listed = ask(self.longwire, "processes", LONGWIRE_DEVICES=2)[0]
        for device in listed:
            entries = [entry for entry in device if entry[0] == holder.pid]
            self.assertEqual(1, len(entries), listed)
            self.assertGreaterEqual(entries[0][1], MIB)
            self.assertTrue(entries[0][2].endswith("hold_session.static"), listed)

    def test_facts(self):
        facts = ask(self.longwire, "facts")[0]
        self.assertIn("Software device", facts["name"])
        self.assertGreaterEqual(facts["capability"][0], 8)
        self.assertEqual(13000, facts["cuda"])
        self.assertRegex(facts["driver"], r"^\d+(\.\d+)+$")
        self.assertEqual("13." + facts["driver"], facts["nvml"])

    def test_devices_are_peers_as_cuda_says(self):
        good, (status, access) = 0, ask(self.longwire, "peers", LONGWIRE_DEVICES=2)[0]
        self.assertEqual([[0, 1], [1, 0]], access)
        self.assertEqual([[[good] * 3] * 2] * 2, status)

    def test_devices_by_their_other_names(self):
        self.assertEqual([0, 0, 0, 1, 1, 1],
                         ask(self.longwire, "by_other_names", LONGWIRE_DEVICES=2)[0])

    def test_what_is_not_there_has_its_code(self):
        self.assertEqual({"nvmlDeviceGetPowerUsage": 3, "nvmlDeviceGetFanSpeed": 3,
                          "nvmlDeviceGetMinorNumber": 3, "temperature": 3, "field": 3, "link": 3,
                          "uuid": 6, "index": 2, "handle": 2, "small": 7},
                         ask(self.longwire, "refusals")[0])

    def test_versions_of_structures_are_checked(self):
        code, memory = ask(self.longwire, "reserved")[0]
        self.assertEqual(25, code)
        self.assertEqual(memory["total"], memory["reserved"] + memory["free"] + memory["used"])

    def test_users_are_counted(self):
        self.assertEqual([0, 0, 0, 0, 0, 1, 1, 1], ask(self.longwire, "counted")[0])


class MemoryTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(tenants.TenantServer(
            {"small": {"memory": "100MiB"}, "large": {}}, warm_workers=0))

    def memory(self, tenant):
        result = server.run(command(self.longwire, "memory"), self.longwire.environment_of(tenant))
        return answers(result, self.longwire)[0][0]

    def hold(self, tenant, size):
        program = self.longwire.program("allocate.static")
        process = subprocess.Popen(
            self.longwire.command(program, str(size), "hold"), stdin=subprocess.PIPE,
            env=self.longwire.environment_of(tenant), stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        while server.next_line(process) != "READY\n":
            self.assertIsNone(process.poll(), self.longwire.log_tail())
        return process

    def test_a_tenant_sees_its_limit_and_what_is_left_of_it(self):
        self.assertEqual({"total": 100 * MIB, "free": 100 * MIB, "used": 0}, self.memory("small"))
        holder = self.hold("small", 90 * MIB)
        server.wait_for(lambda: self.memory("small")["free"] <= 10 * MIB, 10, "the allocation")
        holder.communicate("\n")
        server.wait_for(lambda: self.memory("small")["free"] == 100 * MIB, 10, "its end")

    def test_what_others_have_is_not_free_either(self):
        before = self.memory("large")
        self.assertGreater(before["total"], 100 * MIB)
        self.hold("large", 300 * MIB)
        server.wait_for(lambda: self.memory("large")["free"] <= before["free"] - 300 * MIB, 10,
                        "the allocation")
        self.assertEqual(100 * MIB, self.memory("small")["free"])

    def test_processes_of_other_tenants_are_not_shown(self):
        holder = self.hold("large", MIB)
        seen = {}
        for tenant in ("small", "large"):
            result = server.run(command(self.longwire, "processes"),
                                self.longwire.environment_of(tenant))
            seen[tenant] = [entry[0] for entry in answers(result, self.longwire)[0][0]]
        self.assertEqual({"small": [], "large": [holder.pid]}, seen)


class NoServerTest(unittest.TestCase):
    def setUp(self):
        self.longwire = self.enterContext(server.Server(warm_workers=0))

    def test_without_a_server_it_is_silent(self):
        library = self.longwire.dist / "lib" / "longwire"
        result = server.run([sys.executable, CLIENT, "initialised"],
                            self.longwire.environment(LD_LIBRARY_PATH=library))
        code, _, count = answers(result, self.longwire)[0]
        self.assertEqual((NOT_LOADED, 1, ""), (code, count, result.err))

    def test_a_server_that_does_not_answer_is_said_in_one_sentence(self):
        nobody = f"127.0.0.1:{server.free_port()}"
        result = server.run(command(self.longwire, "initialised", server=nobody),
                            self.longwire.environment())
        code, seconds, _ = answers(result, self.longwire)[0]
        self.assertEqual(NOT_LOADED, code)
        self.assertLess(seconds, 10)  # five, and what a loaded machine adds
        self.assertEqual(1, len(result.err.splitlines()), result.err)
        self.assertIn(nobody, result.err)

    def test_a_server_that_goes_away_is_a_lost_device(self):
        tool = Tool(self, command(self.longwire, "uuids", "wait", "lost"),
                    self.longwire.environment())
        self.assertEqual(1, len(tool.answer()))
        self.longwire.end_daemon()
        tool.go_on()
        self.assertEqual(LOST, tool.answer())

    def test_a_wish_for_more_than_there_is(self):
        result = server.run(command(self.longwire, "initialised"),
                            self.longwire.environment(LONGWIRE_DEVICES=3))
        self.assertEqual(NOT_LOADED, answers(result, self.longwire)[0][0])
        self.assertEqual(1, len(result.err.splitlines()), result.err)


if __name__ == "__main__":
    unittest.main()
