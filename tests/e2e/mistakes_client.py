"""Calls every function of libcuda with wrong arguments; mistakes_test.py runs it.

mistakes_client.py WORLD FIRST   from the FIRST-th function on. WORLD: `before` cuInit; `good`: one
    argument wrong at a time, the others as they should be; `gone`: with the handles of a context
    that was destroyed.

A line for each function before it is called, its number and name; then one for each argument that
may be null: the function's name, the argument's, "null". Dying or hanging is for mistakes_test.py
to see.
"""
import ctypes
import os
import pathlib
import signal
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "codegen" / "import"))
import description  # noqa: E402

SECONDS = 20  # for one function
GARBAGE = 0x123456789ab0
SCRATCH = 1 << 16
IMAGE = (b".version 7.0\n.target sm_70\n.address_size 64\n"
         b".global .align 4 .u32 Number;\n.visible .entry Nothing() { ret; }\n")
NOTHING = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(lambda _: 0)
CALLED = {"CUhostFn", "CUstreamCallback", "CUlogsCallback", "CUasyncCallback",
          "CUoccupancyB2DSize"}
# What is not made wrong: a stream would wait for ever; what is no address of the device's is one of
# the program's, where nothing is. Both as natively.
LEFT_OUT = {("cuStreamWaitValue32", "value"), ("cuStreamWaitValue64", "value"),
            ("cuStreamWaitValue32_v2", "value"), ("cuStreamWaitValue64_v2", "value")}
EITHER_SIDE = ("cuMemcpy", "cuMemcpyAsync", "cuMemcpyPeer", "cuMemcpyPeerAsync")


class Library:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")

    def call(self, symbol, *arguments):
        return getattr(self.library, symbol)(*arguments)

    def made(self, symbol, *arguments):
        """What a function that creates something writes to its first argument."""
        handle = ctypes.c_uint64(0)
        code = self.call(symbol, ctypes.byref(handle), *arguments)
        if code != 0:
            raise SystemExit(f"{symbol} = {code}")
        return handle.value


def handles(cuda):
    """One of each kind, in a context of their own; C type -> value."""
    word, null = ctypes.c_uint64, ctypes.c_void_p(0)
    made = {"CUcontext": cuda.made("cuCtxCreate_v4", null, 0, 0)}
    made["CUstream"] = cuda.made("cuStreamCreate", 0)
    made["CUevent"] = cuda.made("cuEventCreate", 0)
    made["CUdeviceptr"] = cuda.made("cuMemAlloc_v2", word(SCRATCH))
    made["CUmodule"] = cuda.made("cuModuleLoadData", IMAGE)
    made["CUfunction"] = cuda.made("cuModuleGetFunction", word(made["CUmodule"]), b"Nothing")
    made["CUlibrary"] = cuda.made("cuLibraryLoadData", IMAGE, null, null, 0, null, null, 0)
    made["CUkernel"] = cuda.made("cuLibraryGetKernel", word(made["CUlibrary"]), b"Nothing")
    made["CUgraph"] = cuda.made("cuGraphCreate", 0)
    made["CUgraphNode"] = cuda.made("cuGraphAddEmptyNode", word(made["CUgraph"]), null, word(0))
    made["CUgraphExec"] = cuda.made("cuGraphInstantiateWithFlags", word(made["CUgraph"]), word(0))
    array = (ctypes.c_uint64 * 3)(16, 16, 0x100000020)  # 32-bit floats, one channel
    made["CUarray"] = cuda.made("cuArrayCreate_v2", array)
    made["CUmemoryPool"] = cuda.made("cuDeviceGetDefaultMemPool", 0)
    link = ctypes.c_uint64(0)
    cuda.call("cuLinkCreate_v2", 0, null, null, ctypes.byref(link))
    made["CUlinkState"] = link.value
    return made


def end_captures(cuda, world):
    """What a function began: a context with captures cannot be destroyed."""
    graph = ctypes.c_uint64(0)
    for stream in (world["CUstream"], 2):
        cuda.call("cuStreamEndCapture", ctypes.c_uint64(stream), ctypes.byref(graph))


