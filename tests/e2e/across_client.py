"""What a program with devices of two servers learns about them: one line for each answer."""
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
nvml = ctypes.CDLL("libnvidia-ml.so.1")
MANAGED_MEMORY, PCI_DOMAIN, CAN_MAP_HOST = 83, 50, 19


def check(code):
    assert code == 0, code


def attribute(number, device):
    value = ctypes.c_int()
    check(cuda.cuDeviceGetAttribute(ctypes.byref(value), number, device))
    return value.value


check(cuda.cuInit(0))
count = ctypes.c_int()
check(cuda.cuDeviceGetCount(ctypes.byref(count)))
print("devices", count.value)
check(nvml.nvmlInit_v2())
seen = ctypes.c_uint()
check(nvml.nvmlDeviceGetCount_v2(ctypes.byref(seen)))
print("nvml", seen.value)
for device in range(count.value):
    uuid = ctypes.create_string_buffer(16)
    check(cuda.cuDeviceGetUuid_v2(uuid, device))
    handle, text = ctypes.c_void_p(), ctypes.create_string_buffer(96)
    check(nvml.nvmlDeviceGetHandleByIndex_v2(device, ctypes.byref(handle)))
    check(nvml.nvmlDeviceGetUUID(handle, text, 96))
    same = text.value.decode().replace("-", "").lower() == "gpu" + uuid.raw.hex()
    print("device", device, "domain", attribute(PCI_DOMAIN, device), "managed",
          attribute(MANAGED_MEMORY, device), "maps", attribute(CAN_MAP_HOST, device),
          "nvml", same)
contexts = []
for device in range(2):
    contexts.append(ctypes.c_void_p())
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(contexts[-1]), device))
check(cuda.cuCtxSetCurrent(contexts[0]))
can = ctypes.c_int(7)
check(cuda.cuDeviceCanAccessPeer(ctypes.byref(can), 0, 1))
print("peers", can.value, cuda.cuCtxEnablePeerAccess(contexts[1], 0))
value = ctypes.c_int(7)
check(cuda.cuDeviceGetP2PAttribute(ctypes.byref(value), 2, 0, 1))
print("link", value.value)
pointer = ctypes.c_uint64()
print("managed", cuda.cuMemAllocManaged(ctypes.byref(pointer), ctypes.c_size_t(4096), 1))
host = ctypes.c_void_p()
check(cuda.cuMemHostAlloc(ctypes.byref(host), ctypes.c_size_t(4096), 0))
print("mapped", cuda.cuMemHostGetDevicePointer_v2(ctypes.byref(pointer), host, 0))
# A question about a device goes to its server, whichever context is current.
most = ctypes.c_size_t()
for device in range(2):
    check(cuda.cuDeviceGetTexture1DLinearMaxWidth(ctypes.byref(most), 0x20, 1, device))
print("widths", most.value > 0)
