// Functions, launches and host functions.
#include <array>
#include <cstring>
#include <optional>

#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/calls/code/functions.h"
#include "server/worker/calls/texture/texture_reference.h"
#include "server/worker/code/function_rules.h"
#include "server/worker/code/launch_answers.h"
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

static void SetSizes(const rules::LaunchChange& changed, CUlaunchConfig* config) {
  if (changed.grid[0] != 0) {
    config->gridDimX = changed.grid[0];
    config->gridDimY = changed.grid[1];
    config->gridDimZ = changed.grid[2];
  }
  if (changed.block[0] == 0) return;
  config->blockDimX = changed.block[0];
  config->blockDimY = changed.block[1];
  config->blockDimZ = changed.block[2];
}

// `changed`: the sizes, if a rule says others.
static CUresult Launch(CallContext& context, const calls::lwLaunch& call, CUfunction function,
                       LaunchAttributes& attributes, const rules::LaunchChange* changed = nullptr) {
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
    LONGWIRE_TRY(BindReferences(context, call.references));
  }
  if (attributes.empty() && changed == nullptr) {
    return context.driver().cuLaunchKernel(function, call.grid_x, call.grid_y, call.grid_z,
                                           call.block_x, call.block_y, call.block_z,
                                           call.shared_bytes, stream, nullptr, packed);
  }
  CUlaunchConfig config = attributes.ConfigOf(call, stream);
  if (changed != nullptr) SetSizes(*changed, &config);
  return context.driver().cuLaunchKernelEx(&config, function, nullptr, packed);
}

// Of a function that rules are about, or a policy: `advised` is what that wants. Rules go before
// it.
static CUresult LaunchByRules(CallContext& context, const calls::lwLaunch& call, CUfunction handle,
                              const FunctionRules& rules,
                              const std::vector<CUlaunchAttribute>* advised) {
  WorkerSession& session = context.session();
  const uint64_t position = context.call().position;
  rules.Count();
  const rules::LaunchDecision& decision = rules.decision;
  auto function = session.functions.Find(call.function);
  if (decision.validate) {
    std::string wrong = WrongArgument(session.memory(), *function, rules, call.parameters);
    if (!wrong.empty()) {
      context.Refuse(CUDA_ERROR_INVALID_VALUE, wrong);
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  LaunchAttributes attributes;
  if (!attributes.Set(call.attributes, call.cooperative != 0)) return CUDA_ERROR_NOT_SUPPORTED;
  if (advised != nullptr) {
    for (const CUlaunchAttribute& attribute : *advised) attributes.Set(attribute);
  }
  for (const CUlaunchAttribute& attribute : rules.attributes) attributes.Set(attribute);
  const bool resizes = decision.change.grid[0] != 0 || decision.change.block[0] != 0;
  CUresult result = Launch(context, call, handle, attributes, resizes ? &decision.change : nullptr);
  if (result == CUDA_SUCCESS && decision.retry.count == 0) return result;
  bool again = result != CUDA_SUCCESS && result != kNotYet && !context.capturing() &&
               session.rules().TryAgain(position, decision.retry, result);
  if (again) return kNotYet;
  session.rules().Done(position);
  return result;
}

// Where there are rules or a policy for launches.
static CUresult LaunchLookedAt(CallContext& context, const calls::lwLaunch& call,
                               CUfunction handle) {
  static const FunctionRules kNoRules{};
  WorkerSession& session = context.session();
  const FunctionRules* rules = session.loaded_functions().RulesFor(call.function);
  if (rules == nullptr) rules = &kNoRules;
  if (session.rules().PausesNow(context.call().position)) return kNotYet;
  auto function = session.functions.Find(call.function);
  if (!rules->decision.denied_by.empty()) {
    rules->Count();
    return context.Deny(rules->decision.denied_by, "the launch of kernel '" + function->name + "'");
  }
  const std::vector<CUlaunchAttribute>* advised = nullptr;
  const launches::Shape shape{{call.grid_x, call.grid_y, call.grid_z},
                              {call.block_x, call.block_y, call.block_z},
                              call.shared_bytes};
  const auto device = static_cast<uint32_t>(context.context()->device);
  if (!session.launch_answers().Decide(*function, device, shape, &advised)) return kNotYet;
  return LaunchByRules(context, call, handle, *rules, advised);
}

static CUresult LaunchFound(CallContext& context, const calls::lwLaunch& call,
                            CUfunction function) {
  WorkerSession& session = context.session();
  if (session.rules().any()) [[unlikely]]
    return LaunchLookedAt(context, call, function);
  LaunchAttributes attributes;
  if (!attributes.Set(call.attributes, call.cooperative != 0)) return CUDA_ERROR_NOT_SUPPORTED;
  return Launch(context, call, function, attributes);
}

CUresult Do_lwLaunch(CallContext& context, const calls::lwLaunch& call, calls::lwLaunch::Reply*) {
  CUfunction function = nullptr;
  WorkerSession& session = context.session();
  LONGWIRE_TRY(session.loaded_functions().Find(call.function, context.context(), &function));
  if (!session.statistics().Follow() || context.capturing()) {
    return LaunchFound(context, call, function);
  }
  auto found = session.functions.Find(call.function);
  KernelStatistics::Launch counted(session.statistics(), *context.stream(), *found, call, function,
                                   context.call().position);
  CUresult result = LaunchFound(context, call, function);
  counted.Ends(result == CUDA_SUCCESS);
  return result;
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
