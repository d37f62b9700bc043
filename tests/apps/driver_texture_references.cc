// Texture and surface references: names in a module that are bound to arrays, linear memory and
// rows between launches. What is bound when a launch is made is what it reads, however late it
// runs.
#include <cstdint>
#include <vector>

#include "driver_check.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // references are deprecated

using Floats = std::vector<float>;

static const char kPtx[] = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .global .texref plane;
.visible .global .texref line;
.visible .global .surfref board;

// output[i] = plane at (x + i * step, y), of a level
.visible .entry Sample(.param .u64 output, .param .f32 x, .param .f32 step, .param .f32 y,
                       .param .f32 level)
{
  .reg .b32 %r<3>;
  .reg .f32 %f<12>;
  .reg .b64 %rd<5>;
  mov.u32 %r1, %tid.x;
  cvt.rn.f32.u32 %f1, %r1;
  ld.param.f32 %f2, [x];
  ld.param.f32 %f3, [step];
  fma.rn.f32 %f4, %f1, %f3, %f2;
  ld.param.f32 %f5, [y];
  ld.param.f32 %f6, [level];
  tex.level.2d.v4.f32.f32 {%f7, %f8, %f9, %f10}, [plane, {%f4, %f5}], %f6;
  ld.param.u64 %rd1, [output];
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.f32 [%rd4], %f7;
  ret;
}

// output[i] = red + 256 * green of the line's texel first + i
.visible .entry Fetch(.param .u64 output, .param .u32 first)
{
  .reg .b32 %r<12>;
  .reg .b64 %rd<6>;
  mov.u32 %r1, %tid.x;
  ld.param.u32 %r2, [first];
  add.s32 %r3, %r1, %r2;
  mov.u64 %rd5, line;
  tex.1d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [%rd5, {%r3}];
  mad.lo.u32 %r8, %r5, 256, %r4;
  ld.param.u64 %rd1, [output];
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r8;
  ret;
}

// Adds one to every element of the board's row.
.visible .entry Increment(.param .u32 row)
{
  .reg .b32 %r<6>;
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  ld.param.u32 %r3, [row];
  suld.b.2d.b32.trap {%r4}, [board, {%r2, %r3}];
  add.s32 %r5, %r4, 1;
  sust.b.2d.b32.trap [board, {%r2, %r3}], {%r5};
  ret;
}
)";

constexpr unsigned kWidth = 16, kHeight = 4;
constexpr size_t kRow = kWidth * sizeof(float);

struct Program {
  CUmodule module = nullptr;
  CUfunction sample = nullptr, fetch = nullptr, increment = nullptr;
  CUtexref plane = nullptr, line = nullptr;
  CUsurfref board = nullptr;
  CUdeviceptr output = 0;
};

static CUarray NewPlane(float first, unsigned flags = 0) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = {kWidth, kHeight, 0, CU_AD_FORMAT_FLOAT, 1, flags};
  CUarray array = nullptr;
  CHECK_DRIVER(cuArray3DCreate(&array, &shape));
  Floats texels(size_t{kWidth} * kHeight);
  for (size_t i = 0; i < texels.size(); ++i) texels[i] = first + static_cast<float>(i);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = texels.data();
  copy.srcPitch = kRow;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = kRow;
  copy.Height = kHeight;
  CHECK_DRIVER(cuMemcpy2D(&copy));
  return array;
}

static void LaunchSample(const Program& program, CUdeviceptr output, float x, float step, float y,
                         float level, CUstream stream) {
  void* parameters[] = {&output, &x, &step, &y, &level};
  CHECK_DRIVER(
      cuLaunchKernel(program.sample, 1, 1, 1, kWidth, 1, 1, 0, stream, parameters, nullptr));
}

static Floats Read(CUdeviceptr from) {
  Floats values(kWidth);
  CHECK_DRIVER(cuMemcpyDtoH(values.data(), from, kRow));
  return values;
}

static Floats Sampled(const Program& program, float x, float step, float y, float level = 0) {
  LaunchSample(program, program.output, x, step, y, level, nullptr);
  return Read(program.output);
}

static void Expect(const Floats& got, unsigned index, float expected, const char* what) {
  EXPECT(got[index] == expected, "%s: element %u is %g, not %g", what, index, got[index], expected);
}

