// Kernel nodes of graphs: parameters are packed as for a launch, and unpacked where a program asks.
#include <deque>
#include <memory>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/calls/graph/graph_node.h"
#include "client-shim/code/launch.h"
#include "client-shim/graph/exec_changes.h"
#include "client-shim/mirror/host_exposure.h"
#include "client-shim/session/session.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

// A node's parameters as a program reads them, at addresses of ours. The driver keeps them as long
// as the node; here they stay for as many further questions.
constexpr size_t kKeptAnswers = 16384;

struct KeptAnswer {
  std::vector<std::byte> bytes;
  std::vector<void*> parameters;
};

struct Answers {
  base::Mutex mutex{base::ranks::kKernelAnswers};
  std::deque<std::unique_ptr<KeptAnswer>> kept LONGWIRE_GUARDED_BY(mutex);
};

void** KeepParameters(const Function& function, std::span<const std::byte> packed) {
  static NeverDestroyed<Answers> all;
  Answers& answers = *all;
  auto answer = std::make_unique<KeptAnswer>();
  answer->bytes.assign(packed.begin(), packed.end());
  answer->bytes.resize(std::max<size_t>(answer->bytes.size(), function.parameter_bytes));
  for (const Parameter& parameter : function.parameters) {
    answer->parameters.push_back(answer->bytes.data() + parameter.offset);
  }
  void** parameters = answer->parameters.data();
  base::MutexLock lock(answers.mutex);
  answers.kept.push_back(std::move(answer));
  if (answers.kept.size() > kKeptAnswers) answers.kept.pop_front();
  return parameters;
}

// The node as it travels; `storage` holds its parameters.
template <class Parameters>
CUresult Pack(const Where& where, CUfunction handle, const Parameters& params,
              ParameterStorage& storage, calls::KernelNode* kernel) {
  Function* function = FindFunction(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::span<const std::byte> packed;
  CUresult result = PackParameters(*function, params.kernelParams, params.extra, storage, &packed);
  if (result == CUDA_SUCCESS) result = ExposeArguments(packed);
  kernel->function = function->NumberAt(*where.session);
  kernel->grid_x = params.gridDimX;
  kernel->grid_y = params.gridDimY;
  kernel->grid_z = params.gridDimZ;
  kernel->block_x = params.blockDimX;
  kernel->block_y = params.blockDimY;
  kernel->block_z = params.blockDimZ;
  kernel->shared_bytes = params.sharedMemBytes;
  kernel->parameters = packed;
  return result;
}

// The newer form names a kernel where there is no function.
CUfunction HandleOf(const CUDA_KERNEL_NODE_PARAMS_v2& params) {
  return params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
}
CUfunction HandleOf(const CUDA_KERNEL_NODE_PARAMS_v1& params) { return params.func; }

// The context that a kernel runs in: named by the newer form only.
CUresult NumberOf(const CUDA_KERNEL_NODE_PARAMS_v2& params, uint32_t* number) {
  *number = CurrentNumber();
  if (params.ctx == nullptr) return CUDA_SUCCESS;
  Context* context = nullptr;
  CUresult result = ContextOf(params.ctx, &context);
  if (result == CUDA_SUCCESS) *number = context->number.load();
  return result;
}
CUresult NumberOf(const CUDA_KERNEL_NODE_PARAMS_v1&, uint32_t* number) {
  *number = CurrentNumber();
  return CUDA_SUCCESS;
}

// The runtime knows a library's kernels by their kernel handles only.
void TellHandle(const Function& function, CUDA_KERNEL_NODE_PARAMS_v2* params) {
  if (function.module->is_library) {
    params->kern = reinterpret_cast<CUkernel>(function.handle);
  } else {
    params->func = function.handle;
  }
}
void TellHandle(const Function& function, CUDA_KERNEL_NODE_PARAMS_v1* params) {
  params->func = function.handle;
}

template <class Parameters>
CUresult Add(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
             const Parameters* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (HandleOf(*params) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  ParameterStorage storage;
  calls::lwGraphAddKernel add;
  LONGWIRE_TRY(SetPlace(graph, dependencies, count, &add));
  uint32_t context = 0;
  LONGWIRE_TRY(NumberOf(*params, &context));
  LONGWIRE_TRY(Pack(WhereOfNumber(context), HandleOf(*params), *params, storage, &add.kernel));
  auto answer = Ask(context, add);
  if (answer.code == CUDA_SUCCESS) FromWire(answer.reply.node, node);
  return answer.code;
}

template <class Parameters>
CUresult Set(uint64_t exec, CUgraphNode node, const Parameters* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ParameterStorage storage;
  calls::lwGraphSetKernel set;
  set.exec = exec;
  set.node = ToWire(node);
  uint32_t context = 0;
  LONGWIRE_TRY(NumberOf(*params, &context));
  LONGWIRE_TRY(Pack(WhereOfNumber(context), HandleOf(*params), *params, storage, &set.kernel));
  if (exec != 0) return SetKernelInExec(WhereOfNumber(context), set);
  ClientSession::NoteChange();
  return Ask(context, set).code;
}

template <class Parameters>
CUresult SetInExec(CUgraphExec exec, CUgraphNode node, const Parameters* params) {
  uint64_t id = ToWire(exec);
  return id == 0 ? CUDA_ERROR_INVALID_VALUE : Set(id, node, params);
}

template <class Parameters>
CUresult Get(CUgraphNode node, Parameters* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  calls::lwGraphKernel ask;
  ask.node = ToWire(node);
  auto answer = Ask(CurrentNumber(), ask);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  const calls::KernelNode& kernel = answer.reply.kernel;
  Function* function = FunctionByNumber(*WhereOfNumber(CurrentNumber()).session, kernel.function);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *params = {};
  TellHandle(*function, params);
  params->gridDimX = kernel.grid_x;
  params->gridDimY = kernel.grid_y;
  params->gridDimZ = kernel.grid_z;
  params->blockDimX = kernel.block_x;
  params->blockDimY = kernel.block_y;
  params->blockDimZ = kernel.block_z;
  params->sharedMemBytes = kernel.shared_bytes;
  params->kernelParams = KeepParameters(*function, kernel.parameters);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGraphAddKernelNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph,
                                 const CUgraphNode* dependencies, size_t numDependencies,
                                 const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return Add(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

CUresult cuGraphAddKernelNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return Add(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return Get(hNode, nodeParams);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return Get(hNode, nodeParams);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
                                       const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return Set(0, hNode, nodeParams);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode,
                                    const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return Set(0, hNode, nodeParams);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return SetInExec(hGraphExec, hNode, nodeParams);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return SetInExec(hGraphExec, hNode, nodeParams);
}

}  // namespace longwire::shim::hand
