// Handles are given out again: what is made in the place of another one that is gone has nothing of
// it. Of each kind the first one tells what is usual; then many are made, used and destroyed; and
// then new ones are asked.
#include <functional>
#include <vector>

#include "driver_check.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // references have nothing newer

constexpr int kRounds = 320, kAsked = 8;

using Facts = std::vector<long long>;

template <class Handle>
struct Kind {
  const char* name;
  std::function<Handle()> make;
  std::function<Handle()> make_other;  // that is used and destroyed
  std::function<void(Handle)> use;
  std::function<Facts(Handle)> facts;
  std::function<void(Handle)> destroy;
};

template <class Handle>
static void Recycle(const Kind<Handle>& kind) {
  const Handle first = kind.make();
  const Facts usual = kind.facts(first);
  kind.destroy(first);
  for (int i = 0; i < kRounds; ++i) {
    const Handle other = kind.make_other ? kind.make_other() : kind.make();
    kind.use(other);
    kind.destroy(other);
  }
  for (int i = 0; i < kAsked; ++i) {
    const Handle made = kind.make();
    const Facts found = kind.facts(made);
    for (size_t fact = 0; fact < usual.size(); ++fact) {
      EXPECT(found[fact] == usual[fact], "%s %d: fact %zu is %lld, not %lld", kind.name, i, fact,
             found[fact], usual[fact]);
    }
    kind.destroy(made);
  }
}

// Functions ------------------------------------------------------------------------------------

static const char kPlain[] = R"(
.version 7.8
.target sm_90
.address_size 64
.visible .entry Work() { ret; }
)";
static const char kClustered[] = R"(
.version 7.8
.target sm_90
.address_size 64
.visible .entry Work() .explicitcluster .reqnctapercluster 2 { ret; }
)";

static CUmodule Load(const char* text) {
  CUmodule module = nullptr;
  CHECK_DRIVER(cuModuleLoadData(&module, text));
  return module;
}

static CUfunction Work(CUmodule module) {
  CUfunction work = nullptr;
  CHECK_DRIVER(cuModuleGetFunction(&work, module, "Work"));
  return work;
}

