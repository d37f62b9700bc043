// For the tests of memory limits: takes memory of one kind, as much of it as it gets, gives it
// back, and takes it again. KIND is a name of kKinds, MIB what is asked for at a time, TIMES how
// often at most. With "hold" it keeps what it has got the second time until a line of input comes.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "driver_program.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;

CUdevice device = 0;
CUcontext context = nullptr;
CUstream stream = nullptr;

// One thing that has memory, and what gives it back.
struct Thing {
  CUresult code = CUDA_SUCCESS;
  std::function<void()> free = [] {};
};

CUDA_ARRAY3D_DESCRIPTOR Shape(size_t width, size_t height, size_t depth) {
  return {width, height, depth, CU_AD_FORMAT_FLOAT, 1, 0};
}

Thing Linear(size_t mib) {
  CUdeviceptr address = 0;
  CUresult code = cuMemAlloc(&address, mib * kMiB);
  return {code, [=] { CHECK_DRIVER(cuMemFree(address)); }};
}

Thing Array(size_t mib) {
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR shape = {1024, mib * 256, CU_AD_FORMAT_FLOAT, 1};
  CUresult code = cuArrayCreate(&array, &shape);
  return {code, [=] { CHECK_DRIVER(cuArrayDestroy(array)); }};
}

Thing Array3d(size_t mib) {
  CUarray array = nullptr;
  const auto shape = Shape(256, 128, mib * 8);
  CUresult code = cuArray3DCreate(&array, &shape);
  return {code, [=] { CHECK_DRIVER(cuArrayDestroy(array)); }};
}

Thing Mipmapped(size_t mib) {
  CUmipmappedArray array = nullptr;
  const auto shape = Shape(1024, mib * 256, 0);
  CUresult code = cuMipmappedArrayCreate(&array, &shape, 4);
  return {code, [=] { CHECK_DRIVER(cuMipmappedArrayDestroy(array)); }};
}

Thing Pool(size_t mib) {
  CUdeviceptr address = 0;
  CUresult code = cuMemAllocAsync(&address, mib * kMiB, stream);
  return {code, [=] {
            CHECK_DRIVER(cuMemFreeAsync(address, stream));
            CHECK_DRIVER(cuStreamSynchronize(stream));
          }};
}

Thing Physical(size_t mib) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  CUmemGenericAllocationHandle handle = 0;
  CUresult code = cuMemCreate(&handle, mib * kMiB, &properties, 0);
  return {code, [=] { CHECK_DRIVER(cuMemRelease(handle)); }};
}

Thing Managed(size_t mib) {
  CUdeviceptr address = 0;
  CUresult code = cuMemAllocManaged(&address, mib * kMiB, CU_MEM_ATTACH_GLOBAL);
  return {code, [=] { CHECK_DRIVER(cuMemFree(address)); }};
}

// Of a graph that allocates memory and frees it: the executable, launched once.
Thing Executable(CUgraph graph) {
  CUgraphExec exec = nullptr;
  CUresult code = cuGraphInstantiateWithFlags(&exec, graph, 0);
  if (code != CUDA_SUCCESS) CHECK_DRIVER(cuGraphDestroy(graph));
  if (code == CUDA_SUCCESS) code = cuGraphLaunch(exec, stream);
  if (code == CUDA_SUCCESS) code = cuStreamSynchronize(stream);
  return {code, [=] {
            CHECK_DRIVER(cuGraphExecDestroy(exec));
            CHECK_DRIVER(cuGraphDestroy(graph));
          }};
}

Thing Graph(size_t mib) {
  CUgraph graph = nullptr;
  CUgraphNode allocate = nullptr, free = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
  parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  parameters.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  parameters.bytesize = mib * kMiB;
  CHECK_DRIVER(cuGraphCreate(&graph, 0));
  CUresult code = cuGraphAddMemAllocNode(&allocate, graph, nullptr, 0, &parameters);
  if (code != CUDA_SUCCESS) {
    CHECK_DRIVER(cuGraphDestroy(graph));
    return {code};
  }
  CHECK_DRIVER(cuGraphAddMemFreeNode(&free, graph, &allocate, 1, parameters.dptr));
  return Executable(graph);
}

