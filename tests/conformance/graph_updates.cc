// Changes of executables: of single nodes of every kind, and by a graph as a whole.
#include "check.h"

namespace conformance {
namespace {

void NoFunction(void*) {}
void OtherFunction(void*) {}

struct Parts {
  CUcontext context = nullptr;
  CUfunction fill = nullptr, add = nullptr, nothing = nullptr;
  CUdeviceptr memory = 0, other = 0, variable = 0;
  CUevent event = nullptr, second = nullptr;
  char host[256] = {};

  CUDA_KERNEL_NODE_PARAMS Kernel(CUfunction function, unsigned blocks = 1) {
    static CUdeviceptr out;
    static unsigned value = 3;
    static void* parameters[] = {&out, &value};
    out = memory;
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = function;
    params.gridDimX = blocks;
    params.gridDimY = params.gridDimZ = params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = parameters;
    return params;
  }
  static CUDA_MEMCPY3D Copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, size_t rows = 1) {
    CUDA_MEMCPY3D copy = {};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    copy.dstDevice = to;
    copy.WidthInBytes = bytes;
    copy.Height = rows;
    copy.Depth = 1;
    if (rows > 1) copy.srcPitch = copy.dstPitch = 512;
    return copy;
  }
  CUDA_MEMCPY3D Upload(CUdeviceptr to) {
    CUDA_MEMCPY3D copy = Copy(to, 0, 64);
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host;
    return copy;
  }
  static CUDA_MEMSET_NODE_PARAMS Set(CUdeviceptr to, unsigned value, size_t width,
                                     unsigned element = 4, size_t rows = 1) {
    return {to, rows > 1 ? 512u : 0u, value, element, width, rows};
  }
};

// One node of each kind, in a row.
struct Chain {
  CUgraph graph = nullptr;
  CUgraphNode kernel = nullptr, copy = nullptr, set = nullptr, host = nullptr, record = nullptr,
              wait = nullptr, empty = nullptr, child = nullptr, upload = nullptr;

  explicit Chain(Parts& p) {
    const CUDA_KERNEL_NODE_PARAMS launch = p.Kernel(p.fill);
    const CUDA_MEMCPY3D copied = Parts::Copy(p.memory, p.memory + 1024, 4);
    const CUDA_MEMCPY3D uploaded = p.Upload(p.memory);
    const CUDA_MEMSET_NODE_PARAMS filled = Parts::Set(p.memory, 1, 16);
    const CUDA_HOST_NODE_PARAMS called = {NoFunction, nullptr};
    CUgraph inner = nullptr;
    CUgraphNode within = nullptr;
    CODE(cuGraphCreate(&graph, 0));
    CODE(cuGraphCreate(&inner, 0));
    CODE(cuGraphAddMemsetNode(&within, inner, nullptr, 0, &filled, p.context));
    CODE(cuGraphAddKernelNode(&kernel, graph, nullptr, 0, &launch));
    CODE(cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &copied, p.context));
    CODE(cuGraphAddMemcpyNode(&upload, graph, &copy, 1, &uploaded, p.context));
    CODE(cuGraphAddMemsetNode(&set, graph, &upload, 1, &filled, p.context));
    CODE(cuGraphAddHostNode(&host, graph, &set, 1, &called));
    CODE(cuGraphAddEventRecordNode(&record, graph, &host, 1, p.event));
    CODE(cuGraphAddEventWaitNode(&wait, graph, &record, 1, p.event));
    CODE(cuGraphAddEmptyNode(&empty, graph, &wait, 1));
    CODE(cuGraphAddChildGraphNode(&child, graph, &empty, 1, inner));
    CODE(cuGraphDestroy(inner));
  }
  ~Chain() { CODE(cuGraphDestroy(graph)); }
};

void Kernels(Parts& p, const Chain& chain, CUgraphExec exec) {
  CUDA_KERNEL_NODE_PARAMS params = p.Kernel(p.fill, 2);
  CODE(cuGraphExecKernelNodeSetParams(exec, chain.kernel, &params));
  params = p.Kernel(p.add);
  CODE(cuGraphExecKernelNodeSetParams(exec, chain.kernel, &params));
  params = p.Kernel(p.fill, 0);
  CODE(cuGraphExecKernelNodeSetParams(exec, chain.kernel, &params));
  params = p.Kernel(p.fill);
  params.blockDimX = 4096;
  CODE(cuGraphExecKernelNodeSetParams(exec, chain.kernel, &params));
  params = p.Kernel(p.fill);
  CODE(cuGraphExecKernelNodeSetParams(exec, chain.copy, &params));
  CODE(cuGraphExecKernelNodeSetParams(nullptr, chain.kernel, &params));
}

