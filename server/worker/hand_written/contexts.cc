// Contexts of the session. A primary context is the device's warm one and stays retained for the
// worker's life: destroying it frees what the session made in it.
#include "longwire/worker_hand_written.h"
#include "server/worker/call_context.h"

namespace longwire::worker {
namespace {

Device* FindDevice(Session& session, int32_t device) {
  auto& devices = session.devices();
  if (device < 0 || static_cast<size_t>(device) >= devices.size()) return nullptr;
  return &devices[static_cast<size_t>(device)];
}

void DestroyModulesOf(Session& session, const Context& context) {
  for (auto& library : session.libraries.All()) {
    if (library->context.get() != &context) continue;
    for (uint64_t function : library->functions) session.functions.Take(function);
    session.libraries.Take(library->id);
    session.driver().cuModuleUnload(library->module);
  }
  for (auto& function : session.functions.All()) {
    std::lock_guard lock(function->mutex);
    function->loaded.erase(context.id);
  }
}

}  // namespace

CUresult Do_lwContextCreate(CallContext& context, const calls::lwContextCreate& call,
                            calls::lwContextCreate::Reply* reply) {
  Session& session = context.session();
  Device* device = FindDevice(session, call.device);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  auto made = std::make_shared<Context>();
  made->id = call.context;
  made->device = call.device;
  made->driver_device = device->handle;
  made->primary = call.primary;
  if (call.primary) {
    made->handle = device->primary;
  } else {
    CUctxCreateParams parameters{};
    CUresult result =
        context.driver().cuCtxCreate_v4(&made->handle, &parameters, call.flags, device->handle);
    if (result != CUDA_SUCCESS) return result;
  }
  CUresult result = session.SetContext(*made);
  unsigned long long id = 0;
  if (result == CUDA_SUCCESS) result = context.driver().cuCtxGetId(made->handle, &id);
  if (result != CUDA_SUCCESS) return result;
  reply->context_id = id;
  return session.contexts.Insert(call.context, made) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult Do_lwContextDestroy(CallContext& context, const calls::lwContextDestroy& call,
                             calls::lwContextDestroy::Reply*) {
  Session& session = context.session();
  auto found = session.contexts.Take(call.context);
  if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  session.SetContext(*found);
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
  DestroyModulesOf(session, *found);
  if (found->primary) return CUDA_SUCCESS;
  session.SetNoContext();
  return found->green != nullptr ? context.driver().cuGreenCtxDestroy(found->green)
                                 : context.driver().cuCtxDestroy_v2(found->handle);
}

}  // namespace longwire::worker
