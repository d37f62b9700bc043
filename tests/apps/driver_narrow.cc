// The forms from before CUDA 3.2, whose addresses and sizes have 32 bits. Where the device's memory
// lies above 4 GiB, as it usually does, they serve arrays and host memory and say of an allocation
// that there is no memory for it; with the argument "low" everything must work.
#define __CUDA_API_VERSION_INTERNAL  // declares every form under its own name

#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "driver_check.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // texture references

using Floats = std::vector<float>;

static const char kPtx[] = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .global .align 4 .u32 answer = 42;
.visible .global .texref line;
.visible .entry Look(.param .u64 values)
{
  .reg .b32 %r<3>;
  .reg .f32 %f<5>;
  .reg .b64 %rd<5>;
  mov.u32 %r1, %tid.x;
  tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [line, {%r1}];
  ld.param.u64 %rd1, [values];
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.f32 [%rd4], %f1;
  ret;
}
.visible .entry Double(.param .u64 values)
{
  .reg .b32 %r<3>;
  .reg .f32 %f<3>;
  .reg .b64 %rd<5>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd1, [values];
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd4], %f2;
  ret;
}
)";

static Floats Counting(size_t count, float first) {
  Floats values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

static void Expect(const Floats& got, const Floats& expected, const char* what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT(got[i] == expected[i], "%s: element %zu is %g, not %g", what, i, got[i], expected[i]);
  }
}

constexpr unsigned kWidth = 16, kHeight = 4, kDepth = 3, kRow = kWidth * sizeof(float);

// The plane's second row holds `row`.
static void CopyPlane(CUarray plane, const Floats& row, CUstream stream) {
  const Floats plane_up = Counting(size_t{kWidth} * kHeight, 100);
  Floats plane_down(plane_up.size());
  CUDA_MEMCPY2D_v1 flat = {};
  flat.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  flat.srcArray = plane;
  flat.srcY = 1;
  flat.dstMemoryType = CU_MEMORYTYPE_HOST;
  flat.dstHost = plane_down.data();
  flat.dstPitch = kRow;
  flat.WidthInBytes = kRow;
  flat.Height = 1;
  CHECK_DRIVER(cuMemcpy2D(&flat));
  Expect(plane_down, row, "the second row");
  CUDA_MEMCPY2D_v1 fill = {};
  fill.srcMemoryType = CU_MEMORYTYPE_HOST;
  fill.srcHost = plane_up.data();
  fill.srcPitch = kRow;
  fill.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  fill.dstArray = plane;
  fill.WidthInBytes = kRow;
  fill.Height = kHeight;
  CHECK_DRIVER(cuMemcpy2DUnaligned(&fill));
  flat.srcY = 0;
  flat.Height = kHeight;
  CHECK_DRIVER(cuMemcpy2DAsync(&flat, stream));
  CHECK_DRIVER(cuStreamSynchronize(stream));
  Expect(plane_down, plane_up, "the whole plane");
  EXPECT(cuMemcpy2D(nullptr) == CUDA_ERROR_INVALID_VALUE, "no description");
}

static void CopyBox(CUarray box, CUstream stream) {
  const Floats box_up = Counting(size_t{kWidth} * kHeight * kDepth, 7);
  Floats box_down(box_up.size());
  CUDA_MEMCPY3D_v1 solid = {};
  solid.srcMemoryType = CU_MEMORYTYPE_HOST;
  solid.srcHost = box_up.data();
  solid.srcPitch = kRow;
  solid.srcHeight = kHeight;
  solid.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  solid.dstArray = box;
  solid.WidthInBytes = kRow;
  solid.Height = kHeight;
  solid.Depth = kDepth;
  CHECK_DRIVER(cuMemcpy3D(&solid));
  CUDA_MEMCPY3D_v1 back = {};
  back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  back.srcArray = box;
  back.srcZ = 1;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = box_down.data();
  back.dstPitch = kRow;
  back.dstHeight = kHeight;
  back.WidthInBytes = kRow;
  back.Height = kHeight;
  back.Depth = kDepth - 1;
  CHECK_DRIVER(cuMemcpy3DAsync(&back, stream));
  CHECK_DRIVER(cuStreamSynchronize(stream));
  const Floats upper(box_up.begin() + kWidth * kHeight, box_up.end());
  Expect(box_down, upper, "the upper slices");
}