void Copies(Parts& p, const Chain& chain, CUgraphExec exec) {
  const struct {
    const char* name;
    CUDA_MEMCPY3D copy;
  } kChanges[] = {
      {"other source", Parts::Copy(p.memory, p.memory + 2048, 4)},
      {"both other", Parts::Copy(p.other, p.other + 2048, 4)},
      {"more bytes", Parts::Copy(p.other, p.other + 2048, 512)},
      {"other alignment", Parts::Copy(p.other + 1, p.other + 2049, 3)},
      {"two rows", Parts::Copy(p.memory, p.memory + 2048, 4, 2)},
      {"nothing", Parts::Copy(p.memory, p.memory + 2048, 0)},
      {"from the host", p.Upload(p.memory)},
      {"to null", Parts::Copy(0, p.memory, 4)},
      {"over the end", Parts::Copy(p.memory, p.memory + 4092, 8)},
  };
  for (const auto& [name, copy] : kChanges) {
    const CUresult result = cuGraphExecMemcpyNodeSetParams(exec, chain.copy, &copy, p.context);
    std::printf("graph_updates.cc:copy, %s = %d\n", name, result);
  }
  for (const auto& [name, copy] : kChanges) {
    const CUresult result = cuGraphExecMemcpyNodeSetParams(exec, chain.upload, &copy, p.context);
    std::printf("graph_updates.cc:upload, %s = %d\n", name, result);
  }
  const CUDA_MEMCPY3D global = Parts::Copy(p.memory, p.variable, 4);
  const CUresult result = cuGraphExecMemcpyNodeSetParams(exec, chain.copy, &global, p.context);
  std::printf("graph_updates.cc:copy, from a module's variable = %d\n", result);
  CODE(cuGraphExecMemcpyNodeSetParams(exec, chain.kernel, &kChanges[0].copy, p.context));
}

void Fills(Parts& p, const Chain& chain, CUgraphExec exec) {
  const struct {
    const char* name;
    CUDA_MEMSET_NODE_PARAMS set;
  } kChanges[] = {
      {"other value", Parts::Set(p.memory, 9, 16)},
      {"other place", Parts::Set(p.other, 9, 16)},
      {"more", Parts::Set(p.other, 9, 64)},
      {"bytes", Parts::Set(p.memory, 9, 16, 1)},
      {"elements of three bytes", Parts::Set(p.memory, 9, 16, 3)},
      {"wrong alignment", Parts::Set(p.memory + 2, 9, 16)},
      {"two rows", Parts::Set(p.memory, 9, 16, 4, 2)},
      {"nothing", Parts::Set(p.memory, 9, 0)},
      {"null", Parts::Set(0, 9, 16)},
  };
  for (const auto& [name, set] : kChanges) {
    const CUresult result = cuGraphExecMemsetNodeSetParams(exec, chain.set, &set, p.context);
    std::printf("graph_updates.cc:fill, %s = %d\n", name, result);
  }
  CODE(cuGraphExecMemsetNodeSetParams(exec, chain.host, &kChanges[0].set, p.context));
}

void Others(Parts& p, const Chain& chain, CUgraphExec exec) {
  CUDA_HOST_NODE_PARAMS called = {OtherFunction, &p};
  CODE(cuGraphExecHostNodeSetParams(exec, chain.host, &called));
  CODE(cuGraphExecHostNodeSetParams(exec, chain.set, &called));
  called.fn = nullptr;
  CODE(cuGraphExecHostNodeSetParams(exec, chain.host, &called));
  CODE(cuGraphExecEventRecordNodeSetEvent(exec, chain.record, p.second));
  CODE(cuGraphExecEventWaitNodeSetEvent(exec, chain.wait, p.second));
  CODE(cuGraphExecEventRecordNodeSetEvent(exec, chain.wait, p.second));
  CODE(cuGraphExecEventWaitNodeSetEvent(exec, chain.record, p.second));
  CODE(cuGraphExecEventRecordNodeSetEvent(exec, chain.record, nullptr));
  for (const CUgraphNode node : {chain.kernel, chain.copy, chain.set, chain.host, chain.record,
                                 chain.wait, chain.empty, chain.child}) {
    unsigned enabled = 7;
    CODE(cuGraphNodeGetEnabled(exec, node, &enabled));
    VALUE(enabled);
    CODE(cuGraphNodeSetEnabled(exec, node, 0));
    CODE(cuGraphNodeSetEnabled(exec, node, 1));
  }
  CUgraph same = nullptr, larger = nullptr;
  CUgraphNode node = nullptr, next = nullptr;
  const CUDA_MEMSET_NODE_PARAMS set = Parts::Set(p.other, 4, 16);
  for (CUgraph* graph : {&same, &larger}) {
    CODE(cuGraphCreate(graph, 0));
    CODE(cuGraphAddMemsetNode(&node, *graph, nullptr, 0, &set, p.context));
  }
  CODE(cuGraphAddEmptyNode(&next, larger, &node, 1));
  CODE(cuGraphExecChildGraphNodeSetParams(exec, chain.child, same));
  CODE(cuGraphExecChildGraphNodeSetParams(exec, chain.child, larger));
  CODE(cuGraphExecChildGraphNodeSetParams(exec, chain.empty, same));
  CODE(cuGraphExecChildGraphNodeSetParams(exec, chain.child, nullptr));
  CODE(cuGraphDestroy(same));
  CODE(cuGraphDestroy(larger));
}

