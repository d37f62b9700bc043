#include "server/worker/calls/texture/texture_reference.h"

#include <cstring>

#include "base/try.h"
#include "longwire/worker_hand_written.h"

namespace longwire::worker {
namespace {

// Of a library: its module in the current context.
CUresult ModuleOf(const DriverTable& driver, const Library& library, CUmodule* module) {
  *module = library.module;
  return library.library == nullptr ? CUDA_SUCCESS
                                    : driver.cuLibraryGetModule(module, library.library);
}

// What the compiler and the driver set the reference to.
CUresult AskInitial(const DriverTable& driver, CUtexref texture, CUarray_format* format,
                    int* channels, CUDA_TEXTURE_DESC* state) {
  CUresult result = driver.cuTexRefGetFormat(format, channels, texture);
  if (result == CUDA_SUCCESS) result = driver.cuTexRefGetFlags(&state->flags, texture);
  if (result == CUDA_SUCCESS) result = driver.cuTexRefGetFilterMode(&state->filterMode, texture);
  for (int axis = 0; axis < 3 && result == CUDA_SUCCESS; ++axis) {
    result = driver.cuTexRefGetAddressMode(&state->addressMode[axis], texture, axis);
  }
  return result;
}

CUresult SetMemory(const DriverTable& driver, CUtexref texture, const CUDA_RESOURCE_DESC& memory) {
  switch (memory.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return driver.cuTexRefSetArray(texture, memory.res.array.hArray, CU_TRSA_OVERRIDE_FORMAT);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return driver.cuTexRefSetMipmappedArray(texture, memory.res.mipmap.hMipmappedArray,
                                              CU_TRSA_OVERRIDE_FORMAT);
    case CU_RESOURCE_TYPE_LINEAR: {
      auto& linear = memory.res.linear;
      size_t offset = 0;
      CUresult result =
          driver.cuTexRefSetFormat(texture, linear.format, static_cast<int>(linear.numChannels));
      return result != CUDA_SUCCESS ? result
                                    : driver.cuTexRefSetAddress_v2(&offset, texture, linear.devPtr,
                                                                   linear.sizeInBytes);
    }
    default: {
      auto& plane = memory.res.pitch2D;
      const CUDA_ARRAY_DESCRIPTOR shape{plane.width, plane.height, plane.format, plane.numChannels};
      CUresult result =
          driver.cuTexRefSetFormat(texture, plane.format, static_cast<int>(plane.numChannels));
      return result != CUDA_SUCCESS ? result
                                    : driver.cuTexRefSetAddress2D_v3(texture, &shape, plane.devPtr,
                                                                     plane.pitchInBytes);
    }
  }
}

CUresult SetState(const DriverTable& driver, CUtexref texture, CUDA_TEXTURE_DESC state) {
  CUresult results[] = {driver.cuTexRefSetAddressMode(texture, 0, state.addressMode[0]),
                        driver.cuTexRefSetAddressMode(texture, 1, state.addressMode[1]),
                        driver.cuTexRefSetAddressMode(texture, 2, state.addressMode[2]),
                        driver.cuTexRefSetFilterMode(texture, state.filterMode),
                        driver.cuTexRefSetFlags(texture, state.flags),
                        driver.cuTexRefSetMaxAnisotropy(texture, state.maxAnisotropy),
                        driver.cuTexRefSetMipmapFilterMode(texture, state.mipmapFilterMode),
                        driver.cuTexRefSetMipmapLevelBias(texture, state.mipmapLevelBias),
                        driver.cuTexRefSetMipmapLevelClamp(texture, state.minMipmapLevelClamp,
                                                           state.maxMipmapLevelClamp),
                        driver.cuTexRefSetBorderColor(texture, state.borderColor)};
  for (CUresult result : results) {
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult Bind(CallContext& context, const calls::BoundReference& wanted, Reference& reference) {
  CUDA_RESOURCE_DESC memory{};
  LONGWIRE_TRY(ReadResource(context, wanted.resource, wanted.array, &memory));
  const DriverTable& driver = context.driver();
  if (reference.surface != nullptr) {
    if (memory.resType != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuSurfRefSetArray(reference.surface, memory.res.array.hArray, 0);
  }
  CUDA_TEXTURE_DESC state{};
  if (wanted.texture.size() != sizeof(state)) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(&state, wanted.texture.data(), sizeof(state));
  CUresult result = SetState(driver, reference.texture, state);
  return result == CUDA_SUCCESS ? SetMemory(driver, reference.texture, memory) : result;
}

}  // namespace

CUresult ReadResource(CallContext& context, std::span<const std::byte> packed, uint64_t id,
                      CUDA_RESOURCE_DESC* resource) {
  if (packed.size() != sizeof(*resource)) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(resource, packed.data(), sizeof(*resource));
  switch (resource->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return context.Resolve(id, &resource->res.array.hArray);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return context.Resolve(id, &resource->res.mipmap.hMipmappedArray);
    case CU_RESOURCE_TYPE_LINEAR:
    case CU_RESOURCE_TYPE_PITCH2D:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult BindReferences(CallContext& context, std::span<const calls::BoundReference> wanted) {
  for (const calls::BoundReference& one : wanted) {
    auto reference = context.session().references.Find(one.reference);
    if (reference == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    std::string binding(reinterpret_cast<const char*>(&one.array), sizeof(one.array));
    for (std::span<const std::byte> part : {one.resource, one.texture}) {
      binding.append(reinterpret_cast<const char*>(part.data()), part.size());
    }
    if (binding == reference->binding) continue;
    reference->binding.clear();
    CUresult result = Bind(context, one, *reference);
    // A module's kernels that do not read this one run although its array is gone.
    if (result == CUDA_ERROR_INVALID_HANDLE) continue;
    if (result != CUDA_SUCCESS) return result;
    reference->binding = std::move(binding);
  }
  return CUDA_SUCCESS;
}

CUresult Do_lwModuleReference(CallContext& context, const calls::lwModuleReference& call,
                              calls::lwModuleReference::Reply* reply) {
  WorkerSession& session = context.session();
  auto library = session.libraries.Find(call.library);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const DriverTable& driver = context.driver();
  const std::string name(call.name);
  auto reference = std::make_shared<Reference>();
  CUmodule module = nullptr;
  CUresult result = ModuleOf(driver, *library, &module);
  if (result != CUDA_SUCCESS) return result;
  CUDA_TEXTURE_DESC state{};
  CUarray_format format = CU_AD_FORMAT_FLOAT;
  int channels = 1;
  if (call.surface) {
    result = driver.cuModuleGetSurfRef(&reference->surface, module, name.c_str());
  } else {
    result = driver.cuModuleGetTexRef(&reference->texture, module, name.c_str());
    if (result == CUDA_SUCCESS) {
      result = AskInitial(driver, reference->texture, &format, &channels, &state);
    }
  }
  if (result != CUDA_SUCCESS) return result;
  reply->reference = session.next_worker_handle.fetch_add(1);
  reply->format = format;
  reply->channels = channels;
  const std::string packed(reinterpret_cast<const char*>(&state), sizeof(state));
  reply->texture = std::as_bytes(std::span(context.Keep(packed)));
  if (!session.references.Insert(reply->reference, reference)) return CUDA_ERROR_OUT_OF_MEMORY;
  library->AddReference(reply->reference);
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
