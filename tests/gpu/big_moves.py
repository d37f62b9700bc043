"""The part `big` of the group moving (moving.py): a program with much device memory moves between
two devices of a server, between two servers with a device each, and to disk and back. A line for
each move has its bytes, how long its session stood still, what the slowest part of its way takes
for as many bytes by itself on this host, and the ratio of the two. After each move the program
compares all of its memory on the device.

LONGWIRE_BIG_GIB is its size (40), LONGWIRE_BIG_SECONDS how long all of it may take (220): a move
that would take longer than what is left is not begun, and a line says so. To disk and back goes, at
the end, a program of as many bytes as there is time for."""
import contextlib
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import server  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30
PIECE = 64  # MiB
STILL = re.compile(r"prepared for (\d+) ms and stood still for (\d+) ms")
# GB/s that are expected of a way that has not been tried yet, at the most; of what the slowest part
# of its way does by itself, a share.
EXPECTED = {"device": 3.0, "server": 1.2, "suspend": 0.7, "restore": 0.7}
SHARE = 0.5
KERNELS = """.version 7.0
.target sm_70
.address_size 64
"""
# Word i of a piece is a hash of i and the piece's number.
KERNEL = """.visible .entry %s(.param .u64 at, .param .u64 count, .param .u64 seed,
                  .param .u64 wrong)
{
  .reg .u64 %%a, %%n, %%s, %%i, %%step, %%v, %%t, %%p, %%w;
  .reg .u32 %%x, %%y, %%z;
  .reg .pred %%done, %%other;
  ld.param.u64 %%a, [at];
  ld.param.u64 %%n, [count];
  ld.param.u64 %%s, [seed];
  ld.param.u64 %%w, [wrong];
  mov.u32 %%x, %%ctaid.x;
  mov.u32 %%y, %%ntid.x;
  mov.u32 %%z, %%tid.x;
  mul.wide.u32 %%i, %%x, %%y;
  cvt.u64.u32 %%t, %%z;
  add.u64 %%i, %%i, %%t;
  mov.u32 %%x, %%nctaid.x;
  mul.wide.u32 %%step, %%x, %%y;
LOOP:
  setp.ge.u64 %%done, %%i, %%n;
  @%%done bra END;
  add.u64 %%v, %%i, %%s;
  mul.lo.u64 %%v, %%v, 0x9E3779B97F4A7C15;
  shr.u64 %%t, %%v, 29;
  xor.b64 %%v, %%v, %%t;
  shl.b64 %%p, %%i, 3;
  add.u64 %%p, %%p, %%a;
%s
  add.u64 %%i, %%i, %%step;
  bra LOOP;
END:
  ret;
}
"""
FILL = "  st.global.u64 [%p], %v;"
CHECK = """  ld.global.u64 %t, [%p];
  setp.ne.u64 %other, %t, %v;
  @%other atom.global.add.u32 %z, [%w], 1;"""


