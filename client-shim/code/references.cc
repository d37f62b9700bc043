#include "client-shim/code/references.h"

#include <cstring>

#include "base/try.h"
#include "client-shim/entry/handles.h"
#include "client-shim/session/session.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

using ReferenceTable = HandleTable<Reference, HandleKind::kReference>;

ReferenceTable& References() {
  static NeverDestroyed<ReferenceTable> table;
  return *table;
}

Reference* Publish(Module* module, const char* name, bool surface) {
  Reference* reference = References().New();
  if (reference == nullptr) return nullptr;
  reference->module = module;
  reference->surface = surface;
  reference->name = name;
  reference->handle = References().Publish(reference);
  return reference;
}

Reference* Known(Module* module, const char* name, bool surface) LONGWIRE_REQUIRES(module->mutex) {
  for (Reference* reference : module->references) {
    if (reference->name == name && reference->surface == surface) return reference;
  }
  return nullptr;
}

Reference* Add(Module* module, const char* name, bool surface,
               const calls::lwModuleReference::Reply& reply) LONGWIRE_REQUIRES(module->mutex) {
  Reference* reference = Publish(module, name, surface);
  if (reference == nullptr) return nullptr;
  base::MutexLock lock(reference->mutex);
  reference->number = reply.reference;
  reference->format = static_cast<CUarray_format>(reply.format);
  reference->channels = static_cast<unsigned>(reply.channels);
  if (reply.texture.size() == sizeof(reference->texture)) {
    std::memcpy(&reference->texture, reply.texture.data(), sizeof(reference->texture));
  }
  module->references.push_back(reference);
  module->has_references.store(true);
  return reference;
}

}  // namespace

CUresult ReferenceOf(Module* module, const char* name, bool surface, uint64_t* handle) {
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  base::MutexLock lock(module->mutex);
  Reference* reference = Known(module, name, surface);
  if (reference == nullptr) {
    lock.Unlock();
    calls::lwModuleReference ask;
    ask.library = module->id;
    ask.name = name;
    ask.surface = surface;
    auto answer = context->session->CallAndWait({context->number.load(), nullptr, 0}, ask);
    if (answer.code != CUDA_SUCCESS) return answer.code;
    lock.Lock();
    // Another thread may have asked at the same time: the first answer is the one that counts.
    reference = Known(module, name, surface);
    if (reference == nullptr) reference = Add(module, name, surface, answer.reply);
    if (reference == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = reference->handle;
  return CUDA_SUCCESS;
}

CUresult NewReference(uint64_t* handle) {
  Reference* reference = Publish(nullptr, "", false);
  if (reference == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = reference->handle;
  return CUDA_SUCCESS;
}

CUresult DestroyReference(Reference* reference) {
  if (reference->module != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!References().Retire(reference)) return CUDA_ERROR_INVALID_HANDLE;
  References().Recycle(reference);
  return CUDA_SUCCESS;
}

Reference* FindReference(uint64_t handle, bool surface) {
  Reference* reference = References().Find(handle);
  return reference != nullptr && reference->surface == surface ? reference : nullptr;
}

void ForgetReferences(Module* module) {
  base::MutexLock lock(module->mutex);
  for (Reference* reference : module->references) {
    if (References().Retire(reference)) References().Recycle(reference);
  }
  module->references.clear();
  module->has_references.store(false);
}

calls::BoundReference ReferenceBinding::record() const {
  calls::BoundReference record;
  record.reference = number;
  record.array = array;
  record.resource = std::as_bytes(std::span(&resource, 1));
  if (!surface) record.texture = std::as_bytes(std::span(&texture, 1));
  return record;
}

std::vector<ReferenceBinding> BindingsOf(Module* module) {
  std::vector<ReferenceBinding> bindings;
  if (!module->has_references.load(std::memory_order_acquire)) return bindings;
  base::MutexLock lock(module->mutex);
  for (Reference* reference : module->references) {
    base::MutexLock reference_lock(reference->mutex);
    if (!reference->bound) continue;
    ReferenceBinding binding{reference->number, 0, reference->surface, reference->resource,
                             reference->texture};
    auto& res = binding.resource.res;
    switch (binding.resource.resType) {
      case CU_RESOURCE_TYPE_ARRAY:
        binding.array = ToWire(res.array.hArray);
        res.array.hArray = nullptr;
        break;
      case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        binding.array = ToWire(res.mipmap.hMipmappedArray);
        res.mipmap.hMipmappedArray = nullptr;
        break;
      case CU_RESOURCE_TYPE_LINEAR:
        res.linear.format = reference->format;
        res.linear.numChannels = reference->channels;
        break;
      default:
        break;
    }
    bindings.push_back(binding);
  }
  return bindings;
}

}  // namespace longwire::shim
