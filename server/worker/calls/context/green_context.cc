// Parts of a device, and the green contexts that are made of them.
#include <cstring>

#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/support/log_line.h"

namespace longwire::worker {
namespace {

constexpr uint32_t kMaxParts = 4096;  // of one split

// Tells the client a resource, which it may hand back from now on.
template <class Reply>
CUresult Tell(WorkerSession& session, CUresult result, const CUdevResource& resource,
              Reply* reply) {
  static_assert(sizeof(reply->resource) == sizeof resource);
  if (result != CUDA_SUCCESS) return result;
  session.resources().Add({&resource, 1});
  std::memcpy(reply->resource.data(), &resource, sizeof resource);
  return CUDA_SUCCESS;
}

std::span<const std::byte> Kept(CallContext& context, std::span<const CUdevResource> resources) {
  auto bytes = std::as_bytes(resources);
  return std::as_bytes(std::span(
      context.Keep(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()))));
}

}  // namespace

CUresult Do_cuDeviceGetDevResource(CallContext& context, const calls::cuDeviceGetDevResource& call,
                                   calls::cuDeviceGetDevResource::Reply* reply) {
  CUdevice device = 0;
  CUdevResource resource{};
  CUresult result = context.ResolveDevice(call.device, &device);
  if (result == CUDA_SUCCESS) {
    result = context.driver().cuDeviceGetDevResource(device, &resource,
                                                     static_cast<CUdevResourceType>(call.type));
  }
  return Tell(context.session(), result, resource, reply);
}

CUresult Do_cuCtxGetDevResource(CallContext& context, const calls::cuCtxGetDevResource& call,
                                calls::cuCtxGetDevResource::Reply* reply) {
  CUcontext handle = nullptr;
  CUdevResource resource{};
  CUresult result = context.Resolve(call.hCtx, &handle);
  if (result == CUDA_SUCCESS) {
    result = context.driver().cuCtxGetDevResource(handle, &resource,
                                                  static_cast<CUdevResourceType>(call.type));
  }
  return Tell(context.session(), result, resource, reply);
}

CUresult Do_cuGreenCtxGetDevResource(CallContext& context,
                                     const calls::cuGreenCtxGetDevResource& call,
                                     calls::cuGreenCtxGetDevResource::Reply* reply) {
  CUdevResource resource{};
  auto green = context.session().contexts.Find(call.hCtx);
  if (green == nullptr || green->green == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  CUresult result = context.driver().cuGreenCtxGetDevResource(
      green->green, &resource, static_cast<CUdevResourceType>(call.type));
  return Tell(context.session(), result, resource, reply);
}

CUresult Do_lwSplitResource(CallContext& context, const calls::lwSplitResource& call,
                            calls::lwSplitResource::Reply* reply) {
  WorkerSession& session = context.session();
  std::vector<CUdevResource> input;
  LONGWIRE_TRY(session.resources().Read(call.input, &input));
  if (input.size() != 1 || call.groups > kMaxParts) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUdevResource> groups(call.query ? 0 : std::max(call.groups, 1u));
  CUdevResource remaining{};
  unsigned count = call.groups;
  LONGWIRE_TRY(context.driver().cuDevSmResourceSplitByCount(call.query ? nullptr : groups.data(),
                                                            &count, input.data(), &remaining,
                                                            call.flags, call.least));
  if (!call.query) groups.resize(std::min<size_t>(count, groups.size()));
  session.resources().Add(groups);
  session.resources().Add({&remaining, 1});
  reply->groups = count;
  reply->group = Kept(context, groups);
  reply->remaining = Kept(context, {&remaining, 1});
  return CUDA_SUCCESS;
}

CUresult Do_lwResourceDescriptor(CallContext& context, const calls::lwResourceDescriptor& call,
                                 calls::lwResourceDescriptor::Reply* reply) {
  std::vector<CUdevResource> resources;
  CUresult result = context.session().resources().Read(call.resource, &resources);
  CUdevResourceDesc descriptor = nullptr;
  if (result == CUDA_SUCCESS) {
    result = context.driver().cuDevResourceGenerateDesc(&descriptor, resources.data(),
                                                        static_cast<unsigned>(resources.size()));
  }
  if (result == CUDA_SUCCESS) reply->descriptor = context.Publish(descriptor);
  return result;
}

CUresult Do_lwGreenContextCreate(CallContext& context, const calls::lwGreenContextCreate& call,
                                 calls::lwGreenContextCreate::Reply* reply) {
  WorkerSession& session = context.session();
  const DriverTable& driver = context.driver();
  auto home = session.contexts.Find(call.home);
  if (home == nullptr || !home->primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (home->handle != session.devices()[static_cast<size_t>(home->device)].primary) {
    LogLine("no green context: the device was reset before the program asked for parts of it");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  CUdevResourceDesc descriptor = nullptr;
  CUresult result = context.Resolve(call.descriptor, &descriptor);
  // What the driver answers for a descriptor that is none.
  if (result != CUDA_SUCCESS || descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_shared<Context>();
  made->id = call.context;
  made->device = home->device;
  made->driver_device = home->driver_device;
  made->home = home;
  result = driver.cuGreenCtxCreate(&made->green, descriptor, home->driver_device, call.flags);
  if (result != CUDA_SUCCESS) return result;
  CUdevResource resource{};
  result = driver.cuCtxFromGreenCtx(&made->handle, made->green);
  if (result == CUDA_SUCCESS) {
    result = driver.cuGreenCtxGetDevResource(made->green, &resource, CU_DEV_RESOURCE_TYPE_SM);
  }
  if (result == CUDA_SUCCESS && !session.contexts.Insert(call.context, made)) {
    result = CUDA_ERROR_INVALID_VALUE;
  }
  if (result != CUDA_SUCCESS) driver.cuGreenCtxDestroy(made->green);
  reply->multiprocessors = resource.sm.smCount;
  return result;
}

}  // namespace longwire::worker
