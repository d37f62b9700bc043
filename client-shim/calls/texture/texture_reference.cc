// Texture and surface references: the program's side of them is kept in this process, what they are
// bound to travels with each launch.
#include <algorithm>

#include "base/texel_bytes.h"
#include "base/try.h"
#include "client-shim/code/references.h"
#include "client-shim/context/properties.h"
#include "client-shim/memory/pointers.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

template <class Handle>
uint64_t Number(Handle handle) {
  return reinterpret_cast<uint64_t>(handle);
}

// Calls `act` with the reference, locked.
template <class Act>
CUresult With(uint64_t handle, bool surface, Act act) {
  Reference* reference = FindReference(handle, surface);
  if (reference == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  base::MutexLock lock(reference->mutex);
  return act(*reference);
}

template <class Act>
CUresult WithTexture(CUtexref handle, Act act) {
  return With(Number(handle), false, act);
}

template <class Value>
CUresult Tell(Value* to, Value value) {
  *to = value;
  return CUDA_SUCCESS;
}

size_t Alignment(CUdevice_attribute attribute, int fallback) {
  Context* context = nullptr;
  if (RequireContext(&context) != CUDA_SUCCESS) return static_cast<size_t>(fallback);
  int value = AttributeOr(*FindDevice(context->device), attribute, fallback);
  return static_cast<size_t>(std::max(value, 1));
}

// The bytes of rows that lie a pitch apart; false if they overlap or are impossibly many.
bool RowsOf(const CUDA_ARRAY_DESCRIPTOR& shape, size_t pitch, size_t* bytes) {
  size_t row = 0;
  return shape.Width != 0 && shape.Height != 0 &&
         !__builtin_mul_overflow(shape.Width, base::TexelBytes(shape.Format, shape.NumChannels),
                                 &row) &&
         row != 0 && pitch >= row && !__builtin_mul_overflow(pitch, shape.Height - 1, bytes) &&
         !__builtin_add_overflow(*bytes, row, bytes);
}

// What a reference is to be bound to.
struct Binding {
  CUDA_RESOURCE_DESC resource{};
  bool has_format = false;  // else the reference keeps its own
  CUarray_format format{};
  unsigned channels = 0;
};

// find(binding): what it is to be; may wait, so it runs before the reference's lock is taken.
template <class Find>
CUresult Bind(uint64_t handle, bool surface, Find find) {
  Reference* reference = FindReference(handle, surface);
  if (reference == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Binding binding;
  LONGWIRE_TRY(find(&binding));
  base::MutexLock lock(reference->mutex);
  reference->resource = binding.resource;
  reference->bound = true;
  if (!binding.has_format) return CUDA_SUCCESS;
  reference->format = binding.format;
  reference->channels = binding.channels;
  return CUDA_SUCCESS;
}

// The worker's driver knows the array, or says that it is none.
CUresult FindArray(CUarray array, bool surface, Binding* binding) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  LONGWIRE_TRY(forward::cuArray3DGetDescriptor_v2(&shape, array));
  if (surface && (shape.Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0) return CUDA_ERROR_INVALID_VALUE;
  binding->resource.resType = CU_RESOURCE_TYPE_ARRAY;
  binding->resource.res.array.hArray = array;
  binding->has_format = true;
  binding->format = shape.Format;
  binding->channels = shape.NumChannels;
  return CUDA_SUCCESS;
}

CUresult FindInModule(CUmodule handle, const char* name, bool surface, uint64_t* reference) {
  Module* module = FindModule(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return ReferenceOf(module, name, surface, reference);
}

}  // namespace

CUresult cuModuleGetTexRef(CUtexref* pTexRef, CUmodule hmod, const char* name) {
  return FindInModule(hmod, name, false, reinterpret_cast<uint64_t*>(pTexRef));
}

CUresult cuModuleGetSurfRef(CUsurfref* pSurfRef, CUmodule hmod, const char* name) {
  return FindInModule(hmod, name, true, reinterpret_cast<uint64_t*>(pSurfRef));
}

CUresult cuTexRefCreate(CUtexref* pTexRef) {
  Context* context = nullptr;
  CUresult result = RequireContext(&context);
  return result != CUDA_SUCCESS ? result : NewReference(reinterpret_cast<uint64_t*>(pTexRef));
}

CUresult cuTexRefDestroy(CUtexref hTexRef) {
  Reference* reference = FindReference(Number(hTexRef), false);
  return reference == nullptr ? CUDA_ERROR_INVALID_HANDLE : DestroyReference(reference);
}

CUresult cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags) {
  return Bind(Number(hTexRef), false, [&](Binding* binding) {
    // The driver takes it without the flag, too.
    bool known = (Flags & ~unsigned{CU_TRSA_OVERRIDE_FORMAT}) == 0;
    return known ? FindArray(hArray, false, binding) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray,
                                   unsigned int Flags) {
  return Bind(Number(hTexRef), false, [&](Binding* binding) {
    if (Flags != CU_TRSA_OVERRIDE_FORMAT) return CUDA_ERROR_INVALID_VALUE;
    CUarray level = nullptr;
    LONGWIRE_TRY(forward::cuMipmappedArrayGetLevel(&level, hMipmappedArray, 0));
    LONGWIRE_TRY(FindArray(level, false, binding));  // its format
    binding->resource = {};
    binding->resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    binding->resource.res.mipmap.hMipmappedArray = hMipmappedArray;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetAddress_v2(size_t* ByteOffset, CUtexref hTexRef, CUdeviceptr dptr,
                               size_t bytes) {
  return Bind(Number(hTexRef), false, [&](Binding* binding) {
    const size_t beyond = dptr % Alignment(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512);
    if (bytes == 0 || (beyond != 0 && ByteOffset == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    if (!IsDeviceAddress(dptr) || CheckDeviceRange(dptr, bytes) != CUDA_SUCCESS) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (ByteOffset != nullptr) *ByteOffset = beyond;
    binding->resource.resType = CU_RESOURCE_TYPE_LINEAR;
    binding->resource.res.linear.devPtr = dptr - beyond;
    binding->resource.res.linear.sizeInBytes = bytes + beyond;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetAddress(unsigned int* ByteOffset, CUtexref hTexRef, CUdeviceptr_v1 dptr,
                            unsigned int bytes) {
  size_t offset = 0;  // below the alignment
  CUresult result =
      hand::cuTexRefSetAddress_v2(ByteOffset == nullptr ? nullptr : &offset, hTexRef, dptr, bytes);
  if (result == CUDA_SUCCESS && ByteOffset != nullptr) *ByteOffset = static_cast<unsigned>(offset);
  return result;
}

CUresult cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR* desc,
                                 CUdeviceptr dptr, size_t Pitch) {
  return Bind(Number(hTexRef), false, [&](Binding* binding) {
    size_t bytes = 0;
    if (!RowsOf(*desc, Pitch, &bytes) ||
        dptr % Alignment(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512) != 0 ||
        Pitch % Alignment(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32) != 0 ||
        !IsDeviceAddress(dptr) || CheckDeviceRange(dptr, bytes) != CUDA_SUCCESS) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    binding->resource.resType = CU_RESOURCE_TYPE_PITCH2D;
    binding->resource.res.pitch2D = {dptr,        desc->Format, desc->NumChannels,
                                     desc->Width, desc->Height, Pitch};
    binding->has_format = true;
    binding->format = desc->Format;
    binding->channels = desc->NumChannels;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetAddress2D(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR_v1* desc,
                              CUdeviceptr_v1 dptr, unsigned int Pitch) {
  const CUDA_ARRAY_DESCRIPTOR wide{desc->Width, desc->Height, desc->Format, desc->NumChannels};
  return hand::cuTexRefSetAddress2D_v3(hTexRef, &wide, dptr, Pitch);
}

CUresult cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    const auto channels = static_cast<unsigned>(NumPackedComponents);
    if (base::TexelBytes(fmt, channels) == 0) return CUDA_ERROR_INVALID_VALUE;
    reference.format = fmt;
    reference.channels = channels;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    if (dim < 0 || dim > 2 || am > CU_TR_ADDRESS_MODE_BORDER) return CUDA_ERROR_INVALID_VALUE;
    return Tell(&reference.texture.addressMode[dim], am);
  });
}

CUresult cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    if (fm > CU_TR_FILTER_MODE_LINEAR) return CUDA_ERROR_INVALID_VALUE;
    return Tell(&reference.texture.filterMode, fm);
  });
}

CUresult cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    if (fm > CU_TR_FILTER_MODE_LINEAR) return CUDA_ERROR_INVALID_VALUE;
    return Tell(&reference.texture.mipmapFilterMode, fm);
  });
}

CUresult cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    return Tell(&reference.texture.mipmapLevelBias, bias);
  });
}

CUresult cuTexRefSetMipmapLevelClamp(CUtexref hTexRef, float minMipmapLevelClamp,
                                     float maxMipmapLevelClamp) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    reference.texture.minMipmapLevelClamp = minMipmapLevelClamp;
    return Tell(&reference.texture.maxMipmapLevelClamp, maxMipmapLevelClamp);
  });
}

