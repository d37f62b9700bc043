// Graph nodes: adding, reading and changing them, through the general CUgraphNodeParams.
#include "softgpu/driver/calls/graph/conditional.h"
#include "softgpu/driver/graph/graph_memory.h"
#include "softgpu/driver/module/cluster.h"
#include "softgpu/driver/module/launch.h"
#include "softgpu/driver/module/module.h"
#include "softgpu/driver/module/texture_reference.h"
#include "softgpu/driver/stream/graph_exec.h"
#include "softgpu/driver/stream/graph_update.h"
#include "softgpu/driver/stream/run.h"

namespace softgpu {
namespace {

constexpr size_t kMaxNodes = size_t{1} << 20;  // per graph

CUresult MakeKernel(const CUDA_KERNEL_NODE_PARAMS_v3& p, Operation* operation) {
  KernelOperation kernel;
  kernel.function = FindFunction(p.func ? static_cast<const void*>(p.func) : p.kern);
  if (!kernel.function) return CUDA_ERROR_INVALID_VALUE;
  // The given context, else the function's own, else (a kernel's) the current one.
  Context* context = kernel.function->module->context;
  if (context == nullptr || p.ctx != nullptr) LONGWIRE_TRY(ResolveContext(p.ctx, &context));
  LONGWIRE_TRY(InContext(&kernel.function, *context->home));
  kernel.config = {{p.gridDimX, p.gridDimY, p.gridDimZ},
                   {p.blockDimX, p.blockDimY, p.blockDimZ},
                   p.sharedMemBytes,
                   false,
                   context->device};
  BindReferences(kernel.function->module->references, &kernel.config);
  LONGWIRE_TRY(CheckLaunch(*kernel.function, kernel.config, context->multiprocessors));
  LONGWIRE_TRY(PackParameters(*kernel.function, p.kernelParams, p.extra, &kernel.parameters));
  *operation = std::move(kernel);
  return CUDA_SUCCESS;
}

// The device of the given context or, without one, of the current one.
CUresult DeviceOf(CUcontext handle, int* device) {
  Context* context = CurrentContext();
  if (handle != nullptr) LONGWIRE_TRY(ResolveContext(handle, &context));
  *device = context != nullptr ? context->device : 0;
  return CUDA_SUCCESS;
}

template <class EventOperation>
CUresult MakeEvent(CUevent handle, Operation* operation) {
  auto event = Driver::Get().events.Find(handle);
  if (!event) return handle == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
  *operation = EventOperation{std::move(event)};
  return CUDA_SUCCESS;
}

// The child graph is cloned, unless it is given away to a node of this graph.
CUresult MakeChild(const CUDA_CHILD_GRAPH_NODE_PARAMS& p, const Graph* graph, Operation* operation)
    LONGWIRE_REQUIRES(Driver::mutex) {
  auto child = Driver::Get().graphs.Find(p.graph);
  if (!child) return CUDA_ERROR_INVALID_HANDLE;
  if (child->moved) return CUDA_ERROR_NOT_SUPPORTED;
  if (p.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
    if (child->owned_by_node) return CUDA_ERROR_NOT_SUPPORTED;
    if (Holds(*child, graph)) return CUDA_ERROR_INVALID_VALUE;
    child->owned_by_node = child->moved = true;
    *operation = ChildGraphOperation{std::move(child)};
    return CUDA_SUCCESS;
  }
  if (IsUnique(*child)) return CUDA_ERROR_NOT_SUPPORTED;
  auto clone = CloneGraph(*child, true);
  clone->owned_by_node = true;
  Driver::Get().graphs.Add(clone);
  *operation = ChildGraphOperation{std::move(clone)};
  return CUDA_SUCCESS;
}

CUresult MakeOperation(const CUgraphNodeParams& p, const Graph* graph, Operation* operation)
    LONGWIRE_REQUIRES(Driver::mutex) {
  int device = 0;
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return MakeKernel(p.kernel, operation);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      LONGWIRE_TRY(DeviceOf(p.memcpy.copyCtx, &device));
      LONGWIRE_TRY(CheckCopy(p.memcpy.copyParams, {device, device}));
      *operation = CopyOperation{p.memcpy.copyParams, {device, device}, nullptr};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto& m = p.memset;
      LONGWIRE_TRY(DeviceOf(m.ctx, &device));
      FillOperation fill{{m.dst, m.pitch, m.value, m.elementSize, m.width, m.height}, device};
      LONGWIRE_TRY(CheckFill(fill.fill, device));
      *operation = fill;
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      if (p.host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *operation = HostOperation{{p.host.fn, p.host.userData}};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return MakeChild(p.graph, graph, operation);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      *operation = EmptyOperation{};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return MakeEvent<EventWaitOperation>(p.eventWait.event, operation);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return MakeEvent<EventRecordOperation>(p.eventRecord.event, operation);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      if (p.memOp.count != 0 && p.memOp.paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
      std::span operations(p.memOp.paramArray, p.memOp.count);
      LONGWIRE_TRY(DeviceOf(p.memOp.ctx, &device));
      LONGWIRE_TRY(CheckBatch(operations, device));
      *operation = BatchMemoryOperation{{operations.begin(), operations.end()}, device};
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      *operation = MemoryFreeOperation{p.free.dptr};
      return CUDA_SUCCESS;
    default:
      return Refuse("a graph node of this type");
  }
}

// Where a new node is to stand.
CUresult FindPlace(const CUgraphNode* handle, CUgraph graph_handle, const CUgraphNode* dependencies,
                   size_t count, std::shared_ptr<Graph>* graph, std::vector<GraphNode*>* nodes)
    LONGWIRE_REQUIRES(Driver::mutex) {
  if (handle == nullptr || count > kMaxNodes || (count != 0 && dependencies == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *graph = Driver::Get().graphs.Find(graph_handle);
  if (!*graph || (*graph)->nodes.size() >= kMaxNodes) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    auto node = Driver::Get().nodes.Find(dependencies[i]);
    if (!node || node->graph != graph->get()) return CUDA_ERROR_INVALID_VALUE;
    nodes->push_back(node.get());
  }
  return CUDA_SUCCESS;
}

CUresult Add(CUgraphNode* handle, CUgraph graph_handle, const CUgraphNode* dependencies,
             size_t count, const CUgraphNodeParams& params) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  std::shared_ptr<Graph> graph;
  std::vector<GraphNode*> nodes;
  LONGWIRE_TRY(FindPlace(handle, graph_handle, dependencies, count, &graph, &nodes));
  if (params.type == CU_GRAPH_NODE_TYPE_GRAPH && params.graph.graph == graph_handle) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Operation operation;
  LONGWIRE_TRY(MakeOperation(params, graph.get(), &operation));
  auto node = AddNode(*graph, std::move(operation), std::move(nodes));
  *handle = reinterpret_cast<CUgraphNode>(node.get());
  return CUDA_SUCCESS;
}

// `runs`: a node of an executable graph.
CUresult Replace(GraphNode& node, const CUgraphNodeParams& params, bool runs)
    LONGWIRE_REQUIRES(Driver::mutex) {
  if (TypeOf(node.operation) != params.type) return CUDA_ERROR_INVALID_VALUE;
  Operation operation;
  LONGWIRE_TRY(MakeOperation(params, node.graph, &operation));
  if (runs) LONGWIRE_TRY(CheckChange(node.operation, operation));
  if (auto* kernel = std::get_if<KernelOperation>(&operation)) {
    const LaunchConfig& old = std::get<KernelOperation>(node.operation).config;
    kernel->config.cooperative = old.cooperative;
    std::copy_n(old.cluster, 3, kernel->config.cluster);
    if (runs) LONGWIRE_TRY(ChooseCluster(*kernel->function, &kernel->config));
  }
  // The forms that name no context leave it as it was.
  if (auto* copy = std::get_if<CopyOperation>(&operation);
      copy && params.memcpy.copyCtx == nullptr) {
    copy->devices = std::get<CopyOperation>(node.operation).devices;
  }
  if (auto* fill = std::get_if<FillOperation>(&operation); fill && params.memset.ctx == nullptr) {
    fill->device = std::get<FillOperation>(node.operation).device;
  }
  node.operation = std::move(operation);
  return CUDA_SUCCESS;
}

CUresult Set(CUgraphNode handle, const CUgraphNodeParams& params) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto node = Driver::Get().nodes.Find(handle);
  return node ? Replace(*node, params, false) : CUDA_ERROR_INVALID_VALUE;
}

CUresult SetInExec(CUgraphExec exec_handle, CUgraphNode handle, const CUgraphNodeParams& params) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto exec = Driver::Get().execs.Find(exec_handle);
  GraphNode* node = exec ? FindCopy(*exec->plan, handle) : nullptr;
  if (params.type == CU_GRAPH_NODE_TYPE_GRAPH && params.graph.graph == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return node ? Replace(*node, params, true) : CUDA_ERROR_INVALID_VALUE;
}

// Finds a node that holds a `Kind` and gives it to `use`. Driver::mutex is held meanwhile.
template <class Kind, class Use>
CUresult With(CUgraphNode handle, bool valid, Use use) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto node = Driver::Get().nodes.Find(handle);
  Kind* kind = node ? std::get_if<Kind>(&node->operation) : nullptr;
  if (!valid || kind == nullptr) return CUDA_ERROR_INVALID_VALUE;
  use(*kind, *node);
  return CUDA_SUCCESS;
}

CUgraphNodeParams Params(CUgraphNodeType type) {
  CUgraphNodeParams params = {};
  params.type = type;
  return params;
}
CUgraphNodeParams Params(const CUDA_KERNEL_NODE_PARAMS& p) {
  auto params = Params(CU_GRAPH_NODE_TYPE_KERNEL);
  params.kernel = {p.func,         p.gridDimX,  p.gridDimY,  p.gridDimZ,
                   p.blockDimX,    p.blockDimY, p.blockDimZ, p.sharedMemBytes,
                   p.kernelParams, p.extra,     p.kern,      p.ctx};
  return params;
}
CUgraphNodeParams Params(const CUDA_MEMCPY3D& p, CUcontext context = nullptr) {
  auto params = Params(CU_GRAPH_NODE_TYPE_MEMCPY);
  params.memcpy.copyCtx = context;
  params.memcpy.copyParams = p;
  return params;
}
CUgraphNodeParams Params(const CUDA_MEMSET_NODE_PARAMS& p, CUcontext context = nullptr) {
  auto params = Params(CU_GRAPH_NODE_TYPE_MEMSET);
  params.memset = {p.dst, p.pitch, p.value, p.elementSize, p.width, p.height, context};
  return params;
}
CUgraphNodeParams Params(const CUDA_HOST_NODE_PARAMS& p) {
  auto params = Params(CU_GRAPH_NODE_TYPE_HOST);
  params.host.fn = p.fn;
  params.host.userData = p.userData;
  return params;
}
CUgraphNodeParams Params(const CUDA_BATCH_MEM_OP_NODE_PARAMS& p) {
  auto params = Params(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  params.memOp = {p.ctx, p.count, p.paramArray, p.flags};
  return params;
}
CUgraphNodeParams Params(CUgraph child) {
  auto params = Params(CU_GRAPH_NODE_TYPE_GRAPH);
  params.graph.graph = child;
  return params;
}
CUgraphNodeParams RecordParams(CUevent event) {
  auto params = Params(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  params.eventRecord.event = event;
  return params;
}
CUgraphNodeParams WaitParams(CUevent event) {
  auto params = Params(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  params.eventWait.event = event;
  return params;
}

CUevent EventHandle(const std::shared_ptr<Event>& event) {
  return reinterpret_cast<CUevent>(event.get());
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

#define REQUIRE(pointer) \
  if ((pointer) == nullptr) return CUDA_ERROR_INVALID_VALUE

CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData*, size_t count, CUgraphNodeParams* params) {
  REQUIRE(params);
  if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    return AddConditionalNode(node, graph, dependencies, count, &params->conditional);
  }
  if (params->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    return Add(node, graph, dependencies, count, *params);
  }
  auto& alloc = params->alloc;
  CUDA_MEM_ALLOC_NODE_PARAMS typed{alloc.poolProps, alloc.accessDescs, alloc.accessDescCount,
                                   alloc.bytesize, 0};
  LONGWIRE_TRY(cuGraphAddMemAllocNode(node, graph, dependencies, count, &typed));
  alloc.dptr = typed.dptr;
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  REQUIRE(params);
  return Set(node, *params);
}
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  REQUIRE(params);
  return SetInExec(exec, node, *params);
}

CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                             size_t count) {
  return Add(node, graph, dependencies, count, Params(CU_GRAPH_NODE_TYPE_EMPTY));
}

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  REQUIRE(params);
  return Add(node, graph, dependencies, count, Params(*params));
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  REQUIRE(params);
  return Set(node, Params(*params));
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS* params) {
  REQUIRE(params);
  return SetInExec(exec, node, Params(*params));
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* params) {
  return With<KernelOperation>(
      handle, params,
      [params](KernelOperation& kernel, GraphNode& node) LONGWIRE_REQUIRES(Driver::mutex) {
        node.parameter_pointers.clear();
        for (const ParameterInfo& info : kernel.function->info->parameters) {
          node.parameter_pointers.push_back(kernel.parameters.data() + info.offset);
        }
        const LaunchConfig& c = kernel.config;
        *params = {reinterpret_cast<CUfunction>(kernel.function.get()),
                   c.grid[0],
                   c.grid[1],
                   c.grid[2],
                   c.block[0],
                   c.block[1],
                   c.block[2],
                   c.dynamic_shared_bytes,
                   node.parameter_pointers.data(),
                   nullptr,
                   nullptr,
                   nullptr};
      });
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_MEMCPY3D* params, CUcontext context) {
  REQUIRE(params);
  return Add(node, graph, dependencies, count, Params(*params, context));
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  REQUIRE(params);
  return Set(node, Params(*params));
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D* params, CUcontext context) {
  REQUIRE(params);
  return SetInExec(exec, node, Params(*params, context));
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* params) {
  return With<CopyOperation>(node, params, [=](auto& copy, GraphNode&) { *params = copy.copy; });
}

CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS* params,
                              CUcontext context) {
  REQUIRE(params);
  return Add(node, graph, dependencies, count, Params(*params, context));
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params) {
  REQUIRE(params);
  return Set(node, Params(*params));
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
  REQUIRE(params);
  return SetInExec(exec, node, Params(*params, context));
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params) {
  return With<FillOperation>(node, params, [=](auto& fill, GraphNode&) { *params = fill.fill; });
}

CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count, const CUDA_HOST_NODE_PARAMS* params) {
  REQUIRE(params);
  return Add(node, graph, dependencies, count, Params(*params));
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  REQUIRE(params);
  return Set(node, Params(*params));
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* params) {
  REQUIRE(params);
  return SetInExec(exec, node, Params(*params));
}
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* params) {
  return With<HostOperation>(node, params, [=](auto& host, GraphNode&) { *params = host.host; });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, CUgraph child) {
  return Add(node, graph, dependencies, count, Params(child));
}
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  return SetInExec(exec, node, Params(child));
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  return With<ChildGraphOperation>(node, graph, [=](auto& child, GraphNode&) {
    *graph = reinterpret_cast<CUgraph>(child.graph.get());
  });
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph,
                                   const CUgraphNode* dependencies, size_t count, CUevent event) {
  return Add(node, graph, dependencies, count, RecordParams(event));
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return Set(node, RecordParams(event));
}
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return SetInExec(exec, node, RecordParams(event));
}
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return With<EventRecordOperation>(
      node, event, [=](auto& record, GraphNode&) { *event = EventHandle(record.event); });
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, CUevent event) {
  return Add(node, graph, dependencies, count, WaitParams(event));
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return Set(node, WaitParams(event));
}
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return SetInExec(exec, node, WaitParams(event));
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return With<EventWaitOperation>(
      node, event, [=](auto& wait, GraphNode&) { *event = EventHandle(wait.event); });
}

CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  LONGWIRE_TRY(Enter());
  if (params == nullptr || params->bytesize == 0 ||
      Driver::Get().FindDevice(params->poolProps.location.id) == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  base::MutexLock lock(Driver::mutex);
  std::shared_ptr<Graph> to;
  std::vector<GraphNode*> nodes;
  LONGWIRE_TRY(FindPlace(node, graph, dependencies, count, &to, &nodes));
  auto memory = AllocateForGraph(*to, nodes, *params);
  if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
  auto added = AddNode(*to, EmptyOperation{}, std::move(nodes));
  *node = NodeHandle(added.get());
  params->dptr = memory->params.dptr;
  added->operation = MemoryAllocOperation{std::move(memory)};
  return CUDA_SUCCESS;
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return With<MemoryAllocOperation>(
      node, params, [=](auto& alloc, GraphNode&) { *params = alloc.memory->params; });
}
CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                               size_t count, CUdeviceptr address) {
  auto params = Params(CU_GRAPH_NODE_TYPE_MEM_FREE);
  params.free.dptr = address;
  return Add(node, graph, dependencies, count, params);
}
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  return With<MemoryFreeOperation>(node, address,
                                   [=](auto& free, GraphNode&) { *address = free.address; });
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  REQUIRE(params);
  return Add(node, graph, dependencies, count, Params(*params));
}
CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node,
                                        const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  REQUIRE(params);
  return Set(node, Params(*params));
}
CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  REQUIRE(params);
  return SetInExec(exec, node, Params(*params));
}
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return With<BatchMemoryOperation>(node, params, [=](auto& batch, GraphNode&) {
    *params = {};
    params->count = static_cast<unsigned>(batch.operations.size());
    params->paramArray = batch.operations.data();
  });
}
