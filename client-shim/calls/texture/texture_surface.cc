// Texture and surface objects. Their values are the driver's own: kernels read them.
#include <cstring>
#include <optional>
#include <unordered_map>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/entry/handles.h"
#include "client-shim/session/session.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/calls.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

struct Described {
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
};

using Table = std::unordered_map<uint64_t, Described>;

struct Objects {
  base::Mutex mutex{base::ranks::kTextureObjects};
  Table textures LONGWIRE_GUARDED_BY(mutex);
  Table surfaces LONGWIRE_GUARDED_BY(mutex);
};

Objects& TheObjects() {
  static NeverDestroyed<Objects> objects;
  return *objects;
}

// Takes the handle out of a resource description: it travels as a number.
CUresult Separate(const CUDA_RESOURCE_DESC& resource, CUDA_RESOURCE_DESC* plain, uint64_t* array) {
  *plain = resource;
  *array = 0;
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      *array = ToWire(resource.res.array.hArray);
      plain->res.array.hArray = nullptr;
      return *array == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      *array = ToWire(resource.res.mipmap.hMipmappedArray);
      plain->res.mipmap.hMipmappedArray = nullptr;
      return *array == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_LINEAR:
    case CU_RESOURCE_TYPE_PITCH2D:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

template <class T>
std::span<const std::byte> Bytes(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

void Add(Table Objects::*table, uint64_t object, const Described& described) {
  Objects& objects = TheObjects();
  base::MutexLock lock(objects.mutex);
  (objects.*table)[object] = described;
}

// Calls `get` with the object's description.
template <class Get>
CUresult Look(Table Objects::*table, uint64_t object, Get get) {
  Objects& objects = TheObjects();
  base::MutexLock lock(objects.mutex);
  auto found = (objects.*table).find(object);
  return found == (objects.*table).end() ? CUDA_ERROR_INVALID_VALUE : get(found->second);
}

void Forget(Table Objects::*table, uint64_t object) {
  Objects& objects = TheObjects();
  base::MutexLock lock(objects.mutex);
  (objects.*table).erase(object);
}

}  // namespace

CUresult cuTexObjectCreate(CUtexObject* pTexObject, const CUDA_RESOURCE_DESC* pResDesc,
                           const CUDA_TEXTURE_DESC* pTexDesc,
                           const CUDA_RESOURCE_VIEW_DESC* pResViewDesc) {
  if (pTexObject == nullptr || pResDesc == nullptr || pTexDesc == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  CUDA_RESOURCE_DESC plain;
  calls::lwTextureCreate create;
  LONGWIRE_TRY(Separate(*pResDesc, &plain, &create.array));
  create.resource = Bytes(plain);
  create.texture = Bytes(*pTexDesc);
  if (pResViewDesc != nullptr) create.view = Bytes(*pResViewDesc);
  auto answer = context->session->CallAndWait({context->number.load(), nullptr, 0}, create);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  *pTexObject = answer.reply.texture;
  Described described{*pResDesc, *pTexDesc, std::nullopt};
  if (pResViewDesc != nullptr) described.view = *pResViewDesc;
  Add(&Objects::textures, *pTexObject, described);
  return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject texObject) {
  if (texObject == 0) return CUDA_SUCCESS;
  Forget(&Objects::textures, texObject);
  return forward::cuTexObjectDestroy(texObject);
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUtexObject texObject) {
  return Look(&Objects::textures, texObject, [&](const Described& described) {
    *pResDesc = described.resource;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* pTexDesc, CUtexObject texObject) {
  return Look(&Objects::textures, texObject, [&](const Described& described) {
    *pTexDesc = described.texture;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* pResViewDesc,
                                        CUtexObject texObject) {
  return Look(&Objects::textures, texObject, [&](const Described& described) {
    if (!described.view) return CUDA_ERROR_INVALID_VALUE;
    *pResViewDesc = *described.view;
    return CUDA_SUCCESS;
  });
}

CUresult cuSurfObjectCreate(CUsurfObject* pSurfObject, const CUDA_RESOURCE_DESC* pResDesc) {
  if (pSurfObject == nullptr || pResDesc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (pResDesc->resType != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  CUDA_RESOURCE_DESC plain;
  calls::lwSurfaceCreate create;
  LONGWIRE_TRY(Separate(*pResDesc, &plain, &create.array));
  create.resource = Bytes(plain);
  auto answer = context->session->CallAndWait({context->number.load(), nullptr, 0}, create);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  *pSurfObject = answer.reply.surface;
  Add(&Objects::surfaces, *pSurfObject, {*pResDesc, {}, std::nullopt});
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectDestroy(CUsurfObject surfObject) {
  if (surfObject == 0) return CUDA_SUCCESS;
  Forget(&Objects::surfaces, surfObject);
  return forward::cuSurfObjectDestroy(surfObject);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUsurfObject surfObject) {
  return Look(&Objects::surfaces, surfObject, [&](const Described& described) {
    *pResDesc = described.resource;
    return CUDA_SUCCESS;
  });
}

}  // namespace longwire::shim::hand
