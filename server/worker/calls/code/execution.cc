// Functions, launches and host functions.
#include <array>
#include <cstring>
#include <optional>

#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/calls/code/functions.h"
#include "server/worker/calls/texture/texture_reference.h"
#include "server/worker/code/loading.h"

namespace longwire::worker {

CUresult Do_lwFunctionAttributes(CallContext& context, const calls::lwFunctionAttributes& call,
                                 calls::lwFunctionAttributes::Reply* reply) {
  auto function = context.session().functions.Find(call.function);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return AskAttributes(context, *function, call.device, &reply->attributes);
}

static CUresult SetAttribute(CallContext& context, const Function& function,
                             const calls::lwFunctionSetAttribute& call) {
  context.session().chains().ForgetAll();
  auto attribute = static_cast<CUfunction_attribute>(call.attribute);
  const DriverTable& driver = context.driver();
  if (call.device >= 0) {
    CUdevice device = 0;
    LONGWIRE_TRY(context.ResolveDevice(call.device, &device));
    if (function.kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return driver.cuKernelSetAttribute(attribute, call.value, function.kernel, device);
  }
  CUfunction handle = nullptr;
  LONGWIRE_TRY(context.Resolve(call.function, &handle));
  return driver.cuFuncSetAttribute(handle, attribute, call.value);
}

CUresult Do_lwFunctionSetAttribute(CallContext& context, const calls::lwFunctionSetAttribute& call,
                                   calls::lwFunctionSetAttribute::Reply*) {
  auto function = context.session().functions.Find(call.function);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (call.attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    return SetAttribute(context, *function, call);
  }
  // A launch has natively taken what was set when it was made; here it may still be queued when the
  // program sets less for the next one. So the room for shared memory that launches ask for only
  // grows.
  int& most = function->most_shared[call.device];
  if (call.value < most) return CUDA_SUCCESS;
  CUresult result = SetAttribute(context, *function, call);
  if (result == CUDA_SUCCESS) most = call.value;
  return result;
}

CUresult Do_lwLaunch(CallContext& context, const calls::lwLaunch& call, calls::lwLaunch::Reply*) {
  CUfunction function = nullptr;
  CUresult result =
      context.session().loaded_functions().Find(call.function, context.context(), &function);
  if (result != CUDA_SUCCESS) return result;
  LaunchAttributes attributes;
  if (!attributes.Set(call.attributes, call.cooperative != 0)) return CUDA_ERROR_NOT_SUPPORTED;
  // The driver reads the parameters as they are laid out, so they lie as they do in the client.
  alignas(16) std::array<std::byte, 4096> small;
  std::vector<std::byte> large;
  std::byte* parameters = small.data();
  if (call.parameters.size() > small.size()) {
    large.assign(call.parameters.begin(), call.parameters.end());
    parameters = large.data();
  } else if (!call.parameters.empty()) {
    std::memcpy(parameters, call.parameters.data(), call.parameters.size());
  }
  size_t bytes = call.parameters.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  void** packed = bytes != 0 ? extra : nullptr;
  CUstream stream = context.driver_stream();
  std::optional<base::MutexLock> binding;
  if (!call.references.empty()) {
    binding.emplace(context.session().binding);
    result = BindReferences(context, call.references);
    if (result != CUDA_SUCCESS) return result;
  }
  if (attributes.empty()) {
    return context.driver().cuLaunchKernel(function, call.grid_x, call.grid_y, call.grid_z,
                                           call.block_x, call.block_y, call.block_z,
                                           call.shared_bytes, stream, nullptr, packed);
  }
  CUlaunchConfig config = attributes.ConfigOf(call, stream);
  return context.driver().cuLaunchKernelEx(&config, function, nullptr, packed);
}

CUresult Do_lwHostFunction(CallContext& context, const calls::lwHostFunction& call,
                           calls::lwHostFunction::Reply*) {
  WorkerSession& session = context.session();
  const auto& stream = context.stream();
  if (context.capturing()) return session.graphs().CaptureHostFunction(*stream, call.ticket);
  QueuedCall& record = context.call();
  if (record.step == 0) {
    // Runs once everything before it has finished; the stream goes on when the client has run it.
    record.step = 1;
    stream->actions.push_back([&session, ticket = call.ticket](bool good) {
      if (good) session.down().HostFunction(ticket);
    });
    return kNotYet;
  }
  if (!session.graphs().TakeDone(call.ticket)) return kNotYet;
  stream->push_next = true;
  return CUDA_SUCCESS;
}

CUresult Do_lwHostFunctionDone(CallContext& context, const calls::lwHostFunctionDone& call,
                               calls::lwHostFunctionDone::Reply*) {
  context.session().graphs().HostFunctionDone(call.ticket);
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