void Update(const char* name, CUgraphExec exec, CUgraph graph) {
  CUgraphExecUpdateResultInfo info = {};
  const CUresult code = cuGraphExecUpdate(exec, graph, &info);
  std::printf("graph_updates.cc:update, %s = %d, result %d, a node %d, from a node %d\n", name,
              code, info.result, info.errorNode != nullptr, info.errorFromNode != nullptr);
}

void Whole(Parts& p) {
  CUgraph graph = nullptr;
  CUgraphNode first = nullptr, second = nullptr, third = nullptr;
  const CUDA_KERNEL_NODE_PARAMS launch = p.Kernel(p.fill);
  const CUDA_MEMSET_NODE_PARAMS set = Parts::Set(p.memory, 1, 16);
  CODE(cuGraphCreate(&graph, 0));
  CODE(cuGraphAddKernelNode(&first, graph, nullptr, 0, &launch));
  CODE(cuGraphAddMemsetNode(&second, graph, &first, 1, &set, p.context));
  CODE(cuGraphAddEmptyNode(&third, graph, &second, 1));
  CUgraphExec exec = nullptr;
  CODE(cuGraphInstantiate(&exec, graph, 0));
  Update("nothing new", exec, graph);
  CUDA_MEMSET_NODE_PARAMS other = Parts::Set(p.other, 2, 32);
  CODE(cuGraphMemsetNodeSetParams(second, &other));
  Update("another fill", exec, graph);
  other = Parts::Set(p.other, 2, 16, 4, 2);
  CODE(cuGraphMemsetNodeSetParams(second, &other));
  Update("a fill of two rows", exec, graph);
  other = Parts::Set(p.other, 2, 32);
  CODE(cuGraphMemsetNodeSetParams(second, &other));
  CUDA_KERNEL_NODE_PARAMS changed = p.Kernel(p.add);
  CODE(cuGraphKernelNodeSetParams(first, &changed));
  Update("another kernel", exec, graph);
  CUkernelNodeAttrValue cooperative = {};
  cooperative.cooperative = 1;
  CODE(cuGraphKernelNodeSetAttribute(first, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &cooperative));
  Update("a cooperative kernel", exec, graph);
  CODE(cuGraphRemoveDependencies(graph, &second, &third, nullptr, 1));
  Update("an edge less", exec, graph);
  CODE(cuGraphAddDependencies(graph, &first, &third, nullptr, 1));
  Update("another edge", exec, graph);
  CODE(cuGraphDestroyNode(third));
  Update("a node less", exec, graph);
  CODE(cuGraphAddMemsetNode(&third, graph, &second, 1, &set, p.context));
  Update("a node of another kind", exec, graph);
  CODE(cuGraphExecDestroy(exec));
  CODE(cuGraphDestroy(graph));
  CUgraphExecUpdateResultInfo info = {};
  CODE(cuGraphExecUpdate(nullptr, nullptr, &info));
}

