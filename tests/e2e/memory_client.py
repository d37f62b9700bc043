"""Allocates, frees and asks what is free, a command a line; tests run it.

    alloc MIB, free        the program's newest allocation
    share                  a handle of it for other processes
    create MIB, release    the same by reserved addresses and mapped memory
    limit BYTES, limited   the context's stacks
    info                   bytes that are free, and all
    infos COUNT            asks that often; the last answer
    log                    the driver's log of errors, in one line
Each answers with one line: the figures, or the code of the call that failed.
"""
import ctypes
import sys

MIB = 1 << 20
cuda = ctypes.CDLL("libcuda.so.1")
u64, size = ctypes.c_uint64, ctypes.c_size_t


class Properties(ctypes.Structure):
    """CUmemAllocationProp."""
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("place", ctypes.c_int),
                ("device", ctypes.c_int), ("rest", ctypes.c_byte * 16)]


class Access(ctypes.Structure):
    """CUmemAccessDesc."""
    _fields_ = [("place", ctypes.c_int), ("device", ctypes.c_int), ("flags", ctypes.c_int)]


class Failed(Exception):
    pass


def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code != 0:
        raise Failed(f"{name} {code}")


class Program:
    def __init__(self):
        self.allocated, self.mapped = [], []
        context = ctypes.c_void_p()
        call("cuInit", 0)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        call("cuCtxSetCurrent", context)

    def alloc(self, mib):
        address = u64()
        call("cuMemAlloc_v2", ctypes.byref(address), size(mib * MIB))
        self.allocated.append(address)

    def free(self):
        call("cuMemFree_v2", self.allocated.pop())

    def share(self):
        call("cuIpcGetMemHandle", ctypes.create_string_buffer(64), self.allocated[-1])

    def create(self, mib):
        handle, address = u64(), u64()
        properties = Properties(type=1, place=1)
        call("cuMemCreate", ctypes.byref(handle), size(mib * MIB), ctypes.byref(properties),
             u64(0))
        call("cuMemAddressReserve", ctypes.byref(address), size(mib * MIB), size(0), u64(0), u64(0))
        call("cuMemMap", address, size(mib * MIB), size(0), handle, u64(0))
        access = Access(place=1, flags=3)
        call("cuMemSetAccess", address, size(mib * MIB), ctypes.byref(access), size(1))
        self.mapped.append((handle, address, mib))

    def release(self):
        handle, address, mib = self.mapped.pop()
        call("cuMemUnmap", address, size(mib * MIB))
        call("cuMemRelease", handle)
        call("cuMemAddressFree", address, size(mib * MIB))

    def limit(self, stack):
        call("cuCtxSetLimit", 0, size(stack))

    def limited(self):
        stack = size()
        call("cuCtxGetLimit", ctypes.byref(stack), 0)
        return str(stack.value)

    def info(self):
        free, total = size(), size()
        call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return f"{free.value} {total.value}"

    def log(self):
        text, bytes_there = ctypes.create_string_buffer(25600), size(25600)
        call("cuLogsDumpToMemory", None, text, ctypes.byref(bytes_there), 0)
        return text.value.decode().replace("\n", " ")

    def infos(self, count):
        for _ in range(count):
            said = self.info()
        return said


program = Program()
print("READY", flush=True)
for line in sys.stdin:
    words = line.split()
    try:
        said = getattr(program, words[0])(*map(int, words[1:])) or "done"
    except Failed as failed:
        said = str(failed)
    print(said, flush=True)