// Arrays and host memory alone: no address is involved.
static void UseArrays(CUstream stream) {
  CUarray line = nullptr, plane = nullptr, box = nullptr;
  const CUDA_ARRAY_DESCRIPTOR_v1 line_shape = {kWidth, 0, CU_AD_FORMAT_FLOAT, 1};
  const CUDA_ARRAY_DESCRIPTOR_v1 plane_shape = {kWidth, kHeight, CU_AD_FORMAT_FLOAT, 1};
  const CUDA_ARRAY3D_DESCRIPTOR_v1 box_shape = {kWidth, kHeight, kDepth, CU_AD_FORMAT_FLOAT, 1, 0};
  CHECK_DRIVER(cuArrayCreate(&line, &line_shape));
  CHECK_DRIVER(cuArrayCreate(&plane, &plane_shape));
  CHECK_DRIVER(cuArray3DCreate(&box, &box_shape));
  CUDA_ARRAY_DESCRIPTOR_v1 told = {};
  CHECK_DRIVER(cuArrayGetDescriptor(&told, plane));
  EXPECT(std::memcmp(&told, &plane_shape, sizeof told) == 0, "the plane is %u x %u", told.Width,
         told.Height);
  CUDA_ARRAY3D_DESCRIPTOR_v1 told_box = {};
  CHECK_DRIVER(cuArray3DGetDescriptor(&told_box, box));
  EXPECT(std::memcmp(&told_box, &box_shape, sizeof told_box) == 0, "the box is %u x %u x %u",
         told_box.Width, told_box.Height, told_box.Depth);
  const CUDA_ARRAY_DESCRIPTOR_v1 nothing = {0, 0, CU_AD_FORMAT_FLOAT, 1};
  CUarray none = nullptr;
  EXPECT(cuArrayCreate(&none, &nothing) == CUDA_ERROR_INVALID_VALUE, "an array without elements");

  const Floats up = Counting(kWidth, 1);
  Floats down(kWidth);
  CHECK_DRIVER(cuMemcpyHtoA(line, 0, up.data(), kRow));
  CHECK_DRIVER(cuMemcpyAtoH(down.data(), line, 0, kRow));
  Expect(down, up, "there and back");
  CHECK_DRIVER(cuMemcpyAtoA(plane, kRow, line, 0, kRow));  // its second row
  CHECK_DRIVER(cuMemcpyHtoAAsync(line, 4, up.data(), 8, stream));
  CHECK_DRIVER(cuMemcpyAtoHAsync(down.data(), line, 0, 12, stream));
  CHECK_DRIVER(cuStreamSynchronize(stream));
  Expect(down, {1, 1, 2, 4, 5}, "at an offset");
  // Said at once or with the next call that waits.
  CUresult result = cuMemcpyHtoA(line, 4, up.data(), kRow);
  if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
  EXPECT(result == CUDA_ERROR_INVALID_VALUE, "a copy beyond the array's end: %d", result);

  CopyPlane(plane, up, stream);
  CopyBox(box, stream);
  for (CUarray array : {line, plane, box}) CHECK_DRIVER(cuArrayDestroy(array));
  EXPECT(cuMemcpyAtoH(down.data(), line, 0, 4) != CUDA_SUCCESS, "a destroyed array");
}

static void UseHostMemory() {
  void* pinned = nullptr;
  CHECK_DRIVER(cuMemAllocHost(&pinned, 4096));
  unsigned flags = 99;
  CHECK_DRIVER(cuMemHostGetFlags(&flags, pinned));
  std::memset(pinned, 1, 4096);
  CUdeviceptr_v1 mapped = 0;
  int local = 0;
  EXPECT(cuMemHostGetDevicePointer(&mapped, &local, 0) == CUDA_ERROR_INVALID_VALUE,
         "pageable memory has no device address");
  CHECK_DRIVER(cuMemFreeHost(pinned));
}

