#!/usr/bin/env python3
"""How long a program with much memory stands still when its session is moved: between two devices
of a server, between two servers, to disk and back; beside what the same bytes take on raw disk and
on one raw TCP connection.

  bench/move_pause.py [--build DIR] [--driver auto|software] [--gib N] [--objects N] [--moves N]
                      [--ways device,server,disk] [--disable SWITCHES] [--out FILE]

With --objects the program has as many modules with a kernel each, and twenty calls for each of them
that made or changed streams and functions; --disable is the servers' LONGWIRE_DISABLE.

A figure is the median of the moves, after one that is not counted. CPU seconds are those of all
processes of the servers, in one GiB that was moved; the program itself only waits. At the end the
program compares its memory with what it wrote."""
import argparse
import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "e2e"))
import server  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30
CHUNK = 64  # MiB
SECONDS = 300
STOOD_STILL = re.compile(r"prepared for (\d+) ms and stood still for (\d+) ms"
                         r"(?:; of its calls (\d+) ran again before that and (\d+) meanwhile)?")
WAYS = ("device", "server", "disk")


TEXT = """.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 number = %d;
.visible .entry Kernel() { ret; }
"""
PASSING = 9  # streams for each module that come and go


def hold(chunks, objects):
    """The program: memory with other bytes in each chunk, until its standard input ends."""
    import ctypes
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        code = getattr(cuda, name)(*arguments)
        assert code == 0, (name, code)
    context, addresses = ctypes.c_void_p(), []
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    for number in range(objects):
        module, function, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(module), (TEXT % number).encode() + b"\0")
        call("cuModuleGetFunction", ctypes.byref(function), module, b"Kernel")
        call("cuFuncSetAttribute", function, 8, 1024 + number % 64)
        for _ in range(PASSING):
            call("cuStreamCreate", ctypes.byref(stream), 1)
            call("cuStreamDestroy_v2", stream)
        call("cuLaunchKernel", function, *[1] * 6, 0, None, None, None)
    pattern = bytes(range(256)) * (CHUNK * MIB // 256)
    for number in range(chunks):
        address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(CHUNK * MIB))
        call("cuMemcpyHtoD_v2", address, pattern, ctypes.c_size_t(CHUNK * MIB))
        call("cuMemsetD8_v2", address, ctypes.c_ubyte(number % 255 + 1), ctypes.c_size_t(MIB))
        addresses.append(address)
    call("cuCtxSynchronize")
    print("READY", flush=True)
    sys.stdin.read()
    there = ctypes.create_string_buffer(CHUNK * MIB)
    for number, address in enumerate(addresses):
        call("cuMemcpyDtoH_v2", there, address, ctypes.c_size_t(CHUNK * MIB))
        wanted = bytes([number % 255 + 1]) * MIB + pattern[MIB:]
        assert there.raw == wanted, f"chunk {number} has other bytes"
    print("PASS", flush=True)


