// Contexts of the session. A device's primary context is at first the driver's, which is warm. That
// one stays retained for the worker's life: staging memory and progress are in it, and it keeps the
// state of the session's code. So once the program has reset the device, its primary context is a
// new one of the driver's, in which variables and limits are as they were at first. Not where the
// program splits the device: green contexts are of the driver's primary one.
#include <algorithm>

#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/calls/context/context_charges.h"
#include "server/worker/support/log_line.h"

namespace longwire::worker {
namespace {

// Of the current context.
std::vector<size_t> LimitsOf(const DriverTable& driver) {
  std::vector<size_t> limits;
  for (int limit = 0; limit < CU_LIMIT_MAX; ++limit) {
    driver.cuCtxGetLimit(&limits.emplace_back(), static_cast<CUlimit>(limit));
  }
  return limits;
}

Device* FindDevice(WorkerSession& session, int32_t device) {
  auto& devices = session.devices();
  if (device < 0 || static_cast<size_t>(device) >= devices.size()) return nullptr;
  return &devices[static_cast<size_t>(device)];
}

// Limits and variables that the context's end leaves as they are.
bool LeavesState(WorkerSession& session, const Context& context) {
  if (LimitsOf(session.driver()) != context.limits) return true;
  auto libraries = session.libraries.All();
  return std::ranges::any_of(libraries, [](auto& one) { return one->library != nullptr; });
}

void DestroyModulesOf(WorkerSession& session, const Context& context) {
  for (auto& library : session.libraries.All()) {
    if (library->context.get() != &context) continue;
    for (uint64_t function : library->functions) session.functions.Take(function);
    session.libraries.Take(library->id);
    session.driver().cuModuleUnload(library->module);
    session.charges().Drop(Charges::Kind::kLibrary, library->id);
  }
  for (auto& function : session.functions.All()) {
    base::MutexLock lock(function->mutex);
    function->loaded.erase(context.id);
  }
}

}  // namespace

CUresult Do_lwContextCreate(CallContext& context, const calls::lwContextCreate& call,
                            calls::lwContextCreate::Reply* reply) {
  WorkerSession& session = context.session();
  Device* device = FindDevice(session, call.device);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  auto made = std::make_shared<Context>();
  made->id = call.context;
  made->device = call.device;
  made->driver_device = device->handle;
  made->primary = call.primary;
  ContextCharges charges;
  LONGWIRE_TRY(charges.Take(session, *made));
  bool splits = call.primary && session.resources().any();
  if (call.primary && (session.TakeWarmContext(call.device) || splits)) {
    made->handle = device->primary;
  } else {
    CUctxCreateParams parameters{};
    CUresult result =
        context.driver().cuCtxCreate_v4(&made->handle, &parameters, call.flags, device->handle);
    if (call.primary && result == CUDA_ERROR_OUT_OF_MEMORY) {
      LogLine("no memory for a new context: after the reset the device's state is as it was");
      made->handle = device->primary;
    } else if (result != CUDA_SUCCESS) {
      return result;
    }
  }
  CUresult result = session.SetContext(*made);
  if (made->handle == device->primary) made->limits = LimitsOf(context.driver());
  unsigned long long id = 0;
  if (result == CUDA_SUCCESS) result = context.driver().cuCtxGetId(made->handle, &id);
  if (result != CUDA_SUCCESS) return result;
  reply->context_id = id;
  if (!session.contexts.Insert(call.context, made)) return CUDA_ERROR_INVALID_VALUE;
  charges.Keep(session);
  return CUDA_SUCCESS;
}

CUresult Do_lwContextDestroy(CallContext& context, const calls::lwContextDestroy& call,
                             calls::lwContextDestroy::Reply*) {
  WorkerSession& session = context.session();
  auto found = session.contexts.Take(call.context);
  if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  session.SetContext(*found);
  bool warm = found->handle == session.devices()[static_cast<size_t>(found->device)].primary;
  bool leaves_state = warm && (found->failed != 0 || LeavesState(session, *found));
  for (auto& stream : session.streams.All()) {
    if (stream->context != found) continue;
    session.streams.Take(stream->id);
    session.chains().Forget(*stream);
    session.timelines().Detach(*stream);
    if (stream->kind != StreamKind::kLegacy && found->failed == 0) {
      context.driver().cuStreamDestroy_v2(stream->handle);
    }
  }
  session.events().DestroyAllOf(*found);
  session.spans().Forget(*found);
  DestroyModulesOf(session, *found);
  session.texture_objects.ForgetContext(found->id);
  if (warm) {
    FreeWhatStays(session, *found);
    if (!leaves_state) session.GiveWarmContext(found->device);
    return CUDA_SUCCESS;
  }
  session.SetNoContext();
  if (found->green != nullptr) return context.driver().cuGreenCtxDestroy(found->green);
  // Before: afterwards another context may have the handle.
  auto locals =
      session.charges().Remove(Charges::Kind::kLocals, reinterpret_cast<uint64_t>(found->handle));
  CUresult result = context.driver().cuCtxDestroy_v2(found->handle);
  if (result == CUDA_SUCCESS) session.charges().DropContext(found->id);
  return result;
}

}  // namespace longwire::worker
