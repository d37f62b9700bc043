// What each call answers beside a capture, and what becomes of the capture: in each mode, from the
// thread that captures.
#include <functional>

#include "check.h"

namespace conformance {
namespace {

struct Scene {
  CUcontext context = nullptr;
  CUdevice device = 0;
  CUstream stream = nullptr;  // captures
  CUstream other = nullptr, blocking = nullptr;
  CUdeviceptr memory = 0;
  void* pinned = nullptr;
  CUevent recorded = nullptr, fresh = nullptr, captured = nullptr;
  CUmodule module = nullptr;
  CUfunction nothing = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUmemoryPool pool = nullptr;
  char bytes[64] = {};

  explicit Scene(const InContext& in);
  ~Scene();
};

Scene::Scene(const InContext& in) : context(in.context), device(in.device) {
  CODE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CODE(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CODE(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  CODE(cuMemAlloc(&memory, 4096));
  CODE(cuMemHostAlloc(&pinned, 4096, 0));
  for (CUevent* event : {&recorded, &fresh, &captured}) CODE(cuEventCreate(event, 0));
  CODE(cuEventRecord(recorded, other));
  module = LoadKernels();
  CODE(cuModuleGetFunction(&nothing, module, "Nothing"));
  CUgraphNode node = nullptr;
  CODE(cuGraphCreate(&graph, 0));
  CODE(cuGraphAddEmptyNode(&node, graph, nullptr, 0));
  CODE(cuGraphInstantiate(&exec, graph, 0));
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CODE(cuMemPoolCreate(&pool, &props));
  CODE(cuCtxSynchronize());
}

Scene::~Scene() {
  CODE(cuMemPoolDestroy(pool));
  CODE(cuGraphExecDestroy(exec));
  CODE(cuGraphDestroy(graph));
  CODE(cuModuleUnload(module));
  for (CUevent event : {recorded, fresh, captured}) CODE(cuEventDestroy(event));
  CODE(cuMemFreeHost(pinned));
  CODE(cuMemFree(memory));
  for (CUstream each : {stream, other, blocking}) CODE(cuStreamDestroy(each));
}

struct Call {
  const char* name;
  std::function<CUresult(Scene&)> call;
};

void Try(Scene& scene, CUstreamCaptureMode mode, const Call& one) {
  CUgraph graph = nullptr;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (cuStreamBeginCapture(scene.stream, mode) != CUDA_SUCCESS) {
    std::printf("captures.cc:mode %d %s = (no capture)\n", mode, one.name);
    return;
  }
  cuEventRecord(scene.captured, scene.stream);
  const CUresult result = one.call(scene);
  cuStreamIsCapturing(scene.stream, &status);
  const CUresult end = cuStreamEndCapture(scene.stream, &graph);
  std::printf("captures.cc:mode %d %s = %d, then status %d and %d\n", mode, one.name, result,
              status, end);
  if (graph != nullptr) cuGraphDestroy(graph);
  cuCtxSynchronize();
}

void TryAll(Scene& scene, const std::vector<Call>& calls) {
  for (const CUstreamCaptureMode mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        CU_STREAM_CAPTURE_MODE_RELAXED}) {
    for (const Call& call : calls) Try(scene, mode, call);
  }
}

#define CALL(expression)                                               \
  {                                                                    \
#expression, [](Scene & s [[maybe_unused]]) { return expression; } \
  }

// What is made is undone where it was made, in a capture of the relaxed mode.
CUresult MakeMemory(CUresult (*make)(CUdeviceptr*)) {
  CUdeviceptr made = 0;
  const CUresult result = make(&made);
  if (result == CUDA_SUCCESS) cuMemFree(made);
  return result;
}

CUresult MakeHostMemory() {
  void* made = nullptr;
  const CUresult result = cuMemHostAlloc(&made, 64, 0);
  if (result == CUDA_SUCCESS) cuMemFreeHost(made);
  return result;
}

CUresult Register(Scene& s) {
  const CUresult result = cuMemHostRegister(s.bytes, sizeof s.bytes, 0);
  if (result == CUDA_SUCCESS) cuMemHostUnregister(s.bytes);
  return result;
}

CUresult MakeStream() {
  CUstream made = nullptr;
  const CUresult result = cuStreamCreate(&made, 0);
  if (result == CUDA_SUCCESS) cuStreamDestroy(made);
  return result;
}

CUresult MakeEvent() {
  CUevent made = nullptr;
  const CUresult result = cuEventCreate(&made, 0);
  if (result == CUDA_SUCCESS) cuEventDestroy(made);
  return result;
}

CUresult LoadAnother() {
  CUmodule made = nullptr;
  const CUresult result = cuModuleLoadData(&made, kKernels);
  if (result == CUDA_SUCCESS) cuModuleUnload(made);
  return result;
}

CUresult MakeArray() {
  const CUDA_ARRAY_DESCRIPTOR shape = {4, 4, CU_AD_FORMAT_FLOAT, 1};
  CUarray made = nullptr;
  const CUresult result = cuArrayCreate(&made, &shape);
  if (result == CUDA_SUCCESS) cuArrayDestroy(made);
  return result;
}

CUresult MakeExecutable(Scene& s) {
  CUgraphExec made = nullptr;
  const CUresult result = cuGraphInstantiate(&made, s.graph, 0);
  if (result == CUDA_SUCCESS) cuGraphExecDestroy(made);
  return result;
}

CUresult MakePool() {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool made = nullptr;
  const CUresult result = cuMemPoolCreate(&made, &props);
  if (result == CUDA_SUCCESS) cuMemPoolDestroy(made);
  return result;
}

CUresult UseInStream(CUstream stream) {
  CUdeviceptr made = 0;
  const CUresult result = cuMemAllocAsync(&made, 64, stream);
  if (result == CUDA_SUCCESS) cuMemFreeAsync(made, stream);
  return result;
}

CUresult PoolsThreshold(CUmemoryPool pool) {
  cuuint64_t bytes = 0;
  return cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes);
}

CUresult SetPoolsThreshold(CUmemoryPool pool) {
  cuuint64_t bytes = 4096;
  return cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes);
}

CUresult SetPoolsAccess(const Scene& s) {
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, s.device};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return cuMemPoolSetAccess(s.pool, &access, 1);
}

