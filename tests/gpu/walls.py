"""The walls between workers on a real GPU: the group walls of tests/gpu/run.

It says which walls stand, which system calls the driver makes (all of them, and those that are not
on the workers' list), that programs run behind the walls, what a start and a training cost there
beside what they cost without, and what an attacker in a worker's place reaches. What this host does
not give is said, and is no fault.
"""
import collections
import contextlib
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

import frameworks
import programs
import server

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "hostile"))
import attack  # noqa: E402

PROGRAMS = ("vector_add.static", "matmul.static", "device_printf.static", "graph_capture.static",
            "ipc_memory.static", "pinned_copies.static", "managed_memory.static",
            "async_allocation.static", "illegal_address.static", "failed_assert.static",
            "driver_ptx.driver", "driver_link.driver", "driver_fatbin.driver",
            "driver_green.driver", "texture_kernel.static", "device_reset.static")
TORCH = ("torch_matmul", "torch_training.cnn.fp32", "torch_training.transformer.bf16",
         "torch_parts.compile", "torch_parts.graphs")
TRAINING = "torch_training.cnn.fp32"
ROUNDS = 7
MOST_COST = 1.1
# A host need not have what these reach for.
NOT_THE_WALLS = {"host device memory"}
CGROUPS = pathlib.Path("/sys/fs/cgroup")
CALL = re.compile(r"system call (\d+) \((\w+), (\w+), (\w+)\) is not on the list")
NUMBERS = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
PROGRAM_SECONDS, TORCH_SECONDS = 60, 200


def cgroups():
    """Options with which workers get control groups, on a host with version 2 that lets us."""
    if not (CGROUPS / "cgroup.controllers").exists():
        return ()
    with contextlib.suppress(OSError):
        (CGROUPS / "cgroup.subtree_control").write_text("+memory +pids +cpu")
        return ("--worker-cgroups", str(CGROUPS / "longwire-walls"))
    return ()


class WalledServer(server.Server):
    def __init__(self, walls="separate", system_calls="enforce", **options):
        super().__init__(**options)
        self.walls, self.system_calls = walls, system_calls

    def _start(self, name, *arguments):
        more = ()
        if name == "longwire-warden":
            more = ("--walls", self.walls, "--system-calls", self.system_calls, *cgroups())
        super()._start(name, *arguments, *more)


def names_of_calls():
    try:
        text = pathlib.Path(NUMBERS).read_text()
    except OSError:
        return {}
    return {int(number): name for name, number in re.findall(r"__NR_(\w+)\s+(\d+)", text)}