static void AskSizes(CUdevice device) {
  size_t wide_total = 0;
  CHECK_DRIVER(cuDeviceTotalMem_v2(&wide_total, device));
  const bool fits = wide_total <= 0xffffffffu;
  unsigned total = 0, free = 0;
  const CUresult expected = fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  CUresult result = cuDeviceTotalMem(&total, device);
  EXPECT(result == expected && (!fits || total == wide_total), "%d, %u bytes", result, total);
  EXPECT(cuDeviceTotalMem(&total, 99) == CUDA_ERROR_INVALID_DEVICE, "no device");
  result = cuMemGetInfo(&free, &total);
  EXPECT(result == expected && (!fits || (free != 0 && free <= total)), "%d, %u of %u bytes free",
         result, free, total);
}

// Allocations whose result cannot be returned leak nothing: more than the device's memory in sum.
static void ExpectNoMemory() {
  CUdeviceptr_v1 address = 0;
  unsigned pitch = 0;
  for (int i = 0; i < 64; ++i) {
    EXPECT(cuMemAlloc(&address, 64u << 20) == CUDA_ERROR_OUT_OF_MEMORY, "memory above 4 GiB");
    EXPECT(cuMemAllocPitch(&address, &pitch, 1u << 20, 64, 4) == CUDA_ERROR_OUT_OF_MEMORY, "same");
  }
  CUdeviceptr wide = 0;
  CHECK_DRIVER(cuMemAlloc_v2(&wide, 128 << 20));
  CHECK_DRIVER(cuMemFree_v2(wide));
  EXPECT(cuMemcpyHtoD(0x1000, &wide, 4) == CUDA_ERROR_INVALID_VALUE, "no device memory there");
  EXPECT(cuMemsetD8(0x1000, 0, 4) == CUDA_ERROR_INVALID_VALUE, "no device memory there");
  EXPECT(cuMemFree(0x1000) == CUDA_ERROR_INVALID_VALUE, "no allocation there");
}