CUresult SetSynchronous(CUdeviceptr address) {
  unsigned synchronous = 0;
  return cuPointerSetAttribute(&synchronous, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address);
}

CUresult Elapsed(CUevent start, CUevent end) {
  float time = 0;
  return cuEventElapsedTime(&time, start, end);
}

CUresult FreeAndTotal() {
  size_t free = 0, total = 0;
  return cuMemGetInfo(&free, &total);
}

CUresult MemoryType(CUdeviceptr address) {
  unsigned type = 0;
  return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
}

CUresult EndCapture(CUstream stream) {
  CUgraph graph = nullptr;
  return cuStreamEndCapture(stream, &graph);
}

void Function(void*) {}
void Callback(CUstream, CUresult, void*) {}

const std::vector<Call> kMemory = {
    {"cuMemAlloc",
     [](Scene&) { return MakeMemory([](CUdeviceptr* made) { return cuMemAlloc(made, 64); }); }},
    {"cuMemAllocManaged",
     [](Scene&) {
       return MakeMemory(
           [](CUdeviceptr* made) { return cuMemAllocManaged(made, 64, CU_MEM_ATTACH_GLOBAL); });
     }},
    {"cuMemHostAlloc", [](Scene&) { return MakeHostMemory(); }},
    {"cuMemHostRegister", Register},
    {"cuArrayCreate", [](Scene&) { return MakeArray(); }},
    {"cuMemGetInfo", [](Scene&) { return FreeAndTotal(); }},
    {"cuPointerGetAttribute", [](Scene& s) { return MemoryType(s.memory); }},
    CALL(cuMemFree(0)),
    CALL(cuMemcpyHtoD(s.memory, s.bytes, 64)),
    CALL(cuMemcpyDtoH(s.bytes, s.memory, 64)),
    CALL(cuMemcpyDtoD(s.memory, s.memory + 64, 64)),
    CALL(cuMemcpy(s.memory, s.memory + 64, 64)),
    CALL(cuMemsetD8(s.memory, 0, 64)),
    CALL(cuMemsetD32(s.memory, 0, 16)),
    CALL(cuMemPoolTrimTo(s.pool, 0)),
    {"cuMemPoolCreate", [](Scene&) { return MakePool(); }},
    CALL(PoolsThreshold(s.pool)),
    CALL(SetPoolsThreshold(s.pool)),
    CALL(SetPoolsAccess(s)),
    CALL(cuDeviceSetMemPool(s.device, s.pool)),
    CALL(SetSynchronous(s.memory)),
    CALL(UseInStream(s.other)),
    CALL(UseInStream(nullptr)),
    CALL(UseInStream(s.stream)),
};