// A child graph that is given away: its nodes are the executable's.
void Moved(Parts& p) {
  CUgraph parent = nullptr, child = nullptr, another = nullptr;
  CUgraphNode copy = nullptr, node = nullptr;
  const CUDA_MEMCPY3D from = Parts::Copy(p.memory, p.memory + 1024, 4);
  const CUDA_MEMCPY3D to = Parts::Copy(p.other, p.memory + 1028, 4);
  CODE(cuMemsetD32(p.memory + 1024, 111, 1));
  CODE(cuMemsetD32(p.memory + 1028, 222, 1));
  CODE(cuMemsetD32(p.other, 0, 1));
  for (CUgraph* graph : {&parent, &child, &another}) CODE(cuGraphCreate(graph, 0));
  CODE(cuGraphAddMemcpyNode(&copy, child, nullptr, 0, &from, p.context));
  CUgraphNodeParams params = {};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = child;
  params.graph.ownership = static_cast<CUgraphChildGraphNodeOwnership>(7);
  CODE(cuGraphAddNode(&node, parent, nullptr, nullptr, 0, &params));
  params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  CODE(cuGraphAddNode(&node, parent, nullptr, nullptr, 0, &params));
  CUgraphExec exec = nullptr, alone = nullptr;
  CUgraphNode again = nullptr;
  CUgraph told = nullptr;
  CODE(cuGraphChildGraphNodeGetGraph(node, &told));
  VALUE(told == child);
  CODE(cuGraphInstantiate(&exec, parent, 0));
  CODE(cuGraphExecMemcpyNodeSetParams(exec, copy, &to, p.context));
  CODE(cuGraphLaunch(exec, nullptr));
  CODE(cuCtxSynchronize());
  VALUE(DigestOf(p.other, 4) == DigestOf(p.memory + 1028, 4));
  CODE(cuGraphMemcpyNodeSetParams(copy, &to));
  CODE(cuGraphInstantiate(&alone, child, 0));
  CODE(cuGraphAddChildGraphNode(&again, another, nullptr, 0, child));
  CODE(cuGraphAddNode(&again, another, nullptr, nullptr, 0, &params));
  CODE(cuGraphDestroy(child));
  Update("with a moved graph", exec, child);
  Update("with its parent", exec, parent);
  CODE(cuGraphExecDestroy(exec));
  CODE(cuGraphDestroy(parent));
  CODE(cuGraphDestroy(another));
}

// Memory that a launch leaves allocated.
void Memory(Parts& p) {
  for (const unsigned long long flags :
       {0ull, (unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH}) {
    CUgraph graph = nullptr, freeing = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExec exec = nullptr, frees = nullptr;
    CUDA_MEM_ALLOC_NODE_PARAMS params = {};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params.bytesize = 4096;
    CODE(cuGraphCreate(&graph, 0));
    CODE(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
    CODE(cuGraphCreate(&freeing, 0));
    CODE(cuGraphAddMemFreeNode(&node, freeing, nullptr, 0, params.dptr));
    CODE(cuGraphInstantiate(&exec, graph, flags));
    CODE(cuGraphInstantiate(&frees, graph, 0));
    CODE(cuGraphInstantiate(&frees, freeing, 0));
    CODE(cuGraphLaunch(exec, nullptr));
    CODE(cuGraphLaunch(exec, nullptr));
    CODE(cuMemFreeAsync(params.dptr, nullptr));
    CODE(cuGraphLaunch(exec, nullptr));
    CODE(cuMemFree(params.dptr));
    CODE(cuGraphLaunch(exec, nullptr));
    CODE(cuGraphLaunch(frees, nullptr));
    CODE(cuGraphLaunch(exec, nullptr));
    CODE(cuGraphLaunch(exec, nullptr));
    CODE(cuMemFree(params.dptr));
    CODE(cuCtxSynchronize());
    CODE(cuGraphExecDestroy(exec));
    CODE(cuGraphExecDestroy(frees));
    CODE(cuGraphDestroy(graph));
    CODE(cuGraphDestroy(freeing));
  }
  VALUE(p.memory != 0);
}

}  // namespace

void GraphUpdates() {
  InContext in;
  Parts parts;
  CUmodule module = LoadKernels();
  size_t bytes = 0;
  parts.context = in.context;
  CODE(cuModuleGetFunction(&parts.fill, module, "Fill"));
  CODE(cuModuleGetFunction(&parts.add, module, "Add"));
  CODE(cuModuleGetFunction(&parts.nothing, module, "Nothing"));
  CODE(cuModuleGetGlobal(&parts.variable, &bytes, module, "counter"));
  for (CUdeviceptr* memory : {&parts.memory, &parts.other}) CODE(cuMemAlloc(memory, 4096));
  for (CUevent* event : {&parts.event, &parts.second}) CODE(cuEventCreate(event, 0));
  {
    Chain chain(parts);
    CUgraphExec exec = nullptr;
    CODE(cuGraphInstantiate(&exec, chain.graph, 0));
    Kernels(parts, chain, exec);
    Copies(parts, chain, exec);
    Fills(parts, chain, exec);
    Others(parts, chain, exec);
    CODE(cuGraphExecDestroy(exec));
  }
  Whole(parts);
  Moved(parts);
  Memory(parts);
  for (CUevent event : {parts.event, parts.second}) CODE(cuEventDestroy(event));
  for (CUdeviceptr memory : {parts.memory, parts.other}) CODE(cuMemFree(memory));
}

}  // namespace conformance