CUresult cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    return Tell(&reference.texture.maxAnisotropy, maxAniso);
  });
}

CUresult cuTexRefSetBorderColor(CUtexref hTexRef, float* pBorderColor) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    std::copy_n(pBorderColor, 4, reference.texture.borderColor);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags) {
  constexpr unsigned kKnown = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES |
                              CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION |
                              CU_TRSF_SEAMLESS_CUBEMAP;
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    if ((Flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    return Tell(&reference.texture.flags, Flags);
  });
}

CUresult cuTexRefGetAddress_v2(CUdeviceptr* pdptr, CUtexref hTexRef) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    if (!reference.bound) return CUDA_ERROR_INVALID_VALUE;
    switch (reference.resource.resType) {
      case CU_RESOURCE_TYPE_LINEAR:
        return Tell(pdptr, reference.resource.res.linear.devPtr);
      case CU_RESOURCE_TYPE_PITCH2D:
        return Tell(pdptr, reference.resource.res.pitch2D.devPtr);
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult cuTexRefGetAddress(CUdeviceptr_v1* pdptr, CUtexref hTexRef) {
  CUdeviceptr wide = 0;
  CUresult result = hand::cuTexRefGetAddress_v2(&wide, hTexRef);
  if (result == CUDA_SUCCESS && wide >> 32 != 0) return CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) *pdptr = static_cast<CUdeviceptr_v1>(wide);
  return result;
}