const std::vector<Call> kOthers = {
    {"cuStreamCreate", [](Scene&) { return MakeStream(); }},
    {"cuEventCreate", [](Scene&) { return MakeEvent(); }},
    {"cuModuleLoadData", [](Scene&) { return LoadAnother(); }},
    {"cuGraphInstantiate", MakeExecutable},
    CALL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048)),
    CALL(cuCtxSynchronize()),
    CALL(cuStreamSynchronize(s.stream)),
    CALL(cuStreamSynchronize(s.other)),
    CALL(cuStreamSynchronize(s.blocking)),
    CALL(cuStreamSynchronize(nullptr)),
    CALL(cuStreamQuery(s.stream)),
    CALL(cuStreamQuery(s.other)),
    CALL(cuStreamQuery(nullptr)),
    CALL(cuEventQuery(s.recorded)),
    CALL(cuEventQuery(s.fresh)),
    CALL(cuEventQuery(s.captured)),
    CALL(cuEventSynchronize(s.recorded)),
    CALL(cuEventSynchronize(s.captured)),
    {"cuEventElapsedTime of recorded", [](Scene& s) { return Elapsed(s.recorded, s.recorded); }},
    {"cuEventElapsedTime of captured", [](Scene& s) { return Elapsed(s.captured, s.captured); }},
    {"cuEventElapsedTime to captured", [](Scene& s) { return Elapsed(s.recorded, s.captured); }},
    CALL(cuStreamWaitEvent(s.other, s.recorded, 0)),
    CALL(cuStreamWaitEvent(s.stream, s.recorded, 0)),
    CALL(cuStreamWaitEvent(s.stream, s.recorded, CU_EVENT_WAIT_EXTERNAL)),
    CALL(cuStreamWaitEvent(s.other, s.captured, 0)),
    CALL(cuStreamWaitEvent(nullptr, s.captured, 0)),
    CALL(cuStreamWaitEvent(s.other, s.recorded, CU_EVENT_WAIT_EXTERNAL)),
    CALL(cuEventRecordWithFlags(s.fresh, s.stream, CU_EVENT_RECORD_EXTERNAL)),
    CALL(cuCtxRecordEvent(s.context, s.fresh)),
    CALL(cuCtxWaitEvent(s.context, s.recorded)),
    CALL(cuStreamAddCallback(s.stream, Callback, nullptr, 0)),
    CALL(cuStreamAddCallback(s.other, Callback, nullptr, 0)),
    CALL(cuLaunchHostFunc(s.stream, Function, nullptr)),
    CALL(cuLaunchKernel(s.nothing, 1, 1, 1, 1, 1, 1, 0, s.stream, nullptr, nullptr)),
    CALL(cuLaunchKernel(s.nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr)),
    CALL(cuMemsetD8Async(s.memory, 0, 64, nullptr)),
    CALL(cuMemsetD8Async(s.memory, 0, 64, s.other)),
    CALL(cuMemcpyHtoDAsync(s.memory, s.pinned, 64, s.stream)),
    CALL(cuMemcpyAsync(s.memory, s.memory + 64, 64, s.stream)),
    CALL(cuStreamWriteValue32(s.stream, s.memory, 1, 0)),
    CALL(cuGraphLaunch(s.exec, s.stream)),
    CALL(cuGraphLaunch(s.exec, s.other)),
    CALL(cuGraphLaunch(s.exec, nullptr)),
    CALL(cuGraphUpload(s.exec, s.other)),
    CALL(cuGraphUpload(s.exec, s.stream)),
    CALL(cuGraphUpload(s.exec, nullptr)),
    CALL(cuStreamBeginCapture(s.stream, CU_STREAM_CAPTURE_MODE_RELAXED)),
    {"cuStreamEndCapture elsewhere", [](Scene& s) { return EndCapture(s.other); }},
    CALL(cuMemFreeAsync(s.memory, s.stream)),
};

// In no mode can a graph hold these. Not every library has them, so they come last.
CUmemLocation Here(const Scene& scene) {
  CUmemLocation here = {};
  here.type = CU_MEM_LOCATION_TYPE_DEVICE;
  here.id = scene.device;
  return here;
}

CUresult BatchOfCopies(Scene& scene, CUstream stream) {
  CUdeviceptr to[] = {scene.memory, scene.memory + 64};
  CUdeviceptr from[] = {scene.memory + 128, scene.memory + 192};
  size_t sizes[] = {64, 64}, first = 0;
  CUmemcpyAttributes how = {};
  how.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return cuMemcpyBatchAsync(to, from, sizes, 2, &how, &first, 1, stream);
}