static void FindsReferences(Program& program) {
  CHECK_DRIVER(cuModuleGetTexRef(&program.plane, program.module, "plane"));
  CHECK_DRIVER(cuModuleGetTexRef(&program.line, program.module, "line"));
  CHECK_DRIVER(cuModuleGetSurfRef(&program.board, program.module, "board"));
  CUtexref again = nullptr, none = nullptr;
  CUsurfref surface = nullptr;
  CHECK_DRIVER(cuModuleGetTexRef(&again, program.module, "plane"));
  EXPECT(again == program.plane, "the same name gave another reference");
  EXPECT(cuModuleGetTexRef(&none, program.module, "nothing") == CUDA_ERROR_NOT_FOUND, "a name");
  EXPECT(cuModuleGetTexRef(&none, program.module, nullptr) == CUDA_ERROR_INVALID_VALUE, "no name");
  EXPECT(cuModuleGetTexRef(&none, nullptr, "plane") == CUDA_ERROR_INVALID_HANDLE, "no module");
  EXPECT(cuModuleGetTexRef(&none, program.module, "board") == CUDA_ERROR_NOT_FOUND, "a surface");
  EXPECT(cuModuleGetSurfRef(&surface, program.module, "plane") == CUDA_ERROR_NOT_FOUND,
         "a texture");
}

static void ReadsArrays(Program& program) {
  CUarray array = NewPlane(100), told = nullptr;
  CUdeviceptr address = 0;
  EXPECT(cuTexRefGetArray(&told, program.plane) == CUDA_ERROR_INVALID_VALUE, "nothing is bound");
  EXPECT(cuTexRefSetArray(program.plane, nullptr, CU_TRSA_OVERRIDE_FORMAT) != CUDA_SUCCESS,
         "no array");
  CHECK_DRIVER(cuTexRefSetArray(program.plane, array, CU_TRSA_OVERRIDE_FORMAT));
  CHECK_DRIVER(cuTexRefGetArray(&told, program.plane));
  EXPECT(told == array, "another array is bound");
  EXPECT(cuTexRefGetAddress(&address, program.plane) == CUDA_ERROR_INVALID_VALUE, "an array");
  for (int axis = 0; axis < 2; ++axis) {
    CHECK_DRIVER(cuTexRefSetAddressMode(program.plane, axis, CU_TR_ADDRESS_MODE_CLAMP));
  }
  CHECK_DRIVER(cuTexRefSetFilterMode(program.plane, CU_TR_FILTER_MODE_POINT));
  Floats got = Sampled(program, 0.5f, 1, 2.5f);
  for (unsigned i = 0; i < kWidth; ++i) Expect(got, i, 100.0f + 2 * kWidth + i, "a row's texels");
  CHECK_DRIVER(cuTexRefSetFilterMode(program.plane, CU_TR_FILTER_MODE_LINEAR));
  got = Sampled(program, 0.75f, 1, 0.5f);
  Expect(got, 3, 103.25f, "a quarter of the way to the next");
  Expect(got, kWidth - 1, 115, "clamped at the end");
  float border[4] = {-1, 0, 0, 0}, told_border[4] = {};
  CHECK_DRIVER(cuTexRefSetFilterMode(program.plane, CU_TR_FILTER_MODE_POINT));
  CHECK_DRIVER(cuTexRefSetAddressMode(program.plane, 0, CU_TR_ADDRESS_MODE_BORDER));
  CHECK_DRIVER(cuTexRefSetBorderColor(program.plane, border));
  CHECK_DRIVER(cuTexRefGetBorderColor(told_border, program.plane));
  EXPECT(told_border[0] == -1, "the border is %g", told_border[0]);
  got = Sampled(program, -1.5f, 1, 0.5f);
  Expect(got, 0, -1, "the border");
  Expect(got, 2, 100, "beside the border");
  CHECK_DRIVER(cuTexRefSetFlags(program.plane, CU_TRSF_NORMALIZED_COORDINATES));
  CHECK_DRIVER(cuTexRefSetAddressMode(program.plane, 0, CU_TR_ADDRESS_MODE_WRAP));
  got = Sampled(program, 1 + 0.5f / kWidth, 1.0f / kWidth, 0.125f);
  Expect(got, 5, 105, "around the end");
  CHECK_DRIVER(cuTexRefSetFlags(program.plane, 0));
  CHECK_DRIVER(cuTexRefSetAddressMode(program.plane, 0, CU_TR_ADDRESS_MODE_CLAMP));
  CHECK_DRIVER(cuArrayDestroy(array));
}