class Argument:
    def __init__(self, symbol, text, sizes):
        self.symbol = symbol
        self.type, self.name = text.rsplit(" ", 1)
        self.pointer = self.type.endswith("*")
        self.called = self.type in CALLED
        self.bytes = sizes.get(self.type) if not self.pointer else None

    def pack(self, value):
        if self.bytes is not None:
            return (type("Bytes", (ctypes.Structure,),
                         {"_fields_": [("bytes", ctypes.c_ubyte * self.bytes)]}))()
        if self.type == "float":
            return ctypes.c_float(value)
        if isinstance(value, int):
            return ctypes.c_uint64(value & (2**64 - 1))
        return value

    def good(self, world, scratch):
        if self.type == "const char*":
            return b"Nothing"
        if self.called:
            return NOTHING
        if self.pointer:
            return scratch
        return world.get(self.type, 0)

    def mistakes(self, world, gone, is_handle):
        if (self.symbol, self.name) in LEFT_OUT:
            return []
        if self.symbol in EITHER_SIDE and self.type == "CUdeviceptr":
            return [0]
        if self.pointer or self.called:
            return [0]
        if is_handle:
            other = world.get("CUevent" if self.type != "CUevent" else "CUstream", 0)
            return [0, GARBAGE, other, gone.get(self.type, 0)]
        return [0, 1, 99, -1] if self.bytes is None else []


class Caller:
    def __init__(self, cuda):
        self.cuda = cuda
        self.scratch = (ctypes.c_ubyte * SCRATCH)()
        self.gone = {}
        proto = ROOT / "proto"
        self.sizes = description.struct_sizes(proto / "types.proto")
        text = (proto / "types.proto").read_text()
        self.handles = {line.split()[1] for line in text.splitlines() if "kind: HANDLE" in line}
        self.handles |= {"CUdeviceptr", "CUtexObject", "CUsurfObject",
                         "CUmemGenericAllocationHandle", "CUgraphConditionalHandle"}

    def functions(self):
        for symbol, described in sorted(description.read(ROOT / "proto").items()):
            arguments = [Argument(symbol, text, self.sizes) for text in described.signature]
            yield symbol, arguments
            if described.per_thread:
                yield f"{symbol}_{described.per_thread}", arguments

    def call(self, symbol, arguments, values):
        ctypes.memset(self.scratch, 0, SCRATCH)
        packed = [argument.pack(value) for argument, value in zip(arguments, values)]
        return self.cuda.call(symbol, *packed)

    def one_wrong_at_a_time(self, symbol, arguments, world):
        right = [argument.good(world, self.scratch) for argument in arguments]
        for place, argument in enumerate(arguments):
            for wrong in argument.mistakes(world, self.gone, argument.type in self.handles):
                values = right[:place] + [wrong] + right[place + 1:]
                if self.call(symbol, arguments, values) == 0 and argument.pointer:
                    print(symbol, argument.name, "null", flush=True)
        self.call(symbol, arguments, right)

    def all_wrong(self, symbol, arguments, world):
        self.call(symbol, arguments, [0] * len(arguments))
        own = arguments[0].symbol if arguments else ""
        if own not in EITHER_SIDE:
            self.call(symbol, arguments,
                      [0 if argument.pointer or argument.called else GARBAGE
                       for argument in arguments])
        self.call(symbol, arguments, [argument.good(world, self.scratch)
                                      for argument in arguments])


def main(what, first):
    cuda = Library()
    caller = Caller(cuda)
    os.chdir(os.environ["LONGWIRE_RUNTIME_DIR"])  # where files are written that calls name
    if what != "before" and cuda.call("cuInit", 0) != 0:
        raise SystemExit("cuInit failed")
    for number, (symbol, arguments) in enumerate(caller.functions()):
        if number < int(first) or (what == "before" and symbol == "cuInit"):
            continue
        print(number, symbol, flush=True)
        signal.alarm(SECONDS)
        world = {}
        if what != "before":
            world = handles(cuda)
            if what == "gone" or not caller.gone:
                cuda.call("cuCtxDestroy_v2", ctypes.c_uint64(world["CUcontext"]))
                caller.gone = world
            if what == "good" and caller.gone is world:
                world = handles(cuda)
        if what == "good":
            caller.one_wrong_at_a_time(symbol, arguments, world)
        caller.all_wrong(symbol, arguments, world)
        cuda.call("cuCtxSynchronize")
        if what == "good":
            end_captures(cuda, world)
            cuda.call("cuCtxDestroy_v2", ctypes.c_uint64(world["CUcontext"]))
    print("END", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