class Check:
    def __init__(self, build, report, find_libraries):
        self.build, self.report = build, report
        self.libraries = find_libraries(build)
        self.faults = []
        self.torch = server.run([sys.executable, "-c", "import torch"], dict(os.environ),
                                TORCH_SECONDS).code == 0
        if not self.torch:
            report.row("torch is not here: no training")

    def say(self, text):
        self.report.row(text)

    def start(self, **options):
        return WalledServer(driver="auto", build=self.build, **options)

    def program(self, longwire, name, arguments=()):
        program = self.build / "tests" / "apps" / name
        if not program.exists():
            return
        result = server.run(longwire.command(program, *arguments),
                            longwire.environment(LD_LIBRARY_PATH=self.libraries),
                            PROGRAM_SECONDS)
        self.report.keep(name, longwire.system_calls, result)
        self.judge(name, programs.what_is_wrong(name.split(".")[0], result), result)

    def framework(self, longwire, framework):
        result = server.run(longwire.command(*frameworks.command(framework)),
                            longwire.environment(**frameworks.environment(framework)),
                            TORCH_SECONDS)
        self.report.keep(framework.label, longwire.system_calls, result)
        self.judge(framework.label, frameworks.what_is_wrong(framework, result), result)
        return result.seconds

    def judge(self, label, wrong, result):
        self.say(f"  {label:36} {result.seconds:8.2f} s  {'BAD ' + wrong if wrong else 'right'}")
        if wrong:
            self.faults.append(f"{label}: {wrong}")

    def run_all(self, longwire):
        for name in PROGRAMS:
            self.program(longwire, name)
        for framework in frameworks.FRAMEWORKS:
            if self.torch and framework.label in TORCH:
                self.framework(longwire, framework)

    def calls(self, longwire, label):
        """Tells of the calls in the server's log, with the arguments of the first one."""
        names = names_of_calls()
        found = {}
        for number, *arguments in CALL.findall(longwire.log.read_text(errors="replace")):
            found.setdefault(int(number), arguments)
        self.say(f"system calls {label}: {len(found)}")
        for number, arguments in sorted(found.items()):
            self.say(f"  {number:4} {names.get(number, ''):24} {' '.join(arguments)}")

    def learn(self, label, **variables):
        with self.start(system_calls="log", variables=variables) as longwire:
            with self.logs(longwire, f"walls-{'all' if variables else 'unlisted'}"):
                self.run_all(longwire)
                self.calls(longwire, label)

    @contextlib.contextmanager
    def logs(self, longwire, name):
        try:
            yield
        finally:
            text = longwire.log.read_text(errors="replace")
            (self.report.folder / f"{name}-server.log").write_text(text)

    def stand(self):
        with self.start() as longwire, self.logs(longwire, "walls-enforce"):
            for line in longwire.log.read_text(errors="replace").splitlines():
                if "walls between workers" in line or "NOT SEPARATED" in line:
                    self.say(line)
            self.run_all(longwire)
            self.cached(longwire)

    def cached(self, longwire):
        """What the driver keeps of its compiled code, and of whom it is on the disk."""
        kept = longwire.runtime / "cache" / "compiled" / "tenants"
        kinds = collections.Counter()
        for file in kept.rglob("*"):
            status = file.stat()
            kinds[f"{'folder' if file.is_dir() else 'file'} {status.st_mode & 0o7777:o} "
                  f"uid {status.st_uid}"] += 1
        self.say(f"compiled code is kept: {dict(kinds)}")

    def cost(self):
        """Of a start with a warm worker and of a training: behind walls and without, in turns."""
        figures = self.build / "dist" / "lib" / "longwire" / "bench" / "driver_figures"
        training = next(f for f in frameworks.FRAMEWORKS if f.label == TRAINING)
        starts = {"separate": [], "shared_uid": []}
        trainings = {"separate": [], "shared_uid": []}
        with self.start() as walled, \
                self.start(walls="shared_uid", system_calls="off") as plain:
            for turn in range(ROUNDS):
                for longwire in (walled, plain):
                    time.sleep(1.5)  # until a worker is warm again
                    result = server.run(longwire.command(figures, "start"),
                                        longwire.environment(), PROGRAM_SECONDS)
                    found = re.search(r"start_to_first_result\s+([0-9.]+)", result.out)
                    if found:
                        starts[longwire.walls].append(float(found[1]))
                    if self.torch and turn < 3:
                        trainings[longwire.walls].append(self.framework(longwire, training))
        self.ratio("start_to_first_result, ms", starts, slice(0, None))
        self.ratio(f"{TRAINING}, s", trainings, slice(1, None))  # the first fills caches

    def ratio(self, label, found, used):
        if not all(values[used] for values in found.values()):
            self.say(f"{label}: not measured")
            return
        walled, plain = (statistics.median(found[walls][used])
                         for walls in ("separate", "shared_uid"))
        self.say(f"{label}: {walled:.2f} behind walls, {plain:.2f} without: {walled / plain:.3f} "
                 f"({found})")
        if walled / plain > MOST_COST:
            self.faults.append(f"{label} costs {walled / plain:.3f} times as much behind walls")

    def attack(self):
        with tempfile.TemporaryDirectory(prefix="longwire-attack-") as folder:
            os.chmod(folder, 0o755)
            with attack.AttackedServer(folder, driver="auto", build=self.build,
                                       more=cgroups()) as longwire, \
                    self.logs(longwire, "walls-attack"):
                program = longwire.start("hold_session.static", LD_LIBRARY_PATH=self.libraries)
                with contextlib.ExitStack() as stack:
                    stack.callback(program.kill)
                    victim = longwire.status()["sessions"][0]["worker_pid"]
                    self.process(victim)
                    found = longwire.attack(victim)
        reached = sorted(name for name, good in found.items() if good)
        self.say(f"attempts of an attacker in a worker's place: {len(found)}, "
                 f"held {len(found) - len(reached)}; reached: {', '.join(reached) or 'nothing'}")
        if set(reached) - NOT_THE_WALLS:
            self.faults.append("the attacker reached " + ", ".join(reached))

    def process(self, pid):
        wanted = ("Uid", "Gid", "Groups", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "NSpid")
        status = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        self.say("a worker: " + "; ".join(line.replace("\t", " ") for line in status
                                          if line.split(":")[0] in wanted))
        for space in ("mnt", "pid", "ipc", "net", "uts", "user", "cgroup"):
            own, other = (os.readlink(f"/proc/{process}/ns/{space}") for process in ("self", pid))
            self.say(f"  {space:8} {'of its own' if own != other else 'the host' + chr(39) + 's'}")
        for name in ("oom_score_adj", "cgroup"):
            text = pathlib.Path(f"/proc/{pid}/{name}").read_text()
            self.say(f"  {name}: {' '.join(text.split())}")
        for name in ("memory.max", "memory.current", "pids.max", "pids.current", "cpu.weight"):
            with contextlib.suppress(OSError):
                file = CGROUPS / text.strip().rpartition("::/")[2] / name
                self.say(f"  {name}: {file.read_text().strip()}")


def run(build, report, find_libraries, only="*"):
    """only: parts of it, as stand,attack."""
    check = Check(build, report, find_libraries)
    parts = {"learn": lambda: check.learn("of a worker, all", LONGWIRE_TEST_NO_CALLS=1),
             "unlisted": lambda: check.learn("of a worker that are not on the list"),
             "stand": check.stand, "cost": check.cost, "attack": check.attack}
    for name, part in parts.items():
        if only != "*" and name not in only.split(","):
            continue
        report.row(f"--- {name}")
        try:
            part()
        except Exception as problem:  # the other parts still say something
            check.faults.append(f"{name}: {problem!r}")
    for fault in check.faults:
        report.row(f"FAULT {fault}")
    report.row(f"walls: {len(check.faults)} faults")
    return not check.faults
