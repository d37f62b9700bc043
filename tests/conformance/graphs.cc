// Graphs that a program builds, and what can be asked and changed.
#include "check.h"

namespace conformance {
namespace {

struct Built {
  CUgraph graph = nullptr;
  CUgraphNode first = nullptr, kernel = nullptr, last = nullptr, empty = nullptr;
};

CUDA_MEMSET_NODE_PARAMS Memset(CUdeviceptr memory, unsigned value) {
  CUDA_MEMSET_NODE_PARAMS parameters = {};
  parameters.dst = memory;
  parameters.elementSize = 4;
  parameters.value = value;
  parameters.width = 256;
  parameters.height = 1;
  return parameters;
}

Built Build(CUcontext context, CUfunction add, CUdeviceptr memory) {
  Built built;
  static CUdeviceptr address;
  static unsigned value = 3;
  address = memory;
  static void* parameters[] = {&address, &value};
  CUDA_KERNEL_NODE_PARAMS kernel = {};
  kernel.func = add;
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = 256;
  kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = parameters;
  CUDA_MEMSET_NODE_PARAMS set = Memset(memory, 10), other = Memset(memory + 2048, 11);
  CODE(cuGraphCreate(&built.graph, 0));
  CODE(cuGraphAddMemsetNode(&built.first, built.graph, nullptr, 0, &set, context));
  CODE(cuGraphAddKernelNode(&built.kernel, built.graph, &built.first, 1, &kernel));
  CODE(cuGraphAddMemsetNode(&built.last, built.graph, &built.kernel, 1, &other, context));
  CODE(cuGraphAddEmptyNode(&built.empty, built.graph, &built.last, 1));
  return built;
}

void Ask(const Built& built) {
  size_t count = 0;
  CODE(cuGraphGetNodes(built.graph, nullptr, &count));
  VALUE(count);
  CODE(cuGraphGetRootNodes(built.graph, nullptr, &count));
  VALUE(count);
  CODE(cuGraphGetEdges(built.graph, nullptr, nullptr, nullptr, &count));
  VALUE(count);
  for (const CUgraphNode node : {built.first, built.kernel, built.last, built.empty}) {
    CUgraphNodeType type;
    CODE(cuGraphNodeGetType(node, &type));
    VALUE(type);
    CODE(cuGraphNodeGetDependencies(node, nullptr, nullptr, &count));
    VALUE(count);
    CODE(cuGraphNodeGetDependentNodes(node, nullptr, nullptr, &count));
    VALUE(count);
  }
  CUDA_MEMSET_NODE_PARAMS set = {};
  CODE(cuGraphMemsetNodeGetParams(built.first, &set));
  VALUE(set.value);
  VALUE(set.width);
  CODE(cuGraphMemsetNodeGetParams(built.kernel, &set));
  CUDA_KERNEL_NODE_PARAMS kernel = {};
  CODE(cuGraphKernelNodeGetParams(built.kernel, &kernel));
  VALUE(kernel.blockDimX);
  CODE(cuGraphKernelNodeGetParams(built.first, &kernel));
}

void Run(CUgraphExec exec, CUdeviceptr memory) {
  CODE(cuMemsetD8(memory, 0, 4096));
  CODE(cuGraphLaunch(exec, nullptr));
  CODE(cuCtxSynchronize());
  VALUE(DigestOf(memory, 4096));
}

void Change(const Built& built, CUcontext context, CUdeviceptr memory) {
  CUgraphExec exec = nullptr;
  CODE(cuGraphInstantiate(&exec, built.graph, 0));
  Run(exec, memory);
  CODE(cuGraphUpload(exec, nullptr));
  cuuint64_t flags = 77;
  CODE(cuGraphExecGetFlags(exec, &flags));
  VALUE(flags);
  CUDA_MEMSET_NODE_PARAMS set = Memset(memory, 20);
  CODE(cuGraphExecMemsetNodeSetParams(exec, built.first, &set, context));
  Run(exec, memory);
  CODE(cuGraphExecMemsetNodeSetParams(exec, built.kernel, &set, context));
  unsigned enabled = 7;
  CODE(cuGraphNodeSetEnabled(exec, built.last, 0));
  CODE(cuGraphNodeGetEnabled(exec, built.last, &enabled));
  VALUE(enabled);
  Run(exec, memory);
  CODE(cuGraphMemsetNodeSetParams(built.first, &set));
  CUgraphExecUpdateResultInfo info = {};
  CODE(cuGraphExecUpdate(exec, built.graph, &info));
  VALUE(info.result);
  Run(exec, memory);
  CUgraph clone = nullptr;
  CUgraphNode found = nullptr;
  CODE(cuGraphClone(&clone, built.graph));
  CODE(cuGraphNodeFindInClone(&found, built.kernel, clone));
  VALUE(found != nullptr && found != built.kernel);
  CODE(cuGraphDestroyNode(found));
  CODE(cuGraphExecUpdate(exec, clone, &info));
  VALUE(info.result);
  CODE(cuGraphDestroy(clone));
  CODE(cuGraphExecDestroy(exec));
}

void Edges(const Built& built) {
  CODE(cuGraphAddDependencies(built.graph, &built.first, &built.empty, nullptr, 1));
  CODE(cuGraphAddDependencies(built.graph, &built.first, &built.empty, nullptr, 1));
  CODE(cuGraphRemoveDependencies(built.graph, &built.first, &built.empty, nullptr, 1));
  CODE(cuGraphRemoveDependencies(built.graph, &built.first, &built.empty, nullptr, 1));
  CUgraph child = nullptr;
  CUgraphNode node = nullptr, inner = nullptr;
  CODE(cuGraphCreate(&child, 0));
  CODE(cuGraphCreate(&child, 1));
  CODE(cuGraphAddEmptyNode(&inner, child, nullptr, 0));
  CODE(cuGraphAddChildGraphNode(&node, built.graph, nullptr, 0, child));
  CUgraph inside = nullptr;
  CODE(cuGraphChildGraphNodeGetGraph(node, &inside));
  VALUE(inside != nullptr && inside != child);
  CODE(cuGraphAddEmptyNode(&inner, child, &built.first, 1));  // of another graph
  CODE(cuGraphDestroy(child));
}

void Conditionals(CUcontext context, CUdeviceptr memory) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphConditionalHandle handle = 0;
  CODE(cuGraphCreate(&graph, 0));
  CODE(cuGraphConditionalHandleCreate(nullptr, graph, context, 0, 0));
  CODE(cuGraphConditionalHandleCreate(&handle, nullptr, context, 0, 0));
  CODE(cuGraphConditionalHandleCreate(&handle, graph, context, 0, 2));
  CODE(cuGraphConditionalHandleCreate(&handle, graph, context, 2, CU_GRAPH_COND_ASSIGN_DEFAULT));
  CUgraphNodeParams params = {};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = handle + 256;
  params.conditional.ctx = context;
  params.conditional.type = CU_GRAPH_COND_TYPE_SWITCH;
  params.conditional.size = 3;
  CODE(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
  params.conditional.handle = handle;
  params.conditional.size = 0;
  CODE(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
  params.conditional.size = 3;
  CODE(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CODE(cuGraphNodeGetType(node, &type));
  VALUE(type);
  for (unsigned i = 0; i < 3; ++i) {
    CUDA_MEMSET_NODE_PARAMS fill = {memory, 0, 40 + i, 4, 1, 1};
    CUgraphNode within = nullptr;
    CODE(cuGraphAddMemsetNode(&within, params.conditional.phGraph_out[i], nullptr, 0, &fill,
                              context));
  }
  CODE(cuGraphDestroy(params.conditional.phGraph_out[0]));
  CUgraph clone = nullptr;
  CODE(cuGraphClone(&clone, graph));
  CUgraphExec exec = nullptr;
  CODE(cuGraphInstantiate(&exec, graph, 0));
  CODE(cuGraphLaunch(exec, nullptr));
  CODE(cuCtxSynchronize());
  VALUE(DigestOf(memory, 4));
  CODE(cuGraphExecDestroy(exec));
  CODE(cuGraphDestroy(graph));
}

}  // namespace

void Graphs() {
  InContext in;
  CUmodule module = LoadKernels();
  CUfunction add = nullptr;
  CUdeviceptr memory = 0;
  CODE(cuModuleGetFunction(&add, module, "Add"));
  CODE(cuMemAlloc(&memory, 4096));
  Built built = Build(in.context, add, memory);
  Ask(built);
  Change(built, in.context, memory);
  Edges(built);
  CODE(cuGraphDestroyNode(built.empty));
  CODE(cuGraphDestroy(built.graph));
  CODE(cuGraphCreate(nullptr, 0));
  CODE(cuGraphDestroy(nullptr));
  CUgraphExec none = nullptr;
  CODE(cuGraphInstantiate(&none, nullptr, 0));
  CODE(cuGraphLaunch(nullptr, nullptr));
  Conditionals(in.context, memory);
  CODE(cuMemFree(memory));
}

}  // namespace conformance
