// What a session that moves takes along, of the kind that the argument names: graph, texture,
// context, link, unmapped or passing. With each line on standard input all of it is used, compared
// with a model on the host, and changed.
#include "driver_carried.h"

#include <functional>
#include <iostream>
#include <string>

using Step = std::function<void()>;

// A capture over two streams with copies from and to the program and a function of it, and a graph
// that was made node by node and whose executable was changed.
static Step Graph() {
  static Kernel kernel(kAdd);
  static Memory a(1), b(2), c(3), d(4);
  static unsigned sent = 100, come = 0, calls = 0, steps = 0;
  static CUstream stream = nullptr, side = nullptr;
  static CUgraphExec captured = nullptr, built = nullptr;
  CUevent fork = nullptr, join = nullptr;
  CUgraph graph = nullptr;
  for (CUstream* one : {&stream, &side}) {
    CHECK_DRIVER(cuStreamCreate(one, CU_STREAM_NON_BLOCKING));
  }
  for (CUevent* one : {&fork, &join}) CHECK_DRIVER(cuEventCreate(one, CU_EVENT_DISABLE_TIMING));
  CHECK_DRIVER(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CHECK_DRIVER(cuMemcpyHtoDAsync(a.address, &sent, sizeof sent, stream));
  kernel.Launch(a.address, stream);
  CHECK_DRIVER(cuEventRecord(fork, stream));
  CHECK_DRIVER(cuStreamWaitEvent(side, fork, 0));
  kernel.Launch(b.address, side);
  CHECK_DRIVER(cuEventRecord(join, side));
  CHECK_DRIVER(cuStreamWaitEvent(stream, join, 0));
  CHECK_DRIVER(cuMemcpyDtoHAsync(&come, b.address, sizeof come, stream));
  CHECK_DRIVER(cuLaunchHostFunc(
      stream, [](void* told) { ++*static_cast<unsigned*>(told); }, &calls));
  CHECK_DRIVER(cuStreamEndCapture(stream, &graph));
  CHECK_DRIVER(cuGraphInstantiate(&captured, graph, 0));
  CHECK_DRIVER(cuGraphDestroy(graph));

  CUgraphNode first = nullptr, second = nullptr;
  CUDA_MEMSET_NODE_PARAMS zero{c.address, 0, 77, 4, kCount, 1};
  CUcontext context = nullptr;
  unsigned count = kCount;
  void* parameters[] = {&c.address, &count};
  const CUDA_KERNEL_NODE_PARAMS add = kernel.Node(parameters);
  CHECK_DRIVER(cuCtxGetCurrent(&context));
  CHECK_DRIVER(cuGraphCreate(&graph, 0));
  CHECK_DRIVER(cuGraphAddMemsetNode(&first, graph, nullptr, 0, &zero, context));
  CHECK_DRIVER(cuGraphAddKernelNode(&second, graph, &first, 1, &add));
  CHECK_DRIVER(cuGraphInstantiate(&built, graph, 0));
  parameters[0] = &d.address;
  CHECK_DRIVER(cuGraphExecKernelNodeSetParams(built, second, &add));

  return [] {
    ++sent;
    CHECK_DRIVER(cuGraphLaunch(captured, stream));
    CHECK_DRIVER(cuGraphLaunch(built, stream));
    CHECK_DRIVER(cuStreamSynchronize(stream));
    a.model[0] = sent;
    for (Memory* one : {&a, &b, &d}) one->Added();
    c.model.assign(kCount, 77);
    EXPECT(come == b.model[0], "%u came, not %u", come, b.model[0]);
    EXPECT(calls == ++steps, "the function was called %u times, not %u", calls, steps);
    a.Expect("a");
    b.Expect("b");
    c.Expect("c");
    d.Expect("d");
  };
}

// out[y * 32 + x] = the texture at (x, y); then the surface gets 3 more than that.
static const char kTextures[] = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .entry Read(.param .u64 texture, .param .u64 surface, .param .u64 out)
{
  .reg .b32 %r<10>;
  .reg .b64 %rd<6>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  ld.param.u64 %rd1, [texture];
  tex.2d.v4.u32.s32 {%r3, %r4, %r5, %r6}, [%rd1, {%r1, %r2}];
  mad.lo.u32 %r7, %r2, 32, %r1;
  ld.param.u64 %rd2, [out];
  mul.wide.u32 %rd4, %r7, 4;
  add.s64 %rd4, %rd2, %rd4;
  st.global.u32 [%rd4], %r3;
  ld.param.u64 %rd5, [surface];
  add.u32 %r8, %r3, 3;
  shl.b32 %r9, %r1, 2;
  sust.b.2d.b32.trap [%rd5, {%r9, %r2}], {%r8};
  ret;
}
)";
constexpr size_t kWidth = 32, kHeight = 32;

