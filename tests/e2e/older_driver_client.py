"""Calls what CUDA got after 12.2, on any server; older_drivers_test.py runs it. It prints the code
of each call and, as the last line, what the driver's log says, as JSON."""
import ctypes
import json

MIB = 1 << 20
cuda = ctypes.CDLL("libcuda.so.1")
Pointer, Size, U64 = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64
by = ctypes.byref
codes = {}


def call(name, *arguments):
    codes[name] = getattr(cuda, name)(*arguments)
    return codes[name]


def ask_for_contexts():
    resource = (ctypes.c_char * 256)()  # CUdevResource
    call("cuDeviceGetDevResource", 0, resource, 1)


def ask_for_graphs():
    graph, stream, nodes = Pointer(), Pointer(), [Pointer(), Pointer()]
    call("cuGraphCreate", by(graph), 0)
    for node in nodes:
        call("cuGraphAddEmptyNode", by(node), graph, None, Size(0))
    call("cuGraphAddDependencies_v2", graph, by(nodes[0]), by(nodes[1]), None, Size(1))
    count = Size(0)
    call("cuGraphGetEdges_v2", graph, None, None, None, by(count))
    codes["edges"] = count.value
    call("cuGraphConditionalHandleCreate", by(U64()), graph, context, 0, 0)
    call("cuStreamCreate", by(stream), 1)
    call("cuStreamBeginCaptureToGraph", stream, graph, None, None, Size(0), 0)


def ask_for_times():
    events = [Pointer(), Pointer()]
    for event in events:
        call("cuEventCreate", by(event), 0)
        call("cuEventRecord", event, None)
    call("cuCtxSynchronize_v2", context)
    call("cuEventElapsedTime_v2", by(ctypes.c_float()), *events)


def log():
    text, size = ctypes.create_string_buffer(25600), Size(25600)
    cuda.cuLogsDumpToMemory(None, text, by(size), 0)
    return text.value.decode()


context = Pointer()
version = ctypes.c_int()
call("cuInit", 0)
call("cuDriverGetVersion", by(version))
call("cuCtxCreate_v4", by(context), None, 0, 0)
ask_for_contexts()
ask_for_graphs()
ask_for_times()
print(json.dumps({"version": version.value, "codes": codes, "log": log()}))