CUresult cuTexRefGetArray(CUarray* phArray, CUtexref hTexRef) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    if (!reference.bound || reference.resource.resType != CU_RESOURCE_TYPE_ARRAY) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return Tell(phArray, reference.resource.res.array.hArray);
  });
}

CUresult cuTexRefGetMipmappedArray(CUmipmappedArray* phMipmappedArray, CUtexref hTexRef) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    if (!reference.bound || reference.resource.resType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return Tell(phMipmappedArray, reference.resource.res.mipmap.hMipmappedArray);
  });
}

CUresult cuTexRefGetAddressMode(CUaddress_mode* pam, CUtexref hTexRef, int dim) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    if (dim < 0 || dim > 2) return CUDA_ERROR_INVALID_VALUE;
    return Tell(pam, reference.texture.addressMode[dim]);
  });
}

CUresult cuTexRefGetFilterMode(CUfilter_mode* pfm, CUtexref hTexRef) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    return Tell(pfm, reference.texture.filterMode);
  });
}

CUresult cuTexRefGetFormat(CUarray_format* pFormat, int* pNumChannels, CUtexref hTexRef) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    *pNumChannels = static_cast<int>(reference.channels);
    return Tell(pFormat, reference.format);
  });
}

CUresult cuTexRefGetMipmapFilterMode(CUfilter_mode* pfm, CUtexref hTexRef) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    return Tell(pfm, reference.texture.mipmapFilterMode);
  });
}

CUresult cuTexRefGetMipmapLevelBias(float* pbias, CUtexref hTexRef) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    return Tell(pbias, reference.texture.mipmapLevelBias);
  });
}

CUresult cuTexRefGetMipmapLevelClamp(float* pminMipmapLevelClamp, float* pmaxMipmapLevelClamp,
                                     CUtexref hTexRef) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    *pminMipmapLevelClamp = reference.texture.minMipmapLevelClamp;
    return Tell(pmaxMipmapLevelClamp, reference.texture.maxMipmapLevelClamp);
  });
}

CUresult cuTexRefGetMaxAnisotropy(int* pmaxAniso, CUtexref hTexRef) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    return Tell(pmaxAniso, static_cast<int>(reference.texture.maxAnisotropy));
  });
}

CUresult cuTexRefGetBorderColor(float* pBorderColor, CUtexref hTexRef) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    std::copy_n(reference.texture.borderColor, 4, pBorderColor);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetFlags(unsigned int* pFlags, CUtexref hTexRef) {
  return WithTexture(hTexRef, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    return Tell(pFlags, reference.texture.flags);
  });
}

CUresult cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags) {
  return Bind(Number(hSurfRef), true, [&](Binding* binding) {
    return Flags == 0 ? FindArray(hArray, true, binding) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuSurfRefGetArray(CUarray* phArray, CUsurfref hSurfRef) {
  return With(Number(hSurfRef), true, [&](Reference& reference) {
    reference.mutex.AssertHeld();
    if (!reference.bound) return CUDA_ERROR_INVALID_VALUE;
    return Tell(phArray, reference.resource.res.array.hArray);
  });
}

}  // namespace longwire::shim::hand
