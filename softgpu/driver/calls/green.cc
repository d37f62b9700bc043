// Resources of devices, and green contexts that have a part of them.
#include "softgpu/driver/device/green.h"

#include <algorithm>
#include <cstring>

#include "softgpu/driver/device/context.h"
#include "softgpu/driver/stream/stream.h"
#include "softgpu/engine/engine.h"

namespace softgpu {
namespace {

// As a device of compute capability 9.0 has it.
constexpr unsigned kSmallestPart = 8;       // multiprocessors
constexpr unsigned kSmallestUnordered = 2;  // the same, without regard to their neighbourhood

// What this driver keeps in the part of a CUdevResource that is its own.
struct Mark {
  uint64_t magic = 0;
  int device = 0;
  unsigned first = 0;  // multiprocessor
  uint64_t split = 0;  // which call of cuDevSmResourceSplitByCount made it; 0: none
};
constexpr uint64_t kMagic = 0x6e65657267ull;
static_assert(sizeof(Mark) <= sizeof(CUdevResource::_internal_padding));

CUdevResource MakeResource(Mark mark, unsigned count) {
  CUdevResource resource = {};
  if (count == 0) return resource;  // invalid: nothing remains
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  mark.magic = kMagic;
  memcpy(resource._internal_padding, &mark, sizeof mark);
  resource.sm = {count, kSmallestPart, kSmallestPart};
  return resource;
}

CUresult ReadResource(const CUdevResource& resource, Mark* mark) {
  if (resource.type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  memcpy(mark, resource._internal_padding, sizeof *mark);
  return mark->magic == kMagic ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUdevResource ResourceOf(const Context& context) {
  auto green = Driver::Get().greens.Find(GreenHandle(context));
  if (green) return green->resource;
  return MakeResource({0, context.device, 0, 0}, DeviceShape::kMultiprocessors);
}

CUresult Answer(const Context& context, CUdevResource* resource, CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *resource = ResourceOf(context);
  return CUDA_SUCCESS;
}

// Multiprocessors of each group of such a split.
unsigned GroupSize(unsigned flags, unsigned least) {
  bool unordered = (flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0;
  unsigned step = unordered ? kSmallestUnordered : kSmallestPart;
  return std::max(step, (least + step - 1) / step * step);
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  LONGWIRE_TRY(Enter());
  Device* found = Driver::Get().FindDevice(device);
  return found == nullptr ? CUDA_ERROR_INVALID_DEVICE : Answer(*found->primary, resource, type);
}

CUresult cuCtxGetDevResource(CUcontext handle, CUdevResource* resource, CUdevResourceType type) {
  Context* context;
  LONGWIRE_TRY(ResolveContext(handle, &context));
  return Answer(*context, resource, type);
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource* resource,
                                  CUdevResourceType type) {
  std::shared_ptr<GreenContext> green;
  LONGWIRE_TRY(FindGreen(handle, &green));
  return Answer(*green->context, resource, type);
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* groups, unsigned int* count,
                                     const CUdevResource* input, CUdevResource* remaining,
                                     unsigned int flags, unsigned int least) {
  LONGWIRE_TRY(Enter());
  constexpr unsigned kKnown = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |
                              CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
  if (count == nullptr || input == nullptr || (flags & ~kKnown) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Mark mark;
  LONGWIRE_TRY(ReadResource(*input, &mark));
  if (least > input->sm.smCount || (groups != nullptr && *count == 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (mark.split != 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  unsigned size = GroupSize(flags, least), possible = input->sm.smCount / size;
  if (possible == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  unsigned made = groups == nullptr ? possible : std::min(*count, possible);
  mark.split = Driver::Get().next_id++;
  for (unsigned i = 0; i < made; ++i) {
    if (groups != nullptr) groups[i] = MakeResource(mark, size);
    mark.first += size;
  }
  if (remaining != nullptr) *remaining = MakeResource(mark, input->sm.smCount - made * size);
  *count = made;
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* descriptor, CUdevResource* resources,
                                   unsigned int count) {
  LONGWIRE_TRY(Enter());
  if (descriptor == nullptr || resources == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  Mark first;
  LONGWIRE_TRY(ReadResource(resources[0], &first));
  unsigned multiprocessors = 0;
  for (unsigned i = 0; i < count; ++i) {
    Mark mark;
    LONGWIRE_TRY(ReadResource(resources[i], &mark));
    bool together = mark.device == first.device && mark.split == first.split;
    if (!together || (count > 1 && mark.split == 0)) {
      return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    }
    multiprocessors += resources[i].sm.smCount;
  }
  auto made = std::make_shared<GreenResources>();
  made->device = first.device;
  made->resource = MakeResource({0, first.device, first.first, 0}, multiprocessors);
  *descriptor = reinterpret_cast<CUdevResourceDesc>(Driver::Get().descriptors.Add(std::move(made)));
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx* handle, CUdevResourceDesc descriptor, CUdevice device,
                          unsigned int flags) {
  LONGWIRE_TRY(Enter());
  Device* found = Driver::Get().FindDevice(device);
  if (found == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  auto resources = Driver::Get().descriptors.Find(descriptor);
  if (handle == nullptr || !resources || resources->device != device ||
      flags != CU_GREEN_CTX_DEFAULT_STREAM) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto green = std::make_shared<GreenContext>();
  green->resource = resources->resource;
  CUcontext home;
  LONGWIRE_TRY(cuDevicePrimaryCtxRetain(&home, device));
  base::MutexLock lock(Driver::mutex);
  green->context = MakeContext(device, false);
  green->context->home = found->primary;
  green->context->green = green.get();
  green->context->multiprocessors = static_cast<int>(green->resource.sm.smCount);
  found->primary->parts.push_back(green->context);
  *handle = reinterpret_cast<CUgreenCtx>(Driver::Get().greens.Add(std::move(green)));
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx handle) {
  std::shared_ptr<GreenContext> green;
  LONGWIRE_TRY(FindGreen(handle, &green));
  EndGreenContext(*green);
  return cuDevicePrimaryCtxRelease(green->context->device);
}

CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx handle) {
  std::shared_ptr<GreenContext> green;
  LONGWIRE_TRY(FindGreen(handle, &green));
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = Handle(green->context);
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetId(CUgreenCtx handle, unsigned long long* id) {
  std::shared_ptr<GreenContext> green;
  Context* current = CurrentContext();
  if (handle == nullptr && current != nullptr) handle = GreenHandle(*current);
  LONGWIRE_TRY(FindGreen(handle, &green));
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = green->context->id;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx handle, unsigned int flags,
                                int priority) {
  std::shared_ptr<GreenContext> green;
  LONGWIRE_TRY(FindGreen(handle, &green));
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  return MakeStream(*green->context, flags, priority, stream);
}
