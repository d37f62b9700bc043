"""What a tool sees through libnvidia-ml.so.1; nvml_test.py runs it as a program of its own.

nvml_client.py QUESTION…  answers each with a line of JSON. Nothing here opens a CUDA session but
the question "cuda".
"""
import ctypes
import json
import os
import sys
import time


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class MemoryV2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [
        (name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("memory", ctypes.c_ulonglong),
                ("gpu_instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint)]


class Field(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("scope", ctypes.c_uint), ("time", ctypes.c_longlong),
                ("latency", ctypes.c_longlong), ("type", ctypes.c_uint), ("code", ctypes.c_int),
                ("value", ctypes.c_ulonglong)]


class Nvml:
    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")

    def code(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def need(self, name, *arguments):
        code = self.code(name, *arguments)
        if code != 0:
            raise RuntimeError(f"{name}: {code}")

    def text(self, name, *arguments, size=96):
        buffer = ctypes.create_string_buffer(size)
        self.need(name, *arguments, buffer, size)
        return buffer.value.decode()

    def number(self, name, *arguments):
        value = ctypes.c_uint()
        self.need(name, *arguments, ctypes.byref(value))
        return value.value

    def devices(self):
        handles = []
        for index in range(self.number("nvmlDeviceGetCount_v2")):
            handle = ctypes.c_void_p()
            self.need("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
            handles.append(handle)
        return handles

    def memory(self, device):
        memory = Memory()
        self.need("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory))
        return {name: getattr(memory, name) for name, _ in Memory._fields_}

    def processes(self, device):
        count, room = ctypes.c_uint(64), (Process * 64)()
        self.need("nvmlDeviceGetComputeRunningProcesses_v3", device, ctypes.byref(count), room)
        return [[room[i].pid, room[i].memory] for i in range(count.value)]


def uuids(nvml):
    return [nvml.text("nvmlDeviceGetUUID", device) for device in nvml.devices()]


def memory(nvml):
    return [nvml.memory(device) for device in nvml.devices()]


def reserved(nvml):
    answer = MemoryV2(version=ctypes.sizeof(MemoryV2) | 2 << 24)
    wrong = MemoryV2(version=1)
    device = nvml.devices()[0]
    nvml.need("nvmlDeviceGetMemoryInfo_v2", device, ctypes.byref(answer))
    return [nvml.code("nvmlDeviceGetMemoryInfo_v2", device, ctypes.byref(wrong)),
            {name: getattr(answer, name) for name, _ in MemoryV2._fields_[1:]}]


def facts(nvml):
    major, minor = ctypes.c_int(), ctypes.c_int()
    device = nvml.devices()[0]
    nvml.need("nvmlDeviceGetCudaComputeCapability", device, ctypes.byref(major),
              ctypes.byref(minor))
    version = nvml.number("nvmlSystemGetCudaDriverVersion_v2")
    return {"name": nvml.text("nvmlDeviceGetName", device),
            "capability": [major.value, minor.value], "cuda": version,
            "driver": nvml.text("nvmlSystemGetDriverVersion"),
            "nvml": nvml.text("nvmlSystemGetNVMLVersion")}


def processes(nvml):
    return [[[*process, nvml.text("nvmlSystemGetProcessName", process[0], size=256)]
             for process in nvml.processes(device)] for device in nvml.devices()]


def peers(nvml):
    """Of each pair of devices: reading, writing and atomics, as NVML says; access, as CUDA does."""
    status = [[[nvml.number("nvmlDeviceGetP2PStatus", one, other, capability)
                for capability in (0, 1, 3)] for other in nvml.devices()] for one in nvml.devices()]
    library, can, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), len(status)
    if library.cuInit(0) != 0:
        return None
    access = [[0] * count for _ in range(count)]
    for one in range(count):
        for other in range(count):
            library.cuDeviceCanAccessPeer(ctypes.byref(can), one, other)
            access[one][other] = can.value
    return [status, access]


def by_other_names(nvml):
    """The places of the devices that UUIDs and PCI addresses lead to."""
    places = []
    for device in nvml.devices():
        pci = ctypes.create_string_buffer(68)
        nvml.need("nvmlDeviceGetPciInfo_v3", device, pci)
        found = ctypes.c_void_p()
        uuid = nvml.text("nvmlDeviceGetUUID", device).encode()
        nvml.need("nvmlDeviceGetHandleByUUID", uuid, ctypes.byref(found))
        places.append(nvml.number("nvmlDeviceGetIndex", found))
        # "00000001:02:00.0" and "0001:02:00.0"
        for address in (pci.raw[36:].split(b"\0")[0], pci.raw[:16].split(b"\0")[0]):
            nvml.need("nvmlDeviceGetHandleByPciBusId_v2", address, ctypes.byref(found))
            places.append(nvml.number("nvmlDeviceGetIndex", found))
    return places


def refusals(nvml):
    """Codes of what is not there."""
    device, value, field = nvml.devices()[0], ctypes.c_uint(), Field(id=1)
    found = ctypes.c_void_p()
    codes = {name: nvml.code(name, device, ctypes.byref(value)) for name in (
        "nvmlDeviceGetPowerUsage", "nvmlDeviceGetFanSpeed", "nvmlDeviceGetMinorNumber")}
    nvml.need("nvmlDeviceGetFieldValues", device, 1, ctypes.byref(field))
    return {**codes, "temperature": nvml.code("nvmlDeviceGetTemperature", device, 0,
                                              ctypes.byref(value)),
            "field": field.code,
            "link": nvml.code("nvmlDeviceGetNvLinkState", device, 0, ctypes.byref(value)),
            "uuid": nvml.code("nvmlDeviceGetHandleByUUID", b"GPU-none", ctypes.byref(found)),
            "index": nvml.code("nvmlDeviceGetHandleByIndex_v2", 99, ctypes.byref(found)),
            "handle": nvml.code("nvmlDeviceGetIndex", ctypes.c_void_p(4711), ctypes.byref(value)),
            "small": nvml.code("nvmlDeviceGetName", device, ctypes.create_string_buffer(4), 4)}


def cuda(_):
    """The UUIDs that CUDA shows, once it is initialised; the session stays open."""
    library, found = ctypes.CDLL("libcuda.so.1"), []
    count = ctypes.c_int()
    code = library.cuInit(0)
    if code != 0:
        return code
    library.cuDeviceGetCount(ctypes.byref(count))
    for device in range(count.value):
        uuid = (ctypes.c_ubyte * 16)()
        library.cuDeviceGetUuid(uuid, device)
        text = bytes(uuid).hex()
        found.append("GPU-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:])))
    return found


def forked(nvml):
    """What a child sees that uses CUDA after its parent has used NVML."""
    before = uuids(nvml)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        answer = [uuids(nvml), cuda(nvml), uuids(nvml)]
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = json.loads(pipe.read())
    os.waitpid(child, 0)
    return [before, *answer]


def initialised(nvml):
    """Codes and seconds of a beginning, and of what comes without one."""
    value, start = ctypes.c_uint(), time.monotonic()
    code = nvml.code("nvmlInit_v2")
    seconds = time.monotonic() - start
    return [code, seconds, nvml.code("nvmlDeviceGetCount_v2", ctypes.byref(value))]


def counted(nvml):
    """Users are counted: three beginnings, one of them made by main, and as many ends."""
    value, codes = ctypes.c_uint(), []
    nvml.need("nvmlInitWithFlags", 1)
    nvml.need("nvmlInit")
    for _ in range(4):
        codes.append(nvml.code("nvmlShutdown"))
        codes.append(nvml.code("nvmlDeviceGetCount_v2", ctypes.byref(value)))
    return codes


def threads(_):
    """Threads and descriptors of this process."""
    return [len(os.listdir("/proc/self/task")), sorted(os.listdir("/proc/self/fd"))]


def lost(nvml):
    """The code of a question when the server has gone."""
    time.sleep(0.1)  # longer than what was said before is taken for fresh
    return nvml.code("nvmlDeviceGetCount_v2", ctypes.byref(ctypes.c_uint()))


def wait(_):
    """Until a line comes."""
    return sys.stdin.readline()


def main(questions):
    nvml = Nvml()
    if questions[0] != "initialised":
        nvml.need("nvmlInit_v2")
    for question in questions:
        print(json.dumps(globals()[question](nvml)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
