// Kernel nodes of graphs.
#include <vector>

#include "base/try.h"
#include "codegen/runtime/convert.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/code/loading.h"

namespace longwire::worker {
namespace {

// The driver's form of a node. It points into `call` and to itself.
struct NodeParameters {
  CUDA_KERNEL_NODE_PARAMS params{};
  std::vector<void*> pointers;  // one for each parameter
  size_t bytes = 0;
  void* extra[5] = {};
  NodeParameters() = default;
  NodeParameters(const NodeParameters&) = delete;
  NodeParameters& operator=(const NodeParameters&) = delete;

  CUresult Fill(CallContext& context, const calls::KernelNode& kernel) {
    LONGWIRE_TRY(context.Resolve(kernel.function, &params.func));
    if (params.func == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (context.context() != nullptr) {
      LONGWIRE_TRY(
          context.session().loaded_functions().ChargeLocals(params.func, *context.context()));
    }
    params.gridDimX = kernel.grid_x;
    params.gridDimY = kernel.grid_y;
    params.gridDimZ = kernel.grid_z;
    params.blockDimX = kernel.block_x;
    params.blockDimY = kernel.block_y;
    params.blockDimZ = kernel.block_z;
    params.sharedMemBytes = kernel.shared_bytes;
    bytes = kernel.parameters.size();
    if (bytes == 0) return CUDA_SUCCESS;
    auto function = context.session().functions.Find(kernel.function);
    if (function != nullptr && PointAtEach(context.driver(), *function, kernel.parameters)) {
      params.kernelParams = pointers.data();
      return CUDA_SUCCESS;
    }
    extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    extra[1] = const_cast<std::byte*>(kernel.parameters.data());
    extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    extra[3] = &bytes;
    extra[4] = CU_LAUNCH_PARAM_END;
    params.extra = extra;
    return CUDA_SUCCESS;
  }

 private:
  // As programs mostly give them: the driver refuses some later changes of a node whose parameters
  // were packed. False if the driver does not say where they are.
  bool PointAtEach(const DriverTable& driver, const Function& function,
                   std::span<const std::byte> packed) {
    size_t offset = 0, size = 0;
    while (PlaceOfParameter(driver, function, pointers.size(), &offset, &size) == CUDA_SUCCESS) {
      if (offset > packed.size() || size > packed.size() - offset) return false;
      pointers.push_back(const_cast<std::byte*>(packed.data() + offset));
    }
    return !pointers.empty();
  }
};

// Which of the session's functions a node runs: the driver tells only its own handles.
std::shared_ptr<Function> FunctionOf(WorkerSession& session,
                                     const CUDA_KERNEL_NODE_PARAMS& params) {
  for (auto& function : session.functions.All()) {
    if (params.kern != nullptr && function->kernel == params.kern) return function;
    if (params.func == nullptr) continue;
    if (function->function == params.func) return function;
    base::MutexLock lock(function->mutex);
    for (const auto& [context, loaded] : function->loaded) {
      if (loaded.handle == params.func) return function;
    }
    CUfunction of_kernel = nullptr;
    if (function->kernel != nullptr &&
        session.driver().cuKernelGetFunction(&of_kernel, function->kernel) == CUDA_SUCCESS &&
        of_kernel == params.func) {
      return function;
    }
  }
  return nullptr;
}

// The driver tells a node's parameters in the form in which they were given.
std::string PackedParameters(const DriverTable& driver, const Function& function,
                             const CUDA_KERNEL_NODE_PARAMS& params) {
  std::string bytes;
  if (params.kernelParams == nullptr && params.extra != nullptr) {
    const char* buffer = nullptr;
    size_t size = 0;
    for (void** extra = params.extra; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
      if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = static_cast<const char*>(extra[1]);
      if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<const size_t*>(extra[1]);
    }
    if (buffer != nullptr) bytes.assign(buffer, size);
  }
  for (size_t i = 0; params.kernelParams != nullptr; ++i) {
    size_t offset = 0, size = 0;
    if (PlaceOfParameter(driver, function, i, &offset, &size) != CUDA_SUCCESS) break;
    bytes.resize(offset);
    bytes.append(static_cast<const char*>(params.kernelParams[i]), size);
  }
  return bytes;
}

}  // namespace

CUresult Do_lwGraphAddKernel(CallContext& context, const calls::lwGraphAddKernel& call,
                             calls::lwGraphAddKernel::Reply* reply) {
  CUgraph graph = nullptr;
  CUresult result = context.Resolve(call.graph, &graph);
  std::vector<CUgraphNode> dependencies(call.dependency.size());
  for (size_t i = 0; i < dependencies.size() && result == CUDA_SUCCESS; ++i) {
    result = context.Resolve(call.dependency[i], &dependencies[i]);
  }
  NodeParameters node;
  if (result == CUDA_SUCCESS) result = node.Fill(context, call.kernel);
  CUgraphNode added = nullptr;
  if (result == CUDA_SUCCESS) {
    result = context.driver().cuGraphAddKernelNode_v2(&added, graph, dependencies.data(),
                                                      dependencies.size(), &node.params);
  }
  if (result == CUDA_SUCCESS) reply->node = context.Publish(added);
  return result;
}

CUresult Do_lwGraphSetKernel(CallContext& context, const calls::lwGraphSetKernel& call,
                             calls::lwGraphSetKernel::Reply*) {
  CUgraphNode handle = nullptr;
  CUgraphExec exec = nullptr;
  LONGWIRE_TRY(context.Resolve(call.node, &handle));
  LONGWIRE_TRY(context.Resolve(call.exec, &exec));
  NodeParameters node;
  LONGWIRE_TRY(node.Fill(context, call.kernel));
  const DriverTable& driver = context.driver();
  return call.exec == 0 ? driver.cuGraphKernelNodeSetParams_v2(handle, &node.params)
                        : driver.cuGraphExecKernelNodeSetParams_v2(exec, handle, &node.params);
}

CUresult Do_lwGraphKernel(CallContext& context, const calls::lwGraphKernel& call,
                          calls::lwGraphKernel::Reply* reply) {
  const DriverTable& driver = context.driver();
  CUgraphNode handle = nullptr;
  CUDA_KERNEL_NODE_PARAMS params{};
  LONGWIRE_TRY(context.Resolve(call.node, &handle));
  LONGWIRE_TRY(driver.cuGraphKernelNodeGetParams_v2(handle, &params));
  auto function = FunctionOf(context.session(), params);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::string bytes = PackedParameters(driver, *function, params);
  calls::KernelNode& kernel = reply->kernel;
  kernel.function = function->id;
  kernel.grid_x = params.gridDimX;
  kernel.grid_y = params.gridDimY;
  kernel.grid_z = params.gridDimZ;
  kernel.block_x = params.blockDimX;
  kernel.block_y = params.blockDimY;
  kernel.block_z = params.blockDimZ;
  kernel.shared_bytes = params.sharedMemBytes;
  kernel.parameters = std::as_bytes(std::span(context.Keep(std::move(bytes))));
  return CUDA_SUCCESS;
}

CUresult Do_cuGraphKernelNodeSetAttribute(CallContext& context,
                                          const calls::cuGraphKernelNodeSetAttribute& call,
                                          calls::cuGraphKernelNodeSetAttribute::Reply*) {
  CUgraphNode node = nullptr;
  LONGWIRE_TRY(context.Resolve(call.hNode, &node));
  auto attribute = static_cast<CUkernelNodeAttrID>(call.attr);
  if (HoldsHandles(attribute)) return CUDA_ERROR_NOT_SUPPORTED;
  CUkernelNodeAttrValue value{};
  calls::Convert(call.value, &value);
  return context.driver().cuGraphKernelNodeSetAttribute(node, attribute, &value);
}

}  // namespace longwire::worker