static CUresult Launch(CUfunction function, unsigned blocks) {
  return cuLaunchKernel(function, blocks, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
}

static Facts FactsOfModule(CUmodule module) {
  const CUfunction work = Work(module);
  Facts facts;
  for (const CUfunction_attribute attribute :
       {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED}) {
    int value = -7;
    facts.push_back(cuFuncGetAttribute(&value, attribute, work));
    facts.push_back(value);
  }
  for (const unsigned blocks : {2u, 3u}) facts.push_back(Launch(work, blocks));
  CHECK_DRIVER(cuCtxSynchronize());
  return facts;
}

static void Functions() {
  Kind<CUmodule> kind{"function",    nullptr,
                      nullptr,       nullptr,
                      FactsOfModule, [](CUmodule module) { CHECK_DRIVER(cuModuleUnload(module)); }};
  kind.use = [](CUmodule module) {
    const CUfunction work = Work(module);
    CHECK_DRIVER(cuFuncSetAttribute(work, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 4096));
    CHECK_DRIVER(cuFuncSetAttribute(work, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    CHECK_DRIVER(Launch(work, 2));
  };
  kind.make = [] { return Load(kClustered); };
  kind.make_other = [] { return Load(kPlain); };
  Recycle(kind);
  std::swap(kind.make, kind.make_other);
  Recycle(kind);
}

// Streams and events ---------------------------------------------------------------------------

static CUstream NewStream(unsigned flags, int priority) {
  CUstream stream = nullptr;
  CHECK_DRIVER(cuStreamCreateWithPriority(&stream, flags, priority));
  return stream;
}

static void Streams() {
  int least = 0, greatest = 0;
  CHECK_DRIVER(cuCtxGetStreamPriorityRange(&least, &greatest));
  Kind<CUstream> kind{"stream", [] { return NewStream(0, 0); },
                      nullptr,  nullptr,
                      nullptr,  [](CUstream stream) { CHECK_DRIVER(cuStreamDestroy(stream)); }};
  kind.make_other = [greatest] { return NewStream(CU_STREAM_NON_BLOCKING, greatest); };
  kind.use = [](CUstream stream) {
    CHECK_DRIVER(cuLaunchHostFunc(
        stream, [](void*) {}, nullptr));
    CUgraph graph = nullptr;
    CHECK_DRIVER(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK_DRIVER(cuStreamEndCapture(stream, &graph));
    CHECK_DRIVER(cuGraphDestroy(graph));
  };
  kind.facts = [](CUstream stream) {
    unsigned flags = 77;
    int priority = 77;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    Facts facts = {cuStreamGetFlags(stream, &flags), cuStreamGetPriority(stream, &priority),
                   cuStreamIsCapturing(stream, &status)};
    facts.insert(facts.end(), {flags, priority, status});
    facts.push_back(cuStreamQuery(stream));
    facts.push_back(cuStreamSynchronize(stream));
    return facts;
  };
  Recycle(kind);
}

static void Events() {
  static CUstream capturing = NewStream(CU_STREAM_NON_BLOCKING, 0);
  Kind<CUevent> kind{"event", nullptr, nullptr,
                     nullptr, nullptr, [](CUevent event) { CHECK_DRIVER(cuEventDestroy(event)); }};
  kind.make = [] {
    CUevent event = nullptr;
    CHECK_DRIVER(cuEventCreate(&event, CU_EVENT_DEFAULT));
    return event;
  };
  kind.use = [](CUevent event) { CHECK_DRIVER(cuEventRecord(event, capturing)); };
  kind.facts = [](CUevent event) {
    float time = 0;
    return Facts{cuEventQuery(event), cuEventSynchronize(event),
                 cuEventElapsedTime(&time, event, event), cuStreamWaitEvent(nullptr, event, 0)};
  };
  CUgraph graph = nullptr;
  const CUevent first = kind.make();
  const Facts usual = kind.facts(first);
  kind.destroy(first);
  // All in one capture, which asking would break.
  CHECK_DRIVER(cuStreamBeginCapture(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
  for (int i = 0; i < kRounds; ++i) {
    const CUevent event = kind.make();
    kind.use(event);
    kind.destroy(event);
  }
  CHECK_DRIVER(cuStreamEndCapture(capturing, &graph));
  CHECK_DRIVER(cuGraphDestroy(graph));
  for (int i = 0; i < kAsked; ++i) {
    const CUevent event = kind.make();
    EXPECT(kind.facts(event) == usual, "event %d is not like the first one", i);
    kind.destroy(event);
  }
  Recycle(kind);  // and recorded, but not captured
  CHECK_DRIVER(cuStreamDestroy(capturing));
}

// What has facts of its own alone ----------------------------------------------------------------

static void References() {
  static CUdeviceptr memory = 0;
  CHECK_DRIVER(cuMemAlloc(&memory, 4096));
  Kind<CUtexref> kind{
      "texture reference", nullptr, nullptr, nullptr, nullptr, [](CUtexref texture) {
        CHECK_DRIVER(cuTexRefDestroy(texture));
      }};
  kind.make = [] {
    CUtexref texture = nullptr;
    CHECK_DRIVER(cuTexRefCreate(&texture));
    return texture;
  };
  kind.use = [](CUtexref texture) {
    size_t offset = 0;
    CHECK_DRIVER(cuTexRefSetFormat(texture, CU_AD_FORMAT_UNSIGNED_INT8, 4));
    CHECK_DRIVER(cuTexRefSetFlags(texture, CU_TRSF_READ_AS_INTEGER));
    CHECK_DRIVER(cuTexRefSetAddressMode(texture, 0, CU_TR_ADDRESS_MODE_MIRROR));
    CHECK_DRIVER(cuTexRefSetAddress(&offset, texture, memory, 4096));
  };
  kind.facts = [](CUtexref texture) {
    CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8;
    int channels = 0;
    unsigned flags = 99;
    CUaddress_mode mode = CU_TR_ADDRESS_MODE_WRAP;
    CUdeviceptr address = 0;
    Facts facts = {cuTexRefGetFormat(&format, &channels, texture),
                   cuTexRefGetFlags(&flags, texture), cuTexRefGetAddressMode(&mode, texture, 0),
                   cuTexRefGetAddress(&address, texture)};
    facts.insert(facts.end(), {format, channels, flags, mode, static_cast<long long>(address)});
    return facts;
  };
  Recycle(kind);
  CHECK_DRIVER(cuMemFree(memory));
}

static void Pools() {
  Kind<CUmemoryPool> kind{"pool",  nullptr,
                          nullptr, nullptr,
                          nullptr, [](CUmemoryPool pool) { CHECK_DRIVER(cuMemPoolDestroy(pool)); }};
  kind.make = [] {
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemoryPool pool = nullptr;
    CHECK_DRIVER(cuMemPoolCreate(&pool, &props));
    return pool;
  };
  kind.use = [](CUmemoryPool pool) {
    cuuint64_t threshold = 1 << 20;
    int off = 0;
    CHECK_DRIVER(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    CHECK_DRIVER(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off));
  };
  kind.facts = [](CUmemoryPool pool) {
    cuuint64_t threshold = 7;
    int reuse = 7;
    Facts facts = {cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
                   cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse)};
    facts.insert(facts.end(), {static_cast<long long>(threshold), reuse});
    return facts;
  };
  Recycle(kind);
}

static void Links() {
  Kind<CUlinkState> kind{"link",  nullptr,
                         nullptr, nullptr,
                         nullptr, [](CUlinkState link) { CHECK_DRIVER(cuLinkDestroy(link)); }};
  kind.make = [] {
    CUlinkState link = nullptr;
    CHECK_DRIVER(cuLinkCreate(0, nullptr, nullptr, &link));
    return link;
  };
  kind.use = [](CUlinkState link) {
    char name[] = "plain";
    CHECK_DRIVER(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(kPlain), sizeof kPlain,
                               name, 0, nullptr, nullptr));
  };
  kind.facts = [](CUlinkState link) {
    void* image = nullptr;
    size_t bytes = 0;
    const CUresult added = cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(kClustered),
                                         sizeof kClustered, "clustered", 0, nullptr, nullptr);
    return Facts{added, cuLinkComplete(link, &image, &bytes), image != nullptr};
  };
  Recycle(kind);
}

// Graphs and executables; a graph within another has a number of its own, too.
static void Graphs() {
  Kind<CUgraph> kind{"graph", nullptr, nullptr,
                     nullptr, nullptr, [](CUgraph graph) { CHECK_DRIVER(cuGraphDestroy(graph)); }};
  kind.make = [] {
    CUgraph graph = nullptr;
    CHECK_DRIVER(cuGraphCreate(&graph, 0));
    return graph;
  };
  kind.use = [&](CUgraph graph) {
    const CUgraph child = kind.make();
    CUgraphNode node = nullptr, inner = nullptr;
    CUgraph embedded = nullptr;
    CHECK_DRIVER(cuGraphAddEmptyNode(&inner, child, nullptr, 0));
    CHECK_DRIVER(cuGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
    CHECK_DRIVER(cuGraphChildGraphNodeGetGraph(node, &embedded));
    CHECK_DRIVER(cuGraphDestroy(child));
  };
  kind.facts = [](CUgraph graph) {
    size_t nodes = 7, edges = 7;
    Facts facts = {cuGraphGetNodes(graph, nullptr, &nodes),
                   cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges)};
    CUgraphExec exec = nullptr;
    cuuint64_t flags = 7;
    facts.push_back(cuGraphInstantiate(&exec, graph, 0));
    facts.push_back(cuGraphExecGetFlags(exec, &flags));
    facts.push_back(cuGraphExecDestroy(exec));
    facts.insert(facts.end(), {static_cast<long long>(nodes), static_cast<long long>(edges),
                               static_cast<long long>(flags)});
    return facts;
  };
  Recycle(kind);
}

int main() {
  CUcontext context = nullptr;
  CHECK_DRIVER(cuInit(0));
  CHECK_DRIVER(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK_DRIVER(cuCtxSetCurrent(context));
  Functions();
  Streams();
  Events();
  References();
  Pools();
  Links();
  Graphs();
  std::printf("PASS driver_recycled\n");
  return 0;
}