// Host memory below 4 GiB, which kernels reach by a narrow address.
static void UseMappedMemory(CUmodule module) {
  // Beside the window of the device's addresses, see narrow_test.py.
  void* const place = reinterpret_cast<void*>(uintptr_t{0xa0000000});
  void* memory = mmap(place, 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  EXPECT(memory == place, "no memory at %p", place);
  const Floats up = Counting(kWidth, 5);
  std::memcpy(memory, up.data(), kRow);
  CHECK_DRIVER(cuMemHostRegister_v2(memory, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
  CUdeviceptr_v1 mapped = 0;
  CUdeviceptr same = 0;
  CHECK_DRIVER(cuMemHostGetDevicePointer(&mapped, memory, 0));
  CHECK_DRIVER(cuMemHostGetDevicePointer_v2(&same, memory, 0));
  EXPECT(mapped == same && mapped != 0, "%x, not %llx", mapped, same);
  CUfunction kernel = nullptr;
  CHECK_DRIVER(cuModuleGetFunction(&kernel, module, "Double"));
  void* parameters[] = {&same};
  CHECK_DRIVER(cuLaunchKernel(kernel, 1, 1, 1, kWidth, 1, 1, 0, nullptr, parameters, nullptr));
  CHECK_DRIVER(cuCtxSynchronize());
  for (unsigned i = 0; i < kWidth; ++i) {
    const float found = static_cast<float*>(memory)[i];
    EXPECT(found == 2 * up[i], "element %u of mapped memory: %g", i, found);
  }
  CHECK_DRIVER(cuMemHostUnregister(memory));
  munmap(memory, 4096);
}

static CUtexref FindLine(CUmodule module) {
  CUtexref line = nullptr;
  CHECK_DRIVER(cuModuleGetTexRef(&line, module, "line"));
  return line;
}

constexpr CUDA_ARRAY_DESCRIPTOR_v1 kRowShape = {kWidth, 1, CU_AD_FORMAT_FLOAT, 1};

// A reference to memory that 32 bits cannot name.
static void ExpectNoAddress(CUmodule module) {
  CUtexref line = FindLine(module);
  CUdeviceptr wide = 0;
  CUdeviceptr_v1 told = 0;
  unsigned offset = 0;
  CHECK_DRIVER(cuMemAlloc_v2(&wide, kRow));
  CHECK_DRIVER(cuTexRefSetAddress_v2(nullptr, line, wide, kRow));
  EXPECT(cuTexRefGetAddress(&told, line) == CUDA_ERROR_INVALID_VALUE, "an address above 4 GiB");
  EXPECT(cuTexRefSetAddress(&offset, line, 0x1000, 64) == CUDA_ERROR_INVALID_VALUE, "no memory");
  EXPECT(cuTexRefSetAddress2D(line, &kRowShape, 0x1000, 64) == CUDA_ERROR_INVALID_VALUE,
         "no memory");
  const CUDA_ARRAY_DESCRIPTOR shape = {kWidth, 1, CU_AD_FORMAT_FLOAT, 1};
  CHECK_DRIVER(cuTexRefSetAddress2D_v2(line, &shape, wide, 512));
  CHECK_DRIVER(cuMemFree_v2(wide));
}

// Reads `from` through the reference, bound in both ways, into `to`.
static void UseReference(CUmodule module, CUdeviceptr_v1 from, CUdeviceptr_v1 to) {
  CUtexref line = FindLine(module);
  CUfunction look = nullptr;
  CHECK_DRIVER(cuModuleGetFunction(&look, module, "Look"));
  const Floats up = Counting(kWidth, 60);
  CHECK_DRIVER(cuMemcpyHtoD(from, up.data(), kRow));
  CUdeviceptr wide = to;
  void* parameters[] = {&wide};
  for (int rows = 0; rows < 2; ++rows) {
    CUdeviceptr_v1 told = 0;
    unsigned offset = 99;
    if (rows == 0) {
      CHECK_DRIVER(cuTexRefSetFormat(line, CU_AD_FORMAT_FLOAT, 1));
      CHECK_DRIVER(cuTexRefSetAddress(&offset, line, from, kRow));
      EXPECT(offset == 0, "the offset is %u", offset);
    } else {
      CHECK_DRIVER(cuTexRefSetAddress2D(line, &kRowShape, from, 512));
    }
    CHECK_DRIVER(cuTexRefGetAddress(&told, line));
    EXPECT(told == from, "bound to %x, not %x", told, from);
    CHECK_DRIVER(cuMemsetD32(to, 0, kWidth));
    CHECK_DRIVER(cuLaunchKernel(look, 1, 1, 1, kWidth, 1, 1, 0, nullptr, parameters, nullptr));
    Floats down(kWidth);
    CHECK_DRIVER(cuMemcpyDtoH(down.data(), to, kRow));
    Expect(down, up, "through a reference");
  }
}

static void UseLowMemory(CUmodule module, CUstream stream) {
  CUdeviceptr_v1 values = 0, copy = 0, base = 0, variable = 0;
  unsigned bytes = 0, pitch = 0, got = 0;
  CHECK_DRIVER(cuMemAlloc(&values, kRow));
  CHECK_DRIVER(cuMemAllocPitch(&copy, &pitch, kRow, kHeight, 4));
  EXPECT(pitch >= kRow, "the pitch is %u", pitch);
  CHECK_DRIVER(cuMemGetAddressRange(&base, &bytes, values + 8));
  EXPECT(base == values && bytes == kRow, "%u bytes at %x", bytes, base);
  const Floats up = Counting(kWidth, 3);
  Floats down(kWidth);
  CHECK_DRIVER(cuMemcpyHtoD(values, up.data(), kRow));
  CUfunction kernel = nullptr;
  CHECK_DRIVER(cuModuleGetFunction(&kernel, module, "Double"));
  CUdeviceptr wide = values;
  void* parameters[] = {&wide};
  CHECK_DRIVER(cuLaunchKernel(kernel, 1, 1, 1, kWidth, 1, 1, 0, nullptr, parameters, nullptr));
  CHECK_DRIVER(cuMemcpyDtoD(copy, values, kRow));
  CHECK_DRIVER(cuMemcpyDtoH(down.data(), copy, kRow));
  for (unsigned i = 0; i < kWidth; ++i) EXPECT(down[i] == 2 * up[i], "element %u: %g", i, down[i]);
  CHECK_DRIVER(cuMemcpyHtoDAsync(copy, up.data(), kRow, stream));
  CHECK_DRIVER(cuMemcpyDtoDAsync(values, copy, kRow, stream));
  CHECK_DRIVER(cuMemcpyDtoHAsync(down.data(), values, kRow, stream));
  CHECK_DRIVER(cuStreamSynchronize(stream));
  Expect(down, up, "three copies");

  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR_v1 shape = {kWidth, 0, CU_AD_FORMAT_FLOAT, 1};
  CHECK_DRIVER(cuArrayCreate(&array, &shape));
  CHECK_DRIVER(cuMemcpyDtoA(array, 0, values, kRow));
  CHECK_DRIVER(cuMemsetD32(copy, 0, kWidth));
  CHECK_DRIVER(cuMemcpyAtoD(copy, array, 0, kRow));
  CHECK_DRIVER(cuMemcpyDtoH(down.data(), copy, kRow));
  Expect(down, up, "through an array");
  CHECK_DRIVER(cuArrayDestroy(array));

  unsigned words[2 * 4] = {};
  CHECK_DRIVER(cuMemsetD8(copy, 0x11, 8));
  CHECK_DRIVER(cuMemsetD16(copy + 2, 0x2222, 1));
  CHECK_DRIVER(cuMemsetD2D8(copy + 8, 16, 0x33, 4, 2));
  CHECK_DRIVER(cuMemsetD2D16(copy + 12, 16, 0x4444, 1, 2));
  CHECK_DRIVER(cuMemsetD2D32(copy, 16, 0x55555555, 1, 2));
  CHECK_DRIVER(cuMemcpyDtoH(words, copy, sizeof words));
  EXPECT(words[0] == 0x55555555 && words[1] == 0x11111111, "%x %x", words[0], words[1]);
  EXPECT(words[2] == 0x33333333 && words[6] == 0x33333333, "%x %x", words[2], words[6]);
  EXPECT((words[3] & 0xffff) == 0x4444 && (words[7] & 0xffff) == 0x4444, "%x %x", words[3],
         words[7]);
  CHECK_DRIVER(cuModuleGetGlobal(&variable, &bytes, module, "answer"));
  CHECK_DRIVER(cuMemcpyDtoH(&got, variable, sizeof got));
  EXPECT(bytes == 4 && got == 42, "%u bytes, %u", bytes, got);
  UseReference(module, values, copy);
  CHECK_DRIVER(cuMemFree(values));
  CHECK_DRIVER(cuMemFree(copy));
  EXPECT(cuMemFree(copy) == CUDA_ERROR_INVALID_VALUE, "freed twice");
}

int main(int count, char** arguments) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUstream stream = nullptr;
  CHECK_DRIVER(cuInit(0));
  CHECK_DRIVER(cuDeviceGet(&device, 0));
  CHECK_DRIVER(cuCtxCreate_v2(&context, 0, device));
  CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  CHECK_DRIVER(cuModuleLoadData(&module, kPtx));
  UseArrays(stream);
  UseHostMemory();
  AskSizes(device);
  CUdeviceptr wide = 0;
  CHECK_DRIVER(cuMemAlloc_v2(&wide, 4096));
  const bool low = wide + 4096 <= uint64_t{1} << 32;
  CHECK_DRIVER(cuMemFree_v2(wide));
  EXPECT(low || count < 2 || std::strcmp(arguments[1], "low") != 0, "the memory is at %llx", wide);
  CUdeviceptr_v1 variable = 0;
  unsigned bytes = 0;
  EXPECT(cuModuleGetGlobal(&variable, &bytes, module, "nothing") == CUDA_ERROR_NOT_FOUND, "a name");
  if (low) {
    UseLowMemory(module, stream);
    UseMappedMemory(module);
  } else {
    ExpectNoMemory();
    ExpectNoAddress(module);
    EXPECT(cuModuleGetGlobal(&variable, &bytes, module, "answer") == CUDA_ERROR_INVALID_VALUE,
           "a variable above 4 GiB");
  }
  CHECK_DRIVER(cuCtxDestroy_v2(context));
  std::printf("PASS driver_narrow\n");
  return 0;
}
