// Texture and surface references: names in a module that are bound to memory between launches.
#include "softgpu/driver/module/texture_reference.h"

#include <algorithm>
#include <cstring>

#include "softgpu/driver/memory/array.h"
#include "softgpu/driver/module/module.h"
#include "softgpu/driver/module/texture.h"
#include "softgpu/driver/stream/run.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // all of these are

namespace softgpu {
namespace {

constexpr size_t kAlignment = 512;      // bytes, of what a texture starts at
constexpr size_t kPitchAlignment = 32;  // bytes

CUresult FindReference(const void* handle, bool surface, std::shared_ptr<TextureReference>* found) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  *found = Driver::Get().references.Find(handle);
  return *found && (*found)->surface == surface ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <class Set>
CUresult Change(const void* handle, bool surface, Set set) {
  std::shared_ptr<TextureReference> reference;
  LONGWIRE_TRY(FindReference(handle, surface, &reference));
  base::MutexLock lock(reference->mutex);
  reference->view.reset();
  return set(*reference);
}

template <class Get>
CUresult Ask(const void* handle, bool surface, Get get) {
  std::shared_ptr<TextureReference> reference;
  LONGWIRE_TRY(FindReference(handle, surface, &reference));
  base::MutexLock lock(reference->mutex);
  return get(*reference);
}

CUresult FindInModule(CUmodule handle, const char* name, bool surface, void** reference) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  auto module = Driver::Get().modules.Find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr || reference == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < module->references.size(); ++i) {
    const ReferenceInfo& info = module->program->references()[i];
    if (info.name != name || info.surface != surface) continue;
    *reference = module->references[i].get();
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult BindArray(TextureReference& reference, CUarray array) LONGWIRE_REQUIRES(reference.mutex) {
  auto found = FindArray(array);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (reference.surface && (found->shape.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  reference.resource = {};
  reference.resource.resType = CU_RESOURCE_TYPE_ARRAY;
  reference.resource.res.array.hArray = array;
  reference.format = found->shape.Format;
  reference.channels = found->shape.NumChannels;
  reference.bound = true;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuModuleGetTexRef(CUtexref* reference, CUmodule module, const char* name) {
  return FindInModule(module, name, false, reinterpret_cast<void**>(reference));
}
CUresult cuModuleGetSurfRef(CUsurfref* reference, CUmodule module, const char* name) {
  return FindInModule(module, name, true, reinterpret_cast<void**>(reference));
}

CUresult cuTexRefCreate(CUtexref* reference) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  if (reference == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_shared<TextureReference>();
  *reference = reinterpret_cast<CUtexref>(Driver::Get().references.Add(std::move(made)));
  return CUDA_SUCCESS;
}

CUresult cuTexRefDestroy(CUtexref handle) {
  std::shared_ptr<TextureReference> reference;
  LONGWIRE_TRY(FindReference(handle, false, &reference));
  if (reference->module != nullptr) return CUDA_ERROR_INVALID_VALUE;
  Driver::Get().references.Remove(handle);
  return CUDA_SUCCESS;
}

CUresult cuTexRefSetArray(CUtexref handle, CUarray array, unsigned int flags) {
  return Change(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    return flags == CU_TRSA_OVERRIDE_FORMAT ? BindArray(reference, array)
                                            : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuTexRefSetMipmappedArray(CUtexref handle, CUmipmappedArray array, unsigned int flags) {
  return Change(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    auto found = Driver::Get().mipmaps.Find(array);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (flags != CU_TRSA_OVERRIDE_FORMAT) return CUDA_ERROR_INVALID_VALUE;
    reference.resource = {};
    reference.resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    reference.resource.res.mipmap.hMipmappedArray = array;
    reference.format = found->levels.front()->shape.Format;
    reference.channels = found->levels.front()->shape.NumChannels;
    reference.bound = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetAddress(size_t* offset, CUtexref handle, CUdeviceptr address, size_t bytes) {
  return Change(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    const size_t beyond = address % kAlignment;
    if (address == 0 || bytes == 0 || (beyond != 0 && offset == nullptr) ||
        !Reachable(address, bytes, CurrentContext()->device)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (offset != nullptr) *offset = beyond;
    reference.resource = {};
    reference.resource.resType = CU_RESOURCE_TYPE_LINEAR;
    reference.resource.res.linear.devPtr = address - beyond;
    reference.resource.res.linear.sizeInBytes = bytes + beyond;
    reference.bound = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetAddress2D(CUtexref handle, const CUDA_ARRAY_DESCRIPTOR* shape,
                              CUdeviceptr address, size_t pitch) {
  return Change(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    if (shape == nullptr || address % kAlignment != 0 || pitch % kPitchAlignment != 0 ||
        ChannelBytes(shape->Format) == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_RESOURCE_DESC resource = {};
    resource.resType = CU_RESOURCE_TYPE_PITCH2D;
    resource.res.pitch2D = {address,      shape->Format, shape->NumChannels,
                            shape->Width, shape->Height, pitch};
    std::shared_ptr<const TextureView> possible;
    LONGWIRE_TRY(MakeView(resource, reference.texture, nullptr, &possible));
    reference.resource = resource;
    reference.format = shape->Format;
    reference.channels = shape->NumChannels;
    reference.bound = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetFormat(CUtexref handle, CUarray_format format, int channels) {
  return Change(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    if (longwire::base::TexelBytes(format, static_cast<unsigned>(channels)) == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    reference.format = format;
    reference.channels = static_cast<unsigned>(channels);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetAddressMode(CUtexref handle, int axis, CUaddress_mode mode) {
  return Change(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    if (axis < 0 || axis > 2 || mode > CU_TR_ADDRESS_MODE_BORDER) return CUDA_ERROR_INVALID_VALUE;
    reference.texture.addressMode[axis] = mode;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetFilterMode(CUtexref handle, CUfilter_mode mode) {
  return Change(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    if (mode > CU_TR_FILTER_MODE_LINEAR) return CUDA_ERROR_INVALID_VALUE;
    reference.texture.filterMode = mode;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMipmapFilterMode(CUtexref handle, CUfilter_mode mode) {
  return Change(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    if (mode > CU_TR_FILTER_MODE_LINEAR) return CUDA_ERROR_INVALID_VALUE;
    reference.texture.mipmapFilterMode = mode;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMipmapLevelBias(CUtexref handle, float bias) {
  return Change(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    reference.texture.mipmapLevelBias = bias;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMipmapLevelClamp(CUtexref handle, float least, float most) {
  return Change(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    reference.texture.minMipmapLevelClamp = least;
    reference.texture.maxMipmapLevelClamp = most;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMaxAnisotropy(CUtexref handle, unsigned int ratio) {
  return Change(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    reference.texture.maxAnisotropy = ratio;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetBorderColor(CUtexref handle, float* color) {
  return Change(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    if (color == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::copy_n(color, 4, reference.texture.borderColor);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetFlags(CUtexref handle, unsigned int flags) {
  return Change(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    reference.texture.flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetAddressMode(CUaddress_mode* mode, CUtexref handle, int axis) {
  return Ask(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    if (mode == nullptr || axis < 0 || axis > 2) return CUDA_ERROR_INVALID_VALUE;
    *mode = reference.texture.addressMode[axis];
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetFilterMode(CUfilter_mode* mode, CUtexref handle) {
  return Ask(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *mode = reference.texture.filterMode;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetFormat(CUarray_format* format, int* channels, CUtexref handle) {
  return Ask(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    if (format != nullptr) *format = reference.format;
    if (channels != nullptr) *channels = static_cast<int>(reference.channels);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetFlags(unsigned int* flags, CUtexref handle) {
  return Ask(handle, false, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = reference.texture.flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuSurfRefSetArray(CUsurfref handle, CUarray array, unsigned int flags) {
  return Change(handle, true, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    return flags == 0 ? BindArray(reference, array) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuSurfRefGetArray(CUarray* array, CUsurfref handle) {
  return Ask(handle, true, [&](TextureReference& reference) {
    reference.mutex.AssertHeld();
    if (array == nullptr || !reference.bound) return CUDA_ERROR_INVALID_VALUE;
    *array = reference.resource.res.array.hArray;
    return CUDA_SUCCESS;
  });
}