CUresult BatchOfBoxes(Scene& scene, CUstream stream) {
  CUDA_MEMCPY3D_BATCH_OP copy = {};
  copy.src.type = copy.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  copy.src.op.ptr.ptr = scene.memory;
  copy.dst.op.ptr.ptr = scene.memory + 128;
  copy.extent = {16, 2, 1};
  copy.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return cuMemcpy3DBatchAsync(1, &copy, 0, stream);
}

CUdeviceptr managed = 0;

const std::vector<Call> kNever = {
    {"cuMemcpyBatchAsync", [](Scene& s) { return BatchOfCopies(s, s.stream); }},
    {"cuMemcpyBatchAsync elsewhere", [](Scene& s) { return BatchOfCopies(s, s.other); }},
    {"cuMemcpyBatchAsync of legacy", [](Scene& s) { return BatchOfCopies(s, nullptr); }},
    {"cuMemcpy3DBatchAsync", [](Scene& s) { return BatchOfBoxes(s, s.stream); }},
    {"cuMemcpy3DBatchAsync elsewhere", [](Scene& s) { return BatchOfBoxes(s, s.other); }},
    CALL(cuMemPrefetchAsync(managed, 64, Here(s), 0, s.stream)),
    CALL(cuMemPrefetchAsync(managed, 64, Here(s), 0, s.other)),
    CALL(cuMemPrefetchAsync(managed, 64, Here(s), 0, nullptr)),
    CALL(cuStreamAttachMemAsync(s.stream, managed, 0, CU_MEM_ATTACH_GLOBAL)),
};

// An event that was recorded in a capture which has ended, and what makes it an ordinary one.
void AfterTheEnd(Scene& s) {
  CUgraph graph = nullptr;
  for (const bool spoilt : {false, true}) {
    CODE(cuStreamBeginCapture(s.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CODE(cuEventRecord(s.captured, s.stream));
    if (spoilt) CODE(cuStreamQuery(s.stream));
    CODE(cuStreamEndCapture(s.stream, &graph));
    if (graph != nullptr) cuGraphDestroy(graph);
    CODE(cuEventQuery(s.captured));
    CODE(cuEventSynchronize(s.captured));
    CODE(Elapsed(s.recorded, s.captured));
    CODE(cuStreamWaitEvent(s.other, s.captured, 0));
    CODE(cuStreamBeginCapture(s.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CODE(cuStreamWaitEvent(s.stream, s.captured, 0));
    CODE(cuStreamEndCapture(s.stream, &graph));
    if (graph != nullptr) cuGraphDestroy(graph);
    CODE(cuEventRecord(s.captured, s.other));
    CODE(cuEventSynchronize(s.captured));
    CODE(cuEventQuery(s.captured));
    CODE(Elapsed(s.recorded, s.captured));
  }
  CODE(cuEventRecordWithFlags(s.fresh, s.other, CU_EVENT_RECORD_EXTERNAL));
}

// A copy that waits takes place at once and is no part of the graph.
void CopyMeanwhile(Scene& s) {
  CUgraph graph = nullptr;
  size_t nodes = 99;
  const unsigned word = 77;
  unsigned back = 0;
  CODE(cuMemsetD32(s.memory, 5, 1));
  CODE(cuStreamBeginCapture(s.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CODE(cuMemcpyHtoD(s.memory, &word, sizeof word));
  CODE(cuMemcpyDtoH(&back, s.memory, sizeof back));
  VALUE(back);
  CODE(cuStreamEndCapture(s.stream, &graph));
  CODE(cuGraphGetNodes(graph, nullptr, &nodes));
  VALUE(nodes);
  CODE(cuGraphDestroy(graph));
}

}  // namespace

void Captures() {
  InContext in;
  CODE(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  Scene scene(in);
  TryAll(scene, kMemory);
  TryAll(scene, kOthers);
  CopyMeanwhile(scene);
  AfterTheEnd(scene);
  // The same beside the capture of a stream that is ordered with the legacy one.
  std::swap(scene.stream, scene.blocking);
  TryAll(scene, kMemory);
  TryAll(scene, kOthers);
  std::swap(scene.stream, scene.blocking);
  TryAll(scene, kNever);
  CODE(cuMemFree(managed));
}

}  // namespace conformance