class Holder:
    """The program's memory, by the driver's API."""

    def __init__(self, pieces):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        text = KERNELS + KERNEL % ("Fill", FILL) + KERNEL % ("Check", CHECK)
        self.call("cuModuleLoadData", ctypes.byref(module), text.encode() + b"\0")
        self.kernels = {}
        for name in ("Fill", "Check"):
            self.kernels[name] = ctypes.c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(self.kernels[name]), module,
                      name.encode())
        self.wrong = self.allocate(4)
        self.pieces = [self.allocate(PIECE * MIB) for _ in range(pieces)]
        for number in range(pieces):
            self.launch("Fill", number, number)

    def call(self, name, *arguments):
        code = getattr(self.cuda, name)(*arguments)
        assert code == 0, (name, code)

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def launch(self, kernel, number, seed):
        values = [self.pieces[number], ctypes.c_uint64(PIECE * MIB // 8),
                  ctypes.c_uint64((seed + 1) << 32), self.wrong]
        pointers = (ctypes.c_void_p * len(values))(
            *[ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values])
        self.call("cuLaunchKernel", self.kernels[kernel], 512, 1, 1, 256, 1, 1, 0, None, pointers,
                  None)

    def wrong_words(self, other=0):
        """Of all pieces, or of the first one compared with another one's words."""
        self.call("cuMemsetD32_v2", self.wrong, ctypes.c_uint(0), ctypes.c_size_t(1))
        for number in range(1 if other else len(self.pieces)):
            self.launch("Check", number, number + other)
        count = ctypes.c_uint()
        self.call("cuMemcpyDtoH_v2", ctypes.byref(count), self.wrong, ctypes.c_size_t(4))
        return count.value


def hold(pieces):
    holder = Holder(pieces)
    print("READY", flush=True)
    for _ in sys.stdin:
        # What is compared with other words differs, or nothing was compared.
        print(f"{holder.wrong_words()} of all, {holder.wrong_words(1) > PIECE * MIB // 16}",
              flush=True)
    print("PASS", flush=True)


class Program:
    """The program at a server of these; its session is moved by the ways that are asked for."""

    def __init__(self, servers, pieces, folder, stack):
        self.servers, self.folder = servers, folder
        self.process = subprocess.Popen(
            servers[0].command(sys.executable, __file__, "--hold", str(pieces)),
            env=servers[0].environment(PYTHONDONTWRITEBYTECODE=1), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        stack.callback(self.process.kill)
        if server.next_line(self.process) != "READY\n":
            raise RuntimeError("the program does not begin: " + servers[0].log_tail(20))

    def place(self):
        for one in self.servers:
            for session in one.status()["sessions"]:
                return one, session, session["seats"][0].get("device", 0)
        raise RuntimeError("the program's session has ended")

    def is_right(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        said = server.next_line(self.process).strip()
        return said == "0 of all, True" or said

    def do(self, way, seconds):
        """(what it said, seconds for which the session stood still, how it went)."""
        one, session, device = self.place()
        kept = pathlib.Path(self.folder, "sessions", "big")
        if way == "suspend":
            words = ["checkpoint", session["id"], "big"]
        elif way == "device":
            words = ["migrate", session["id"], 1 - device]
        else:
            other = next(other for other in self.servers if other is not one)
            words = ["migrate", session["id"], other.address]
        return self.admin(one, words, seconds, kept if way == "suspend" else None)

    def restore(self, seconds):
        (one,) = self.servers
        return self.admin(one, ["restore", "big", 0], seconds)

    def admin(self, one, words, seconds, kept=None):
        begun = time.monotonic()
        try:
            done = one.cli("admin", *map(str, words), timeout=seconds)
        except subprocess.TimeoutExpired:
            return f"not done within {seconds:.0f} s\n{one.log_tail(20)}", seconds, "BAD"
        took = time.monotonic() - begun
        said = (done.out + done.err).strip()
        if done.code != 0:
            return f"{said}\n{one.log_tail(20)}", took, "BAD"
        still = STILL.search(said)
        size = f"; its file has {kept.stat().st_size >> 20} MiB" if kept else ""
        return said + size, int(still[2]) / 1000 if still else took, "done"


def floors(build, folder):
    """GB/s of this host by themselves: the slower copy between device and host, one connection, the
    disk when it is written (with fsync) and read again."""
    found = {}
    for words in (["dist/lib/longwire/bench/driver_figures", "copies"], ["bench/raw_tcp"]):
        try:
            done = subprocess.run([build / words[0], *words[1:]], capture_output=True, text=True,
                                  check=False, timeout=15)
        except (OSError, subprocess.TimeoutExpired):
            continue  # its rate is not known
        for name, rate in re.findall(r"^(\w+)\s+([0-9.]+) GB/s", done.stdout, re.MULTILINE):
            found[name] = float(rate)
    copies = [rate for name, rate in found.items() if name.endswith("pinned_256MiB")]
    path, piece = pathlib.Path(folder, "floor"), os.urandom(8 * MIB)
    begun = time.monotonic()
    with open(path, "wb") as file:
        for _ in range(128):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
        written = GIB / (time.monotonic() - begun) / 1e9
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    begun = time.monotonic()
    with open(path, "rb", buffering=0) as file:
        while file.read(8 * MIB):
            pass
    read = GIB / (time.monotonic() - begun) / 1e9
    path.unlink()
    pcie = min(copies) if copies else None
    wire = found.get("tcp_one_connection")
    return {"PCIe": pcie, "wire": wire, "disk write": written, "disk read": read}


PARTS = {"device": ("PCIe",), "server": ("PCIe", "wire"), "suspend": ("PCIe", "disk write"),
         "restore": ("PCIe", "disk read")}


class Run:
    def __init__(self, report, gib, seconds, floor):
        self.report, self.bytes = report, int(gib * GIB) // (PIECE * MIB) * PIECE * MIB
        self.end, self.floor = time.monotonic() + seconds, floor
        self.good, self.done = True, 0
        self.rates = {way: min(rate, SHARE * self.slowest(way)[1] or rate)
                      for way, rate in EXPECTED.items()}

    def slowest(self, way):
        """The part of the way that bounds it, and its GB/s; 0: none is known."""
        known = [(name, self.floor[name]) for name in PARTS[way] if self.floor[name]]
        return min(known, key=lambda one: one[1], default=("", 0))

    def left(self):
        return self.end - time.monotonic()

    def has_time(self, *ways):
        needs = sum(self.bytes / self.rates[way] / 1e9 for way in ways)
        if needs < self.left():
            return True
        self.report.row(f"{' and '.join(ways)}: not begun, it would take {needs:.0f} s and "
                        f"{self.left():.0f} s are left")
        return False

    def row(self, way, said, still, went, right=True):
        self.good &= went == "done" and right is True
        self.done += went == "done"
        rate = self.bytes / still / 1e9
        text = f"{way}: {self.bytes >> 20} MiB"
        if went == "done":
            self.rates[way] = rate * 0.8
            name, least = self.slowest(way)
            text += f" stood still for {still:.2f} s, {rate:.2f} GB/s"
            if least:
                text += (f"; {name} by itself {self.bytes / least / 1e9:.2f} s, {least:.2f} GB/s: "
                         f"ratio {least / rate:.2f}")
        else:
            text += f" {went}"
        if right is not True:
            text += f"; BAD: its memory is not what it was: {right}"
        self.report.row(text)
        self.report.row(f"    {said}")

    def move(self, program, way):
        if not self.good or not self.has_time(way):
            return
        said, still, went = program.do(way, max(self.left(), 1))
        self.row(way, said, still, went, program.is_right() if went == "done" else True)

    def fit_to_disk(self, folder):
        """As many bytes as there is time and room for."""
        room = os.statvfs(folder)
        needs = sum(1 / self.rates[way] / 1e9 for way in ("suspend", "restore"))
        fits = min(self.bytes, 0.8 * self.left() / needs, 0.9 * room.f_bavail * room.f_frsize)
        self.bytes = max(int(fits) // (PIECE * MIB), 1) * PIECE * MIB

    def to_disk_and_back(self, program):
        if not self.good or not self.has_time("suspend", "restore"):
            return
        said, still, went = program.do("suspend", max(self.left(), 1))
        self.row("suspend", said, still, went)
        if went != "done":
            return
        said, still, went = program.restore(max(self.left(), 1))
        self.row("restore", said, still, went, program.is_right() if went == "done" else True)


@contextlib.contextmanager
def running(run, servers, folder):
    with contextlib.ExitStack() as stack:
        for one in servers:
            stack.enter_context(one)
        program = Program(servers, run.bytes // (PIECE * MIB), folder, stack)
        yield program
        out, _ = program.process.communicate(timeout=60)
        run.good &= out == "PASS\n"


def make_server(build, driver, folder="", devices=None, memory=None):
    config = f"checkpoint_dir: {folder}/sessions\n" if folder else "moves_from: [any]\n"
    one = server.Server(driver=driver, build=build, devices=devices, config=config,
                        software_devices=2, software_memory=memory)
    if driver != "software":
        one.warden_options = ("--worker-addresses", "fixed")
    return one


def run(build, report, driver="auto"):
    gib = float(os.environ.get("LONGWIRE_BIG_GIB", "40"))
    seconds = float(os.environ.get("LONGWIRE_BIG_SECONDS", "220"))
    memory = int((gib + 1) * GIB) if driver == "software" else None
    with tempfile.TemporaryDirectory(prefix="longwire-big-") as folder:
        begun = time.monotonic()
        floor = floors(build, folder)
        for name, rate in floor.items():
            report.row(f"floor: {name} " + (f"{rate:.2f} GB/s" if rate else "is not known"))
        this = Run(report, gib, seconds - (time.monotonic() - begun), floor)
        # Apart, so that no device is of both: what the one server keeps, the other one lacks.
        pair = [make_server(build, driver, devices=[place], memory=memory) for place in range(2)]
        with running(this, pair, folder) as program:
            for _ in range(2):
                this.move(program, "server")
        alone = [make_server(build, driver, folder, memory=memory)]
        with running(this, alone, folder) as program:
            for _ in range(2):
                this.move(program, "device")
        this.fit_to_disk(folder)
        alone = [make_server(build, driver, folder, memory=memory)]
        with running(this, alone, folder) as program:
            this.to_disk_and_back(program)
    report.row(f"big: {this.done} moves, {'right' if this.good and this.done else 'BAD'}")
    return this.good and this.done > 0


if __name__ == "__main__":
    hold(int(sys.argv[2]))
