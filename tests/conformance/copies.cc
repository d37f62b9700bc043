// Copies and memsets of every shape: what they leave behind, and what is refused.
#include <numeric>

#include "check.h"

namespace conformance {
namespace {

constexpr size_t kBytes = 4096;

void Memsets(CUdeviceptr memory) {
  CODE(cuMemsetD8(memory, 0x5a, kBytes));
  VALUE(DigestOf(memory, kBytes));
  CODE(cuMemsetD16(memory, 0x1234, kBytes / 4));
  VALUE(DigestOf(memory, kBytes));
  CODE(cuMemsetD32(memory + 4, 0x12345678, 10));
  VALUE(DigestOf(memory, kBytes));
  CODE(cuMemsetD2D8(memory, 64, 0x11, 10, 8));
  VALUE(DigestOf(memory, kBytes));
  CODE(cuMemsetD2D16(memory, 64, 0x2222, 10, 8));
  VALUE(DigestOf(memory, kBytes));
  CODE(cuMemsetD2D32(memory, 64, 0x33333333, 10, 8));
  VALUE(DigestOf(memory, kBytes));
  CODE(cuMemsetD16(memory + 1, 1, 4));
  CODE(cuMemsetD32(memory + 2, 1, 4));
  CODE(cuMemsetD8(memory, 1, kBytes + 1));
  CODE(cuMemsetD8(memory, 1, 0));
  CODE(cuMemsetD2D8(memory, 8, 1, 10, 2));
  CODE(cuMemsetD8(0, 1, 1));
  CODE(cuMemsetD8Async(memory, 0x66, 100, nullptr));
  CODE(cuMemsetD16Async(memory, 0x7777, 100, nullptr));
  CODE(cuMemsetD32Async(memory, 0x88888888, 100, nullptr));
  CODE(cuMemsetD2D8Async(memory, 64, 0x12, 10, 8, nullptr));
  CODE(cuMemsetD2D16Async(memory, 64, 0x1212, 10, 8, nullptr));
  CODE(cuMemsetD2D32Async(memory, 64, 0x12121212, 10, 8, nullptr));
  VALUE(DigestOf(memory, kBytes));
}

void Linear(CUdeviceptr memory, CUdeviceptr other) {
  std::vector<unsigned char> bytes(kBytes), back(kBytes);
  std::iota(bytes.begin(), bytes.end(), 1);
  CODE(cuMemcpyHtoD(memory, bytes.data(), kBytes));
  VALUE(DigestOf(memory, kBytes));
  CODE(cuMemcpyDtoD(other + 10, memory, kBytes - 10));
  CODE(cuMemcpyDtoH(back.data(), other + 10, kBytes - 10));
  VALUE(Digest(back.data(), kBytes));
  CODE(cuMemcpy(reinterpret_cast<CUdeviceptr>(back.data()), memory, kBytes));
  VALUE(Digest(back.data(), kBytes));
  CODE(cuMemcpyHtoD(memory, bytes.data(), 0));
  CODE(cuMemcpyHtoD(memory, bytes.data(), kBytes + 1));
  CODE(cuMemcpyHtoD(0, bytes.data(), 16));
  CODE(cuMemcpyHtoD(memory, nullptr, 16));
  CODE(cuMemcpyDtoH(nullptr, memory, 16));
  CODE(cuMemcpyDtoH(back.data(), 12345, 16));
  CODE(cuMemcpyHtoDAsync(memory + 5, bytes.data(), 100, nullptr));
  CODE(cuMemcpyDtoDAsync(other, memory, 100, nullptr));
  CODE(cuMemcpyDtoHAsync(back.data(), other, 100, nullptr));
  CODE(cuMemcpyAsync(memory, other, 50, nullptr));
  CODE(cuCtxSynchronize());
  VALUE(Digest(back.data(), 100));
  VALUE(DigestOf(memory, kBytes));
}

void Flat(CUdeviceptr memory, CUdeviceptr other) {
  std::vector<unsigned char> bytes(kBytes);
  std::iota(bytes.begin(), bytes.end(), 3);
  CUDA_MEMCPY2D up = {};
  up.srcMemoryType = CU_MEMORYTYPE_HOST;
  up.srcHost = bytes.data();
  up.srcPitch = 40;
  up.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  up.dstDevice = memory;
  up.dstPitch = 64;
  up.dstXInBytes = 4;
  up.dstY = 2;
  up.WidthInBytes = 33;
  up.Height = 9;
  CODE(cuMemsetD8(memory, 0, kBytes));
  CODE(cuMemcpy2D(&up));
  VALUE(DigestOf(memory, kBytes));
  CUDA_MEMCPY2D across = up;
  across.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  across.srcDevice = memory;
  across.srcPitch = 64;
  across.dstDevice = other;
  across.dstPitch = 128;
  CODE(cuMemsetD8(other, 0, kBytes));
  CODE(cuMemcpy2DUnaligned(&across));
  VALUE(DigestOf(other, kBytes));
  CODE(cuMemcpy2DAsync(&across, nullptr));
  up.WidthInBytes = 65;
  CODE(cuMemcpy2D(&up));
  up.WidthInBytes = 0;
  CODE(cuMemcpy2D(&up));
  up.srcMemoryType = static_cast<CUmemorytype>(9);
  CODE(cuMemcpy2D(&up));
  CODE(cuMemcpy2D(nullptr));
}

void Solid(CUdeviceptr memory) {
  std::vector<unsigned char> bytes(kBytes);
  std::iota(bytes.begin(), bytes.end(), 5);
  CUDA_MEMCPY3D up = {};
  up.srcMemoryType = CU_MEMORYTYPE_HOST;
  up.srcHost = bytes.data();
  up.srcPitch = 20;
  up.srcHeight = 6;
  up.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  up.dstDevice = memory;
  up.dstPitch = 32;
  up.dstHeight = 8;
  up.dstXInBytes = 3;
  up.dstY = 1;
  up.dstZ = 1;
  up.WidthInBytes = 17;
  up.Height = 5;
  up.Depth = 4;
  CODE(cuMemsetD8(memory, 0, kBytes));
  CODE(cuMemcpy3D(&up));
  VALUE(DigestOf(memory, kBytes));
  CODE(cuMemcpy3DAsync(&up, nullptr));
  CODE(cuCtxSynchronize());
  up.srcLOD = 1;
  CODE(cuMemcpy3D(&up));
  CODE(cuMemcpy3D(nullptr));
}

}  // namespace

void Copies() {
  InContext in;
  CUdeviceptr memory = 0, other = 0;
  CODE(cuMemAlloc(&memory, kBytes));
  CODE(cuMemAlloc(&other, kBytes));
  Memsets(memory);
  CODE(cuMemsetD8(other, 0, kBytes));
  Linear(memory, other);
  Flat(memory, other);
  Solid(memory);
  CODE(cuMemFree(memory));
  CODE(cuMemFree(other));
}

}  // namespace conformance
