// Arrays, mipmapped arrays, textures and surfaces as objects.
#include <numeric>

#include "check.h"

namespace conformance {
namespace {

CUDA_ARRAY3D_DESCRIPTOR Describe(size_t width, size_t height, size_t depth,
                                 CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT32,
                                 unsigned channels = 1, unsigned flags = 0) {
  return {width, height, depth, format, channels, flags};
}

void Shapes() {
  static const CUDA_ARRAY3D_DESCRIPTOR kShapes[] = {
      Describe(16, 0, 0),
      Describe(16, 8, 0),
      Describe(16, 8, 4),
      Describe(7, 5, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4),
      Describe(7, 5, 3, CU_AD_FORMAT_HALF, 2),
      Describe(16, 16, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP),
      Describe(16, 16, 12, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED),
      Describe(16, 8, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP),
      Describe(16, 16, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP),
      Describe(16, 16, 7, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED),
      Describe(16, 8, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_TEXTURE_GATHER),
      Describe(16, 16, 3, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED),
      Describe(16, 16, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SURFACE_LDST),
      Describe(0, 0, 0),
      Describe(16, 8, 0, CU_AD_FORMAT_UNSIGNED_INT32, 3),
      Describe(16, 8, 0, static_cast<CUarray_format>(0x77))};
  for (const CUDA_ARRAY3D_DESCRIPTOR& shape : kShapes) {
    CUarray array = nullptr;
    CUDA_ARRAY3D_DESCRIPTOR told = {};
    if (CODE(cuArray3DCreate(&array, &shape)) != CUDA_SUCCESS) continue;
    CODE(cuArray3DGetDescriptor(&told, array));
    VALUE(told.Width);
    VALUE(told.Height);
    VALUE(told.Depth);
    VALUE(told.Format);
    VALUE(told.NumChannels);
    VALUE(told.Flags);
    CUDA_ARRAY_DESCRIPTOR flat = {};
    CODE(cuArrayGetDescriptor(&flat, array));
    VALUE(flat.Width);
    CODE(cuArrayDestroy(array));
  }
}

// Copies that reach beyond an array; nothing of them happens.
void Beyond() {
  CUarray line = nullptr, plane = nullptr;
  CUDA_ARRAY_DESCRIPTOR flat = {64, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  CODE(cuArrayCreate(&line, &flat));
  flat.Height = 4;
  CODE(cuArrayCreate(&plane, &flat));
  std::vector<unsigned> numbers(256, 3);
  CODE(cuMemcpyHtoA(line, 0, numbers.data(), 256));
  CODE(cuMemcpyHtoA(line, 0, numbers.data(), 260));
  CODE(cuMemcpyHtoA(line, 128, numbers.data(), 132));
  CODE(cuMemcpyAtoH(numbers.data(), line, 252, 8));
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = numbers.data();
  copy.srcPitch = 256;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = plane;
  copy.WidthInBytes = 256;
  copy.Height = 4;
  CODE(cuMemcpy2D(&copy));
  copy.dstY = 1;
  CODE(cuMemcpy2D(&copy));
  copy.dstY = 0;
  copy.dstXInBytes = 4;
  CODE(cuMemcpy2D(&copy));
  CODE(cuCtxSynchronize());
  CODE(cuMemcpyAtoH(numbers.data(), line, 0, 256));
  VALUE(Digest(numbers.data(), 256));
  CODE(cuArrayDestroy(line));
  CODE(cuArrayDestroy(plane));
}

void Moves() {
  CUarray line = nullptr, plane = nullptr;
  CUDA_ARRAY_DESCRIPTOR flat = {64, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  CODE(cuArrayCreate(&line, &flat));
  flat.Height = 4;
  CODE(cuArrayCreate(&plane, &flat));
  CODE(cuArrayCreate(nullptr, &flat));
  CODE(cuArrayCreate(&line, nullptr));
  std::vector<unsigned> numbers(256), back(256);
  std::iota(numbers.begin(), numbers.end(), 1u);
  CODE(cuMemcpyHtoA(line, 0, numbers.data(), 256));
  CODE(cuMemcpyAtoH(back.data(), line, 16, 100));
  VALUE(Digest(back.data(), 1024));
  CODE(cuMemcpyAtoA(line, 0, line, 128, 64));
  CUdeviceptr memory = 0;
  CODE(cuMemAlloc(&memory, 1024));
  CODE(cuMemcpyAtoD(memory, line, 0, 256));
  VALUE(DigestOf(memory, 256));
  CODE(cuMemsetD32(memory, 5, 64));
  CODE(cuMemcpyDtoA(line, 0, memory, 128));
  CODE(cuMemcpyAtoH(back.data(), line, 0, 256));
  VALUE(Digest(back.data(), 256));
  CODE(cuMemcpyHtoAAsync(line, 0, numbers.data(), 64, nullptr));
  CODE(cuMemcpyAtoHAsync(back.data(), line, 0, 256, nullptr));
  CODE(cuCtxSynchronize());
  VALUE(Digest(back.data(), 256));
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = numbers.data();
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = plane;
  copy.WidthInBytes = 256;
  copy.Height = 4;
  CODE(cuMemcpy2D(&copy));
  CUDA_MEMCPY2D down = {};
  down.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  down.srcArray = plane;
  down.srcXInBytes = 12;
  down.srcY = 1;
  down.dstMemoryType = CU_MEMORYTYPE_HOST;
  down.dstHost = back.data();
  down.dstPitch = 64;
  down.WidthInBytes = 40;
  down.Height = 3;
  CODE(cuMemcpy2D(&down));
  VALUE(Digest(back.data(), 256));
  CODE(cuMemFree(memory));
  CODE(cuArrayDestroy(line));
  CODE(cuArrayDestroy(plane));
}

void Objects() {
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR shape =
      Describe(16, 16, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST);
  CODE(cuArray3DCreate(&array, &shape));
  CUDA_RESOURCE_DESC resource = {}, told = {};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC texture = {}, told_texture = {};
  texture.addressMode[0] = texture.addressMode[1] = CU_TR_ADDRESS_MODE_CLAMP;
  texture.filterMode = CU_TR_FILTER_MODE_LINEAR;
  texture.flags = CU_TRSF_NORMALIZED_COORDINATES;
  CUtexObject object = 0;
  CODE(cuTexObjectCreate(&object, &resource, &texture, nullptr));
  CODE(cuTexObjectGetResourceDesc(&told, object));
  VALUE(told.resType);
  VALUE(told.res.array.hArray == array);
  CODE(cuTexObjectGetTextureDesc(&told_texture, object));
  VALUE(told_texture.filterMode);
  VALUE(told_texture.flags);
  CODE(cuTexObjectDestroy(object));
  CODE(cuTexObjectCreate(nullptr, &resource, &texture, nullptr));
  CODE(cuTexObjectCreate(&object, nullptr, &texture, nullptr));
  CUsurfObject surface = 0;
  CODE(cuSurfObjectCreate(&surface, &resource));
  CODE(cuSurfObjectGetResourceDesc(&told, surface));
  VALUE(told.resType);
  CODE(cuSurfObjectDestroy(surface));
  CODE(cuArrayDestroy(array));
}

}  // namespace

void Arrays() {
  InContext in;
  Shapes();
  Moves();
  Beyond();
  Objects();
}

}  // namespace conformance
