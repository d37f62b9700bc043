// Arrays and mipmapped arrays: their memory, shapes and handles.
#include "softgpu/driver/memory/array.h"

#include <algorithm>

#include "softgpu/driver/memory/address_space.h"
#include "softgpu/driver/stream/capture.h"
#include "softgpu/driver/stream/stream.h"

namespace softgpu {
namespace {

constexpr uint64_t kAlignment = 512;

struct Memory {
  explicit Memory(uint64_t at) : address(at) {}
  ~Memory() { AddressSpace::Get().Free(address, MemoryKind::kDevice); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  const uint64_t address;
};

// Of no context: an array's memory goes with the array.
std::shared_ptr<Memory> MakeMemory(int device, size_t bytes) {
  uint64_t address = AddressSpace::Get().Allocate(device, bytes, kAlignment, nullptr);
  return address == 0 ? nullptr : std::make_shared<Memory>(address);
}

std::shared_ptr<Array> Describe(const CUDA_ARRAY3D_DESCRIPTOR& shape, const Context& context) {
  auto array = std::make_shared<Array>();
  array->shape = shape;
  array->device = context.device;
  array->context = const_cast<Context*>(&context);
  array->row_bytes = shape.Width * ChannelBytes(shape.Format) * shape.NumChannels;
  array->rows = std::max<size_t>(shape.Height, 1);
  array->slices = std::max<size_t>(shape.Depth, 1);
  return array;
}

// The planes lie one after the other in the array's memory.
void AddPlanes(Array& array, const Context& context) {
  const CUDA_ARRAY3D_DESCRIPTOR& shape = array.shape;
  array.row_bytes = shape.Width;
  array.rows = shape.Height / 2 * 3;
  const CUDA_ARRAY3D_DESCRIPTOR planes[] = {
      {shape.Width, shape.Height, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, shape.Flags},
      {shape.Width / 2, shape.Height / 2, 0, CU_AD_FORMAT_UNSIGNED_INT8, 2, shape.Flags}};
  for (const auto& plane : planes) array.planes.push_back(Describe(plane, context));
}

CUresult Create(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  Context* context;
  LONGWIRE_TRY(EnterUnsafe(&context));
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(CheckShape(shape));
  auto array = Describe(shape, *context);
  if (shape.Format == CU_AD_FORMAT_NV12) AddPlanes(*array, *context);
  auto memory = MakeMemory(context->device, array->bytes());
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  array->address = memory->address;
  uint64_t address = memory->address;
  for (auto& plane : array->planes) {
    plane->address = address;
    plane->memory = memory;
    address += plane->bytes();
  }
  array->memory = std::move(memory);
  *handle = reinterpret_cast<CUarray>(Driver::Get().arrays.Add(std::move(array)));
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* shape) {
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Create(array, {shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 0});
}

CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  return shape == nullptr ? CUDA_ERROR_INVALID_VALUE : Create(array, *shape);
}

CUresult cuArrayDestroy(CUarray handle) {
  LONGWIRE_TRY(EnterUnsafe());
  auto array = FindArray(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  LONGWIRE_TRY(SynchronizeContext(*array->context));  // as every free of memory
  for (auto& plane : array->planes) Driver::Get().arrays.Remove(plane.get());
  Driver::Get().arrays.Remove(handle);
  return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR* shape, CUarray handle) {
  LONGWIRE_TRY(Enter());
  auto array = FindArray(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *shape = array->shape;
  return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR* shape, CUarray handle) {
  CUDA_ARRAY3D_DESCRIPTOR full;
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(cuArray3DGetDescriptor(&full, handle));
  *shape = {full.Width, full.Height, full.Format, full.NumChannels};
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* handle, const CUDA_ARRAY3D_DESCRIPTOR* shape,
                                unsigned int count) {
  Context* context;
  LONGWIRE_TRY(EnterUnsafe(&context));
  if (handle == nullptr || shape == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(CheckShape(*shape));
  if (shape->Format == CU_AD_FORMAT_NV12) return CUDA_ERROR_INVALID_VALUE;
  auto mipmap = std::make_shared<MipmappedArray>();
  mipmap->context = context;
  size_t bytes = 0;
  for (unsigned level = 0; level < std::min(count, MostLevels(*shape)); ++level) {
    auto array = Describe(LevelShape(*shape, level), *context);
    array->address = bytes;
    bytes += (array->bytes() + kAlignment - 1) / kAlignment * kAlignment;
    mipmap->levels.push_back(std::move(array));
  }
  auto memory = MakeMemory(context->device, bytes);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  for (auto& level : mipmap->levels) {
    level->address += memory->address;
    level->memory = memory;
  }
  *handle = reinterpret_cast<CUmipmappedArray>(Driver::Get().mipmaps.Add(std::move(mipmap)));
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(CUarray* array, CUmipmappedArray handle, unsigned int level) {
  LONGWIRE_TRY(Enter());
  auto mipmap = Driver::Get().mipmaps.Find(handle);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (array == nullptr || level >= mipmap->levels.size()) return CUDA_ERROR_INVALID_VALUE;
  *array = reinterpret_cast<CUarray>(Driver::Get().arrays.Add(mipmap->levels[level]));
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  LONGWIRE_TRY(EnterUnsafe());
  auto mipmap = Driver::Get().mipmaps.Find(handle);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  LONGWIRE_TRY(SynchronizeContext(*mipmap->context));
  Driver::Get().mipmaps.Remove(handle);
  for (auto& level : mipmap->levels) Driver::Get().arrays.Remove(level.get());
  return CUDA_SUCCESS;
}

CUresult cuArrayGetPlane(CUarray* plane, CUarray handle, unsigned int index) {
  LONGWIRE_TRY(Enter());
  auto array = FindArray(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (plane == nullptr || index >= array->planes.size()) return CUDA_ERROR_INVALID_VALUE;
  *plane = reinterpret_cast<CUarray>(Driver::Get().arrays.Add(array->planes[index]));
  return CUDA_SUCCESS;
}

// Arrays have their memory from the start: no other is mapped to them, in parts or as a whole.
CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES*, CUarray handle) {
  LONGWIRE_TRY(Enter());
  return FindArray(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUarray handle, CUdevice) {
  return cuArrayGetSparseProperties(nullptr, handle);
}
CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES*,
                                             CUmipmappedArray handle) {
  LONGWIRE_TRY(Enter());
  bool found = Driver::Get().mipmaps.Find(handle) != nullptr;
  return found ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS*,
                                               CUmipmappedArray handle, CUdevice) {
  return cuMipmappedArrayGetSparseProperties(nullptr, handle);
}