// The first launch waits on the device while the reference is bound to another array.
static void LaunchesKeepTheirBinding(Program& program) {
  CUarray first = NewPlane(1000), second = NewPlane(2000);
  CUstream blocked = nullptr, free = nullptr;
  CHECK_DRIVER(cuStreamCreate(&blocked, CU_STREAM_NON_BLOCKING));
  CHECK_DRIVER(cuStreamCreate(&free, CU_STREAM_NON_BLOCKING));
  CUdeviceptr outputs = 0, flag = 0;
  CHECK_DRIVER(cuMemAlloc(&outputs, 2 * kRow));
  CHECK_DRIVER(cuMemAlloc(&flag, 4));
  CHECK_DRIVER(cuMemsetD32(flag, 0, 1));
  CHECK_DRIVER(cuCtxSynchronize());
  CHECK_DRIVER(cuStreamWaitValue32(blocked, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
  CHECK_DRIVER(cuTexRefSetArray(program.plane, first, CU_TRSA_OVERRIDE_FORMAT));
  LaunchSample(program, outputs, 0.5f, 1, 0.5f, 0, blocked);
  CHECK_DRIVER(cuTexRefSetArray(program.plane, second, CU_TRSA_OVERRIDE_FORMAT));
  LaunchSample(program, outputs + kRow, 0.5f, 1, 0.5f, 0, free);
  CHECK_DRIVER(cuStreamSynchronize(free));
  CHECK_DRIVER(cuStreamWriteValue32(free, flag, 1, 0));
  CHECK_DRIVER(cuStreamSynchronize(blocked));
  CHECK_DRIVER(cuCtxSynchronize());
  Expect(Read(outputs), 4, 1004, "the launch before the change");
  Expect(Read(outputs + kRow), 4, 2004, "the launch after it");
  CHECK_DRIVER(cuMemFree(outputs));
  CHECK_DRIVER(cuMemFree(flag));
  CHECK_DRIVER(cuArrayDestroy(first));
  CHECK_DRIVER(cuArrayDestroy(second));
}

static std::vector<unsigned> Fetched(const Program& program, int first) {
  CUdeviceptr output = program.output;
  void* parameters[] = {&output, &first};
  CHECK_DRIVER(
      cuLaunchKernel(program.fetch, 1, 1, 1, kWidth, 1, 1, 0, nullptr, parameters, nullptr));
  std::vector<unsigned> values(kWidth);
  CHECK_DRIVER(cuMemcpyDtoH(values.data(), output, kRow));
  return values;
}

static void ReadsLinearMemory(Program& program) {
  std::vector<uint8_t> bytes(1024);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  CUdeviceptr memory = 0, told = 0;
  CHECK_DRIVER(cuMemAlloc(&memory, bytes.size()));
  CHECK_DRIVER(cuMemcpyHtoD(memory, bytes.data(), bytes.size()));
  EXPECT(cuTexRefSetFormat(program.line, CU_AD_FORMAT_UNSIGNED_INT8, 3) == CUDA_ERROR_INVALID_VALUE,
         "three channels");
  CHECK_DRIVER(cuTexRefSetFormat(program.line, CU_AD_FORMAT_UNSIGNED_INT8, 2));
  CHECK_DRIVER(cuTexRefSetFlags(program.line, CU_TRSF_READ_AS_INTEGER));
  size_t offset = 99;
  CHECK_DRIVER(cuTexRefSetAddress(&offset, program.line, memory, 20));
  EXPECT(offset == 0, "an allocation starts %zu bytes into its texture", offset);
  std::vector<unsigned> got = Fetched(program, 0);
  for (unsigned i = 0; i < kWidth; ++i) {
    const unsigned expected = i < 10 ? bytes[2 * i] + 256u * bytes[2 * i + 1] : 0;
    EXPECT(got[i] == expected, "texel %u is %u, not %u", i, got[i], expected);
  }
  CHECK_DRIVER(cuTexRefGetAddress(&told, program.line));
  EXPECT(told == memory, "bound to %llx, not %llx", told, memory);
  // From within: the texture starts before, at an aligned place.
  CHECK_DRIVER(cuTexRefSetAddress(&offset, program.line, memory + 600, 100));
  EXPECT(offset != 0 && offset % 2 == 0, "the offset is %zu", offset);
  got = Fetched(program, static_cast<int>(offset / 2));
  EXPECT(got[0] == bytes[600] + 256u * bytes[601], "the first texel is %u", got[0]);
  EXPECT(cuTexRefSetAddress(nullptr, program.line, memory + 600, 100) == CUDA_ERROR_INVALID_VALUE,
         "without a place for the offset");
  EXPECT_OF_MISTAKE(
      cuTexRefSetAddress(&offset, program.line, memory, 0) == CUDA_ERROR_INVALID_VALUE, "empty");
  EXPECT_OF_MISTAKE(
      cuTexRefSetAddress(&offset, program.line, 0x1000, 64) == CUDA_ERROR_INVALID_VALUE,
      "no device memory");
  CHECK_DRIVER(cuMemFree(memory));
}

static void ReadsRows(Program& program) {
  CUdeviceptr memory = 0;
  size_t pitch = 0;
  CHECK_DRIVER(cuMemAllocPitch(&memory, &pitch, kRow, kHeight, 4));
  CHECK_DRIVER(cuMemsetD2D32(memory, pitch, 0, kWidth, kHeight));
  const float value = 6.5f;
  CHECK_DRIVER(cuMemcpyHtoD(memory + 3 * pitch + 2 * sizeof(float), &value, sizeof value));
  const CUDA_ARRAY_DESCRIPTOR shape = {kWidth, kHeight, CU_AD_FORMAT_FLOAT, 1};
  EXPECT(cuTexRefSetAddress2D(program.plane, &shape, memory, 8) == CUDA_ERROR_INVALID_VALUE,
         "rows that overlap");
  EXPECT(cuTexRefSetAddress2D(program.plane, &shape, memory + 4, pitch) == CUDA_ERROR_INVALID_VALUE,
         "an address that is not aligned");
  CHECK_DRIVER(cuTexRefSetAddress2D(program.plane, &shape, memory, pitch));
  CUarray array = nullptr;
  EXPECT(cuTexRefGetArray(&array, program.plane) == CUDA_ERROR_INVALID_VALUE, "no array");
  const Floats got = Sampled(program, 0.5f, 1, 3.5f);
  for (unsigned i = 0; i < kWidth; ++i) Expect(got, i, i == 2 ? value : 0, "the last row");
  CHECK_DRIVER(cuMemFree(memory));
}

static void ReadsLevels(Program& program) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = {kWidth, kHeight, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUmipmappedArray levels = nullptr, told = nullptr;
  CHECK_DRIVER(cuMipmappedArrayCreate(&levels, &shape, 3));
  for (unsigned level = 0; level < 3; ++level) {
    CUarray array = nullptr;
    CUDA_ARRAY_DESCRIPTOR told_shape = {};
    CHECK_DRIVER(cuMipmappedArrayGetLevel(&array, levels, level));
    CHECK_DRIVER(cuArrayGetDescriptor(&told_shape, array));
    EXPECT(told_shape.Width == kWidth >> level, "level %u is %zu wide", level, told_shape.Width);
    const Floats texels(told_shape.Width, 10.0f * static_cast<float>(level + 1));
    CUDA_MEMCPY2D copy = {};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = texels.data();
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.WidthInBytes = told_shape.Width * sizeof(float);
    copy.Height = 1;
    CHECK_DRIVER(cuMemcpy2D(&copy));
  }
  CHECK_DRIVER(cuTexRefSetMipmappedArray(program.plane, levels, CU_TRSA_OVERRIDE_FORMAT));
  CHECK_DRIVER(cuTexRefGetMipmappedArray(&told, program.plane));
  EXPECT(told == levels, "other levels are bound");
  CHECK_DRIVER(cuTexRefSetFlags(program.plane, CU_TRSF_NORMALIZED_COORDINATES));
  CHECK_DRIVER(cuTexRefSetMipmapLevelClamp(program.plane, 0, 2));
  CHECK_DRIVER(cuTexRefSetMipmapFilterMode(program.plane, CU_TR_FILTER_MODE_POINT));
  Expect(Sampled(program, 0.1f, 0, 0.05f, 0), 0, 10, "the first level");
  Expect(Sampled(program, 0.1f, 0, 0.05f, 2), 0, 30, "the last level");
  CHECK_DRIVER(cuTexRefSetMipmapFilterMode(program.plane, CU_TR_FILTER_MODE_LINEAR));
  Expect(Sampled(program, 0.1f, 0, 0.05f, 0.5f), 0, 15, "between two levels");
  CHECK_DRIVER(cuTexRefSetMipmapLevelClamp(program.plane, 0, 1));
  Expect(Sampled(program, 0.1f, 0, 0.05f, 2), 0, 20, "not beyond the clamp");
  CHECK_DRIVER(cuTexRefSetMipmapLevelBias(program.plane, 1));
  Expect(Sampled(program, 0.1f, 0, 0.05f, 0), 0, 20, "with a bias");
  CHECK_DRIVER(cuTexRefSetMipmapLevelBias(program.plane, 0));
  CHECK_DRIVER(cuMipmappedArrayDestroy(levels));
}

static void WritesSurfaces(Program& program) {
  CUarray plain = NewPlane(0), array = NewPlane(0, CUDA_ARRAY3D_SURFACE_LDST), told = nullptr;
  EXPECT(cuSurfRefGetArray(&told, program.board) == CUDA_ERROR_INVALID_VALUE, "nothing is bound");
  EXPECT(cuSurfRefSetArray(program.board, plain, 0) == CUDA_ERROR_INVALID_VALUE,
         "an array that was not made for surfaces");
  CHECK_DRIVER(cuSurfRefSetArray(program.board, array, 0));
  CHECK_DRIVER(cuSurfRefGetArray(&told, program.board));
  EXPECT(told == array, "another array is bound");
  std::vector<int> words(kWidth, 40);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = words.data();
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.dstY = 2;
  copy.WidthInBytes = kRow;
  copy.Height = 1;
  CHECK_DRIVER(cuMemcpy2D(&copy));
  unsigned row = 2;
  void* parameters[] = {&row};
  for (int i = 0; i < 2; ++i) {
    CHECK_DRIVER(
        cuLaunchKernel(program.increment, 1, 1, 1, kWidth, 1, 1, 0, nullptr, parameters, nullptr));
  }
  CUDA_MEMCPY2D back = {};
  back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  back.srcArray = array;
  back.srcY = 2;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = words.data();
  back.WidthInBytes = kRow;
  back.Height = 1;
  CHECK_DRIVER(cuMemcpy2D(&back));
  for (unsigned i = 0; i < kWidth; ++i) EXPECT(words[i] == 42, "element %u is %d", i, words[i]);
  CHECK_DRIVER(cuArrayDestroy(plain));
  CHECK_DRIVER(cuArrayDestroy(array));
}

// A reference without a module keeps what it is set to; nothing reads it.
static void KeepsWhatIsSet(const Program& program) {
  CUtexref own = nullptr;
  CHECK_DRIVER(cuTexRefCreate(&own));
  CHECK_DRIVER(cuTexRefSetFormat(own, CU_AD_FORMAT_SIGNED_INT16, 4));
  CHECK_DRIVER(cuTexRefSetAddressMode(own, 2, CU_TR_ADDRESS_MODE_MIRROR));
  CHECK_DRIVER(cuTexRefSetFilterMode(own, CU_TR_FILTER_MODE_LINEAR));
  CHECK_DRIVER(cuTexRefSetFlags(own, CU_TRSF_SRGB));
  CHECK_DRIVER(cuTexRefSetMaxAnisotropy(own, 8));
  CHECK_DRIVER(cuTexRefSetMipmapFilterMode(own, CU_TR_FILTER_MODE_LINEAR));
  CHECK_DRIVER(cuTexRefSetMipmapLevelBias(own, 0.5f));
  CHECK_DRIVER(cuTexRefSetMipmapLevelClamp(own, 1, 3));
  CUarray_format format = CU_AD_FORMAT_FLOAT;
  CUaddress_mode mode = CU_TR_ADDRESS_MODE_WRAP;
  CUfilter_mode filter = CU_TR_FILTER_MODE_POINT, mipmap_filter = CU_TR_FILTER_MODE_POINT;
  unsigned flags = 0;
  int channels = 0, anisotropy = 0;
  float bias = 0, least = 0, most = 0;
  CHECK_DRIVER(cuTexRefGetFormat(&format, &channels, own));
  CHECK_DRIVER(cuTexRefGetAddressMode(&mode, own, 2));
  CHECK_DRIVER(cuTexRefGetFilterMode(&filter, own));
  CHECK_DRIVER(cuTexRefGetFlags(&flags, own));
  CHECK_DRIVER(cuTexRefGetMaxAnisotropy(&anisotropy, own));
  CHECK_DRIVER(cuTexRefGetMipmapFilterMode(&mipmap_filter, own));
  CHECK_DRIVER(cuTexRefGetMipmapLevelBias(&bias, own));
  CHECK_DRIVER(cuTexRefGetMipmapLevelClamp(&least, &most, own));
  EXPECT(format == CU_AD_FORMAT_SIGNED_INT16 && channels == 4, "%d, %d", format, channels);
  EXPECT(mode == CU_TR_ADDRESS_MODE_MIRROR && filter == CU_TR_FILTER_MODE_LINEAR, "%d, %d", mode,
         filter);
  EXPECT(flags == CU_TRSF_SRGB && anisotropy == 8, "%u, %d", flags, anisotropy);
  EXPECT(mipmap_filter == CU_TR_FILTER_MODE_LINEAR && bias == 0.5f, "%d, %g", mipmap_filter, bias);
  EXPECT(least == 1 && most == 3, "from %g to %g", least, most);
  EXPECT(cuTexRefSetAddressMode(own, 3, CU_TR_ADDRESS_MODE_CLAMP) == CUDA_ERROR_INVALID_VALUE,
         "a fourth axis");
  EXPECT(cuTexRefGetAddressMode(&mode, own, -1) == CUDA_ERROR_INVALID_VALUE, "no axis");
  EXPECT(cuTexRefSetFlags(own, 0x8000) == CUDA_ERROR_INVALID_VALUE, "no such flag");
  EXPECT(cuParamSetTexRef(program.sample, CU_PARAM_TR_DEFAULT, own) == CUDA_ERROR_INVALID_VALUE,
         "a reference of no module");
  EXPECT_OF_MISTAKE(
      cuParamSetTexRef(program.sample, CU_PARAM_TR_DEFAULT, program.plane) == CUDA_SUCCESS,
      "the module's own reference, where nothing is bound to it");
  EXPECT(cuParamSetTexRef(program.sample, 0, program.plane) == CUDA_ERROR_INVALID_VALUE, "a unit");
  CHECK_DRIVER(cuTexRefDestroy(own));
  EXPECT_OF_MISTAKE(cuTexRefSetFlags(own, 0) != CUDA_SUCCESS, "a destroyed reference");
}

int main() {
  CUcontext context = nullptr;
  Program program;
  CHECK_DRIVER(cuInit(0));
  CHECK_DRIVER(cuCtxCreate(&context, nullptr, 0, 0));
  CHECK_DRIVER(cuModuleLoadData(&program.module, kPtx));
  CHECK_DRIVER(cuModuleGetFunction(&program.sample, program.module, "Sample"));
  CHECK_DRIVER(cuModuleGetFunction(&program.fetch, program.module, "Fetch"));
  CHECK_DRIVER(cuModuleGetFunction(&program.increment, program.module, "Increment"));
  CHECK_DRIVER(cuMemAlloc(&program.output, kRow));
  FindsReferences(program);
  ReadsArrays(program);
  LaunchesKeepTheirBinding(program);
  ReadsLinearMemory(program);
  ReadsRows(program);
  ReadsLevels(program);
  WritesSurfaces(program);
  KeepsWhatIsSet(program);
  CHECK_DRIVER(cuCtxSynchronize());
  CHECK_DRIVER(cuModuleUnload(program.module));
  EXPECT_OF_MISTAKE(cuTexRefSetFlags(program.plane, 0) != CUDA_SUCCESS, "its module is unloaded");
  CHECK_DRIVER(cuCtxDestroy(context));
  std::printf("PASS driver_texture_references\n");
  return 0;
}
