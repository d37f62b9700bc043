// Texture and surface objects.
#include <cstring>

#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/calls/texture/texture_reference.h"

namespace longwire::worker {
namespace {

// Takes a struct that may be left out.
template <class T>
bool Optional(std::span<const std::byte> packed, T* value, T** pointer) {
  *pointer = nullptr;
  if (packed.empty()) return true;
  if (packed.size() != sizeof(T)) return false;
  std::memcpy(value, packed.data(), sizeof(T));
  *pointer = value;
  return true;
}

bool Note(CallContext& context, uint64_t object, ObjectValues::Kind kind) {
  uint32_t owner = context.context() != nullptr ? context.context()->id : 0;
  return context.session().texture_objects.Add(object, kind, owner);
}

// The driver takes other values for what they are not. It interprets 0 itself.
bool MayDestroy(CallContext& context, uint64_t object, ObjectValues::Kind kind) {
  return object == 0 || context.session().texture_objects.Take(object, kind) ||
         !CallContext::ChecksHandles();
}

}  // namespace

CUresult Do_lwTextureCreate(CallContext& context, const calls::lwTextureCreate& call,
                            calls::lwTextureCreate::Reply* reply) {
  CUDA_RESOURCE_DESC resource{};
  LONGWIRE_TRY(ReadResource(context, call.resource, call.array, &resource));
  CUDA_TEXTURE_DESC texture{}, *texture_pointer = nullptr;
  CUDA_RESOURCE_VIEW_DESC view{}, *view_pointer = nullptr;
  if (!Optional(call.texture, &texture, &texture_pointer) ||
      !Optional(call.view, &view, &view_pointer)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUtexObject object = 0;
  CUresult result =
      context.driver().cuTexObjectCreate(&object, &resource, texture_pointer, view_pointer);
  if (result == CUDA_SUCCESS && !Note(context, object, ObjectValues::Kind::kTexture)) {
    context.driver().cuTexObjectDestroy(object);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  reply->texture = object;
  return result;
}

CUresult Do_lwSurfaceCreate(CallContext& context, const calls::lwSurfaceCreate& call,
                            calls::lwSurfaceCreate::Reply* reply) {
  CUDA_RESOURCE_DESC resource{};
  LONGWIRE_TRY(ReadResource(context, call.resource, call.array, &resource));
  CUsurfObject object = 0;
  CUresult result = context.driver().cuSurfObjectCreate(&object, &resource);
  if (result == CUDA_SUCCESS && !Note(context, object, ObjectValues::Kind::kSurface)) {
    context.driver().cuSurfObjectDestroy(object);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  reply->surface = object;
  return result;
}

CUresult Do_cuTexObjectDestroy(CallContext& context, const calls::cuTexObjectDestroy& call,
                               calls::cuTexObjectDestroy::Reply*) {
  if (!MayDestroy(context, call.texObject, ObjectValues::Kind::kTexture)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return context.driver().cuTexObjectDestroy(call.texObject);
}

CUresult Do_cuSurfObjectDestroy(CallContext& context, const calls::cuSurfObjectDestroy& call,
                                calls::cuSurfObjectDestroy::Reply*) {
  if (!MayDestroy(context, call.surfObject, ObjectValues::Kind::kSurface)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return context.driver().cuSurfObjectDestroy(call.surfObject);
}

}  // namespace longwire::worker
