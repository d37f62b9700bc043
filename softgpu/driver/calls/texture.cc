// Texture and surface objects.
#include "softgpu/driver/module/texture.h"

#include <map>
#include <optional>

#include "softgpu/driver/stream/capture.h"
#include "softgpu/driver/stream/epoch.h"

namespace softgpu {
namespace {

struct Described {
  CUDA_RESOURCE_DESC resource;
  CUDA_TEXTURE_DESC texture;
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
  bool surface = false;
};

// What objects were made of, for the calls that ask.
struct Descriptions {
  base::Mutex mutex{base::ranks::kSoftgpuDescriptions};
  std::map<uint64_t, Described> objects LONGWIRE_GUARDED_BY(mutex);
};

Descriptions& TheDescriptions() {
  static auto* descriptions = new Descriptions;
  return *descriptions;
}

CUresult FindDescribed(uint64_t object, bool surface, Described* described) {
  LONGWIRE_TRY(Enter());
  Descriptions& all = TheDescriptions();
  base::MutexLock lock(all.mutex);
  auto found = all.objects.find(object);
  if (found == all.objects.end() || found->second.surface != surface) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *described = found->second;
  return CUDA_SUCCESS;
}

CUresult Create(uint64_t* object, const CUDA_RESOURCE_DESC& resource,
                const CUDA_TEXTURE_DESC& texture, const CUDA_RESOURCE_VIEW_DESC* view,
                bool surface) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  if (surface && resource.resType != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<const TextureView> made;
  LONGWIRE_TRY(MakeView(resource, texture, view, &made));
  *object = texture_objects::Add(std::move(made));
  Descriptions& all = TheDescriptions();
  base::MutexLock lock(all.mutex);
  all.objects[*object] = {resource, texture, view == nullptr ? std::nullopt : std::optional(*view),
                          surface};
  return CUDA_SUCCESS;
}

CUresult Destroy(uint64_t object, bool surface) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  if (object == 0) return CUDA_SUCCESS;
  Described described;
  LONGWIRE_TRY(FindDescribed(object, surface, &described));
  RetireTextureObject(object);
  Descriptions& all = TheDescriptions();
  base::MutexLock lock(all.mutex);
  all.objects.erase(object);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuTexObjectCreate(CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                           const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
  if (object == nullptr || resource == nullptr || texture == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t made = 0;
  LONGWIRE_TRY(EnterUnsafe());
  LONGWIRE_TRY(Create(&made, *resource, *texture, view, false));
  *object = made;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject object) { return Destroy(object, false); }

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject object) {
  Described described;
  LONGWIRE_TRY(FindDescribed(object, false, &described));
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *resource = described.resource;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* texture, CUtexObject object) {
  Described described;
  LONGWIRE_TRY(FindDescribed(object, false, &described));
  if (texture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *texture = described.texture;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* view, CUtexObject object) {
  Described described;
  LONGWIRE_TRY(FindDescribed(object, false, &described));
  if (view == nullptr || !described.view) return CUDA_ERROR_INVALID_VALUE;
  *view = *described.view;
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectCreate(CUsurfObject* object, const CUDA_RESOURCE_DESC* resource) {
  if (object == nullptr || resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t made = 0;
  LONGWIRE_TRY(Create(&made, *resource, {}, nullptr, true));
  *object = made;
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectDestroy(CUsurfObject object) { return Destroy(object, true); }

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUsurfObject object) {
  Described described;
  LONGWIRE_TRY(FindDescribed(object, true, &described));
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *resource = described.resource;
  return CUDA_SUCCESS;
}