def spent(servers):
    """CPU seconds of all processes of these servers, with those that have ended."""
    ticks = 0
    for one in servers:
        for pid in sum(one.processes().values(), []):
            with contextlib.suppress(OSError):
                words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                ticks += sum(map(int, words[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


class Servers:
    """Two of them; the first has two devices and keeps suspended sessions."""

    def __init__(self, stack, arguments, folder):
        self.both = []
        for place in range(2):
            config = {"moves_from": ["any"], "checkpoint_dir": f"{folder}/{place}",
                      "resume_grace": "120s"}
            apart = arguments.driver != "software" and "server" in arguments.ways
            one = server.Server(driver=arguments.driver, build=arguments.build,
                                devices=[place] if apart else None,
                                config=json.dumps(config), software_devices=2,
                                software_memory=int(arguments.gib + 1) * GIB,
                                variables={"LONGWIRE_DISABLE": arguments.disable}
                                if arguments.disable else {})
            if arguments.driver != "software":
                one.warden_options = ("--worker-addresses", "fixed")
            self.both.append(stack.enter_context(one))
        self.turn = 0
        self.said = []

    def place(self):
        for one in self.both:
            for session in one.status()["sessions"]:
                return one, session
        raise RuntimeError("the program's session has ended")

    def admin(self, one, *words):
        begun = time.monotonic()
        done = one.cli("admin", *map(str, words), timeout=SECONDS)
        if done.code != 0:
            raise RuntimeError(f"{done.out}{done.err}\n{one.log_tail(20)}")
        return done.out, time.monotonic() - begun

    def move(self, way):
        """Seconds of its parts."""
        one, session = self.place()
        here = session["seats"][0].get("device", 0)
        self.turn += 1
        if way == "disk":
            name = f"turn-{self.turn}"
            _, suspended = self.admin(one, "checkpoint", session["id"], name)
            _, restored = self.admin(one, "restore", name, here)
            for kept in pathlib.Path(one.config_of_folder).glob(f"{name}*"):
                kept.unlink()
            return {"suspend": suspended, "restore": restored}
        there = 1 - here
        if way == "server":
            there = next(other for other in self.both if other is not one).address
        said, _ = self.admin(one, "migrate", session["id"], there)
        prepared, still, before, meanwhile = STOOD_STILL.search(said).groups()
        self.said.append(f"{way}: prepared {prepared} ms, stood still {still} ms, "
                         f"calls again before {before}, meanwhile {meanwhile}")
        return {way: int(still) / 1000}


def run(way, moves, arguments):
    """{part: seconds of each move}, and the CPU seconds of all of them."""
    times = {}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="longwire-kept-",
                                                                 dir=arguments.folder))
        servers = Servers(stack, arguments, folder)
        for place, one in enumerate(servers.both):
            one.config_of_folder = f"{folder}/{place}"
        first = servers.both[0]
        program = subprocess.Popen(
            first.command(sys.executable, __file__, "--hold",
                          str(int(arguments.gib * GIB) // (CHUNK * MIB)), str(arguments.objects)),
            env=first.environment(PYTHONDONTWRITEBYTECODE=1), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        stack.callback(program.kill)
        if server.next_line(program) != "READY\n":
            raise RuntimeError("the program does not begin: " + first.log_tail(20))
        before = spent(servers.both)
        for _ in range(moves):
            for part, seconds in servers.move(way).items():
                times.setdefault(part, []).append(seconds)
        used = spent(servers.both) - before
        out, _ = program.communicate(timeout=SECONDS)
        if out != "PASS\n":
            raise RuntimeError("the program's memory is not what it wrote")
    return times, used, servers.said


def floors(arguments):
    """GB/s of the host: writing a file to the disk, reading it, one TCP connection."""
    with tempfile.TemporaryDirectory(prefix="longwire-floor-", dir=arguments.folder) as folder:
        path, piece = pathlib.Path(folder) / "file", os.urandom(8 * MIB)
        begun = time.monotonic()
        with open(path, "wb") as file:
            for _ in range(128):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        yield "floor: 1 GiB to disk", GIB / (time.monotonic() - begun) / 1e9
    raw = arguments.build / "bench" / "raw_tcp"
    if raw.exists():
        done = subprocess.run([raw], capture_output=True, text=True, check=False)
        found = re.search(r"^tcp_one_connection\s+([0-9.]+)", done.stdout, re.MULTILINE)
        if found:
            yield "floor: one TCP connection", float(found[1])


def table(arguments):
    yield (f"{arguments.gib:g} GiB, {arguments.objects} modules, {arguments.driver}, median of "
           f"{arguments.moves}{', without ' + arguments.disable if arguments.disable else ''}")
    for label, rate in floors(arguments):
        yield f"{label:28} {rate:6.2f} GB/s  {arguments.gib * GIB / rate / 1e9:6.2f} s"
    for way in arguments.ways:
        times, cpu, said = run(way, arguments.moves + 1, arguments)
        for part, all_of_them in times.items():
            middle = statistics.median(all_of_them[1:])
            yield (f"{part:28} {arguments.gib * GIB / middle / 1e9:6.2f} GB/s  {middle:6.2f} s  "
                   f"({min(all_of_them[1:]):.2f} to {max(all_of_them[1:]):.2f})")
        each = cpu / (arguments.moves + 1) / arguments.gib
        yield f"  {way}: CPU {each:.2f} s for each GiB"
        yield from (f"  {line}" for line in said)


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--hold":
        return hold(int(sys.argv[2]), int(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=server.build_folder())
    parser.add_argument("--driver", default="software", choices=("software", "auto"))
    parser.add_argument("--gib", type=float, default=1)
    parser.add_argument("--objects", type=int, default=0)
    parser.add_argument("--disable", default="")
    parser.add_argument("--moves", type=int, default=3)
    parser.add_argument("--ways", type=lambda text: text.split(","), default=list(WAYS))
    parser.add_argument("--folder", help="on the disk that is measured; without it, for temporary "
                        "files")
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    lines = []
    for line in table(arguments):
        print(line, flush=True)
        lines.append(line)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