Thing Captured(size_t mib) {
  CUgraph graph = nullptr;
  CUdeviceptr address = 0;
  CHECK_DRIVER(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CHECK_DRIVER(cuMemAllocAsync(&address, mib * kMiB, stream));
  CHECK_DRIVER(cuMemFreeAsync(address, stream));
  CHECK_DRIVER(cuStreamEndCapture(stream, &graph));
  return Executable(graph);
}

std::string Variable(size_t mib) {
  return ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 4 .b8 table[" +
         std::to_string(mib * kMiB) + "];\n.visible .entry Nothing() { ret; }\n";
}

Thing Module(size_t mib) {
  CUmodule module = nullptr;
  CUresult code = cuModuleLoadData(&module, Variable(mib).c_str());
  return {code, [=] { CHECK_DRIVER(cuModuleUnload(module)); }};
}

Thing Library(size_t mib) {
  CUlibrary library = nullptr;
  CUresult code =
      cuLibraryLoadData(&library, Variable(mib).c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  CUdeviceptr address = 0;
  size_t bytes = 0;
  if (code == CUDA_SUCCESS) code = cuLibraryGetGlobal(&address, &bytes, library, "table");
  return {code, [=] { CHECK_DRIVER(cuLibraryUnload(library)); }};
}

// In a context of its own, which is gone afterwards.
Thing Limit(CUlimit limit, size_t more) {
  CUcontext own = nullptr;
  CHECK_DRIVER(cuCtxCreate(&own, nullptr, 0, device));
  size_t value = 0;
  CHECK_DRIVER(cuCtxGetLimit(&value, limit));
  CUresult code = cuCtxSetLimit(limit, value + more);
  auto end = [=] { CHECK_DRIVER(cuCtxDestroy(own)); };
  if (code != CUDA_SUCCESS) end();
  CHECK_DRIVER(cuCtxSetCurrent(context));
  return {code, end};
}

Thing Heap(size_t mib) { return Limit(CU_LIMIT_MALLOC_HEAP_SIZE, mib * kMiB); }
Thing Printing(size_t mib) { return Limit(CU_LIMIT_PRINTF_FIFO_SIZE, mib * kMiB); }
Thing Stack(size_t mib) {
  int processors = 0, threads = 0;
  CHECK_DRIVER(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  CHECK_DRIVER(
      cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device));
  size_t at_once = static_cast<size_t>(processors) * static_cast<size_t>(threads);
  return Limit(CU_LIMIT_STACK_SIZE, mib * kMiB / at_once / 16 * 16);
}

// The session keeps what is freed, for the next allocation.
Thing ArrayAfterLinear(size_t mib) {
  Thing linear = Linear(mib);
  if (linear.code != CUDA_SUCCESS) return linear;
  linear.free();
  return Array(mib);
}

const std::map<std::string, Thing (*)(size_t)> kKinds = {
    {"linear", Linear},       {"array", Array},     {"array3d", Array3d},
    {"mipmapped", Mipmapped}, {"pool", Pool},       {"physical", Physical},
    {"managed", Managed},     {"graph", Graph},     {"captured", Captured},
    {"module", Module},       {"library", Library}, {"heap", Heap},
    {"printing", Printing},   {"stack", Stack},     {"array_after_linear", ArrayAfterLinear}};

std::vector<Thing> Take(Thing (*kind)(size_t), size_t mib, size_t times) {
  std::vector<Thing> things;
  const char* name = "nothing";
  while (things.size() < times) {
    Thing thing = kind(mib);
    cuGetErrorName(thing.code, &name);
    if (thing.code != CUDA_SUCCESS) break;
    things.push_back(thing);
  }
  std::printf("%zu then %s\n", things.size(), name);
  std::fflush(stdout);
  return things;
}

void Free(std::vector<Thing>& things) {
  for (Thing& thing : things) thing.free();
  CHECK_DRIVER(cuCtxSynchronize());
}

}  // namespace

int main(int count, char** arguments) {
  EXPECT(count > 3 && kKinds.count(arguments[1]) == 1, "usage: KIND MIB TIMES [hold]");
  context = OpenContext(&device);
  CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  auto* kind = kKinds.at(arguments[1]);
  const size_t mib = std::strtoull(arguments[2], nullptr, 10);
  const size_t times = std::strtoull(arguments[3], nullptr, 10);
  auto things = Take(kind, mib, times);
  Free(things);
  things = Take(kind, mib, times);
  if (count > 4) {
    std::printf("READY\n");
    std::fflush(stdout);
    (void)std::getchar();
  }
  Free(things);
  std::printf("PASS\n");
  return 0;
}