static CUDA_MEMCPY2D CopyOf(CUarray array, std::vector<unsigned>& host, bool to_host,
                            size_t width) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = to_host ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
  copy.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
  (to_host ? copy.srcArray : copy.dstArray) = array;
  copy.srcHost = copy.dstHost = host.data();
  copy.WidthInBytes = width * sizeof(unsigned);
  copy.Height = width;
  return copy;
}

// A texture and a surface of one array, and two levels of another.
static Step Texture() {
  static CUfunction read = nullptr;
  static std::vector<unsigned> model(kWidth * kHeight), level(16 * 16);
  static CUtexObject texture = 0;
  static CUsurfObject surface = 0;
  static CUdeviceptr out = 0;
  static CUmipmappedArray levels = nullptr;
  CUmodule module = nullptr;
  CUarray array = nullptr, small = nullptr;
  CHECK_DRIVER(cuModuleLoadData(&module, kTextures));
  CHECK_DRIVER(cuModuleGetFunction(&read, module, "Read"));
  CUDA_ARRAY3D_DESCRIPTOR shape{
      kWidth, kHeight, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST};
  CHECK_DRIVER(cuArray3DCreate(&array, &shape));
  CHECK_DRIVER(cuMipmappedArrayCreate(&levels, &shape, 2));
  CHECK_DRIVER(cuMipmappedArrayGetLevel(&small, levels, 1));
  for (unsigned i = 0; i < model.size(); ++i) model[i] = i * 3;
  for (unsigned i = 0; i < level.size(); ++i) level[i] = i * 11;
  CUDA_MEMCPY2D copy = CopyOf(array, model, false, kWidth);
  CHECK_DRIVER(cuMemcpy2D(&copy));
  copy = CopyOf(small, level, false, 16);
  CHECK_DRIVER(cuMemcpy2D(&copy));
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC how{};
  how.flags = CU_TRSF_READ_AS_INTEGER;
  CHECK_DRIVER(cuTexObjectCreate(&texture, &resource, &how, nullptr));
  CHECK_DRIVER(cuSurfObjectCreate(&surface, &resource));
  CHECK_DRIVER(cuMemAlloc(&out, model.size() * sizeof(unsigned)));
  return [] {
    void* parameters[] = {&texture, &surface, &out};
    std::vector<unsigned> found(model.size());
    CHECK_DRIVER(
        cuLaunchKernel(read, kHeight, 1, 1, kWidth, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK_DRIVER(cuMemcpyDtoH(found.data(), out, found.size() * sizeof(unsigned)));
    EXPECT(found == model, "the texture has %u first, not %u", found[0], model[0]);
    for (unsigned& one : model) one += 3;
    CUarray second = nullptr;
    CHECK_DRIVER(cuMipmappedArrayGetLevel(&second, levels, 1));
    std::vector<unsigned> read_back(level.size());
    CUDA_MEMCPY2D copy = CopyOf(second, read_back, true, 16);
    CHECK_DRIVER(cuMemcpy2D(&copy));
    EXPECT(read_back == level, "the level has %u first, not %u", read_back[0], level[0]);
    for (unsigned& one : level) ++one;
    copy = CopyOf(second, level, false, 16);
    CHECK_DRIVER(cuMemcpy2D(&copy));
  };
}

// A context beside the primary one, with code, memory, a stream and events of its own.
static Step Contexts() {
  static CUcontext primary = nullptr, own = nullptr;
  CHECK_DRIVER(cuCtxGetCurrent(&primary));
  static Kernel here(kAdd);
  static Memory a(1);
  CUdevice device = 0;
  CHECK_DRIVER(cuCtxGetDevice(&device));
  CHECK_DRIVER(cuCtxCreate(&own, nullptr, 0, device));
  static Kernel there(kAdd);
  static Memory b(2);
  static CUstream stream = nullptr;
  static CUevent begin = nullptr, end = nullptr;
  CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (CUevent* one : {&begin, &end}) CHECK_DRIVER(cuEventCreate(one, 0));
  CHECK_DRIVER(cuEventRecord(begin, stream));
  return [] {
    CHECK_DRIVER(cuCtxSetCurrent(primary));
    here.Launch(a.address, nullptr);
    a.Added();
    a.Expect("a");
    CHECK_DRIVER(cuCtxSetCurrent(own));
    there.Launch(b.address, stream);
    CHECK_DRIVER(cuEventRecord(end, stream));
    CHECK_DRIVER(cuStreamSynchronize(stream));
    b.Added();
    b.Expect("b");
    float milliseconds = -1;
    static float longest = 0;
    CHECK_DRIVER(cuEventElapsedTime(&milliseconds, begin, end));
    EXPECT(milliseconds >= longest, "%g ms, and before %g", static_cast<double>(milliseconds),
           static_cast<double>(longest));
    longest = milliseconds;
  };
}

// Code that was linked when the program ran.
static Step Link() {
  CUlinkState link = nullptr;
  void* image = nullptr;
  size_t bytes = 0;
  CHECK_DRIVER(cuLinkCreate(0, nullptr, nullptr, &link));
  CHECK_DRIVER(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(kAdd), sizeof kAdd, "add", 0,
                             nullptr, nullptr));
  CHECK_DRIVER(cuLinkComplete(link, &image, &bytes));
  static Kernel kernel(image);
  CHECK_DRIVER(cuLinkDestroy(link));
  static Memory a(1);
  return [] {
    kernel.Launch(a.address, nullptr);
    a.Added();
    a.Expect("a");
  };
}

// Memory that is mapped nowhere between two steps, and memory that nobody may access then.
static Step Unmapped() {
  static CUmemGenericAllocationHandle chunk = 0;
  static CUdeviceptr address = 0;
  static size_t bytes = 0;
  static CUmemAccessDesc access{};
  static unsigned value = 1234567;
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CHECK_DRIVER(cuMemGetAllocationGranularity(&bytes, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK_DRIVER(cuMemAddressReserve(&address, bytes, 0, 0, 0));
  CHECK_DRIVER(cuMemCreate(&chunk, bytes, &kind, 0));
  access.location = kind.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CHECK_DRIVER(cuMemMap(address, bytes, 0, chunk, 0));
  CHECK_DRIVER(cuMemSetAccess(address, bytes, &access, 1));
  CHECK_DRIVER(cuMemsetD32(address, value, bytes / 4));
  CHECK_DRIVER(cuCtxSynchronize());
  CHECK_DRIVER(cuMemUnmap(address, bytes));
  return [] {
    std::vector<unsigned> found(bytes / 4);
    CHECK_DRIVER(cuMemMap(address, bytes, 0, chunk, 0));
    CHECK_DRIVER(cuMemSetAccess(address, bytes, &access, 1));
    CHECK_DRIVER(cuMemcpyDtoH(found.data(), address, bytes));
    for (unsigned one : found) EXPECT(one == value, "it is %u, not %u", one, value);
    CHECK_DRIVER(cuMemsetD32(address, ++value, bytes / 4));
    CHECK_DRIVER(cuCtxSynchronize());
    CHECK_DRIVER(cuMemUnmap(address, bytes));
  };
}

// What a program makes and destroys all the time: some hundred thousand events, graphs that are
// captured anew for an executable, changes of that, and streams. It is more than could be written
// down.
static Step Passing() {
  static Kernel kernel(kAdd);
  static Memory a(1), b(2);
  static CUstream stream = nullptr;
  static CUgraphExec exec = nullptr;
  static CUgraphNode node = nullptr;
  CUgraph graph = nullptr;
  CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  static const auto capture = [](CUgraph* captured, const Memory& memory) {
    CHECK_DRIVER(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    kernel.Launch(memory.address, stream);
    CHECK_DRIVER(cuStreamEndCapture(stream, captured));
  };
  capture(&graph, a);
  size_t nodes = 1;
  CHECK_DRIVER(cuGraphGetNodes(graph, &node, &nodes));
  CHECK_DRIVER(cuGraphInstantiate(&exec, graph, 0));
  static const auto change = [](Memory& memory) {
    unsigned count = kCount;
    void* parameters[] = {&memory.address, &count};
    const CUDA_KERNEL_NODE_PARAMS add = kernel.Node(parameters);
    CHECK_DRIVER(cuGraphExecKernelNodeSetParams(exec, node, &add));
    CHECK_DRIVER(cuGraphLaunch(exec, stream));
    memory.Added();
  };
  return [] {
    for (int i = 0; i < 1000; ++i) {
      CUgraph passing = nullptr;
      CUstream side = nullptr;
      CUgraphExecUpdateResultInfo info = {};
      Memory& memory = i % 2 == 0 ? a : b;
      CHECK_DRIVER(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
      for (int k = 0; k < 600; ++k) {
        CUevent event = nullptr;
        CHECK_DRIVER(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        if (k == 0) CHECK_DRIVER(cuEventRecord(event, stream));
        if (k == 0) CHECK_DRIVER(cuStreamWaitEvent(side, event, 0));
        CHECK_DRIVER(cuEventDestroy(event));
      }
      capture(&passing, memory);
      CHECK_DRIVER(cuGraphExecUpdate(exec, passing, &info));
      CHECK_DRIVER(cuGraphDestroy(passing));
      CHECK_DRIVER(cuGraphLaunch(exec, stream));
      memory.Added();
      for (int k = 0; k < 10; ++k) change(k % 2 == 0 ? b : a);
      CHECK_DRIVER(cuStreamDestroy(side));
    }
    CHECK_DRIVER(cuGraphLaunch(exec, stream));  // as the last change left it
    a.Added();
    CHECK_DRIVER(cuStreamSynchronize(stream));
    a.Expect("the first memory");
    b.Expect("the second memory");
  };
}

int main(int count, char** words) {
  const std::string kind = count == 2 ? words[1] : "";
  CUdevice device = 0;
  CUcontext context = nullptr;
  CHECK_DRIVER(cuInit(0));
  CHECK_DRIVER(cuDeviceGet(&device, 0));
  CHECK_DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  CHECK_DRIVER(cuCtxSetCurrent(context));
  Step step;
  if (kind == "graph") step = Graph();
  if (kind == "texture") step = Texture();
  if (kind == "context") step = Contexts();
  if (kind == "link") step = Link();
  if (kind == "unmapped") step = Unmapped();
  if (kind == "passing") step = Passing();
  EXPECT(step != nullptr, "'%s' is none of graph, texture, context, link, unmapped, passing",
         kind.c_str());
  std::cout << "READY" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    step();
    std::cout << "RIGHT" << std::endl;
  }
  std::cout << "PASS driver_carried" << std::endl;
  return 0;
}
