// Views of textures: an array of floats read as integers, one level of several, and what an object
// says of the view that it was made with.
#include <cstring>
#include <vector>

#include "driver_program.h"

constexpr CUresult kInvalid = CUDA_ERROR_INVALID_VALUE;
constexpr size_t kWidth = 32, kHeight = 8;

// out[y * 32 + x] = the first channel's bits at (x, y)
static const char kText[] = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .entry Read(.param .u64 texture, .param .u64 out)
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<5>;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  ld.param.u64 %rd1, [texture];
  tex.2d.v4.u32.s32 {%r3, %r4, %r5, %r6}, [%rd1, {%r1, %r2}];
  mad.lo.u32 %r7, %r2, 32, %r1;
  ld.param.u64 %rd2, [out];
  cvta.to.global.u64 %rd3, %rd2;
  mul.wide.u32 %rd4, %r7, 4;
  add.s64 %rd4, %rd3, %rd4;
  st.global.u32 [%rd4], %r3;
  ret;
}
)";

static std::vector<unsigned> Read(CUfunction kernel, CUtexObject texture) {
  std::vector<unsigned> found(kWidth * kHeight);
  CUdeviceptr out = 0;
  CHECK_DRIVER(cuMemAlloc(&out, found.size() * 4));
  CHECK_DRIVER(cuMemsetD32(out, 0xabcd, found.size()));
  void* parameters[] = {&texture, &out};
  CHECK_DRIVER(
      cuLaunchKernel(kernel, kHeight, 1, 1, kWidth, 1, 1, 0, nullptr, parameters, nullptr));
  CHECK_DRIVER(cuMemcpyDtoH(found.data(), out, found.size() * 4));
  CHECK_DRIVER(cuMemFree(out));
  return found;
}

static void Fill(CUarray array, size_t width, size_t height, float first) {
  std::vector<float> values(width * height);
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = values.data();
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = width * sizeof(float);
  copy.Height = height;
  CHECK_DRIVER(cuMemcpy2D(&copy));
}

static void ExpectBits(const std::vector<unsigned>& found, size_t width, size_t height,
                       float first) {
  for (size_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      const float value = first + static_cast<float>(y * width + x);
      unsigned bits;
      std::memcpy(&bits, &value, sizeof bits);
      EXPECT(found[y * kWidth + x] == bits, "(%zu, %zu) is %x, not %x", x, y, found[y * kWidth + x],
             bits);
    }
  }
}

static CUDA_RESOURCE_VIEW_DESC AsIntegers() {
  CUDA_RESOURCE_VIEW_DESC view = {};
  view.format = CU_RES_VIEW_FORMAT_UINT_1X32;
  view.width = kWidth;
  view.height = kHeight;
  return view;
}

static void OfAnArray(CUfunction kernel) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = {kWidth, kHeight, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUarray array = nullptr;
  CHECK_DRIVER(cuArray3DCreate(&array, &shape));
  Fill(array, kWidth, kHeight, 0.5f);
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC texture = {};
  CUDA_RESOURCE_VIEW_DESC view = AsIntegers(), told = {};
  CUtexObject viewed = 0, plain = 0;
  CHECK_DRIVER(cuTexObjectCreate(&viewed, &resource, &texture, &view));
  CHECK_DRIVER(cuTexObjectCreate(&plain, &resource, &texture, nullptr));
  ExpectBits(Read(kernel, viewed), kWidth, kHeight, 0.5f);
  CHECK_DRIVER(cuTexObjectGetResourceViewDesc(&told, viewed));
  EXPECT(std::memcmp(&told, &view, sizeof told) == 0, "format %d, %zu x %zu", told.format,
         told.width, told.height);
  EXPECT_OF_MISTAKE(cuTexObjectGetResourceViewDesc(&told, plain) == kInvalid,
                    "it was made without a view");
  EXPECT(cuTexObjectGetResourceViewDesc(nullptr, viewed) == kInvalid, "nowhere to write to");
  view.format = CU_RES_VIEW_FORMAT_UINT_2X32;
  CUtexObject wrong = 0;
  EXPECT(cuTexObjectCreate(&wrong, &resource, &texture, &view) == kInvalid, "a larger texel");
  view = AsIntegers();
  view.width = kWidth / 2;
  EXPECT(cuTexObjectCreate(&wrong, &resource, &texture, &view) == kInvalid, "another width");
  CHECK_DRIVER(cuTexObjectDestroy(viewed));
  EXPECT_OF_MISTAKE(cuTexObjectGetResourceViewDesc(&told, viewed) == kInvalid, "it is gone");
  CHECK_DRIVER(cuTexObjectDestroy(plain));
  CHECK_DRIVER(cuArrayDestroy(array));
}

static void OfLevels(CUfunction kernel) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = {kWidth, kHeight, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUmipmappedArray levels = nullptr;
  CHECK_DRIVER(cuMipmappedArrayCreate(&levels, &shape, 3));
  for (unsigned i = 0; i < 3; ++i) {
    CUarray level = nullptr;
    CHECK_DRIVER(cuMipmappedArrayGetLevel(&level, levels, i));
    Fill(level, kWidth >> i, kHeight >> i, 1000.0f * static_cast<float>(i));
  }
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource.res.mipmap.hMipmappedArray = levels;
  CUDA_TEXTURE_DESC texture = {};
  CUDA_RESOURCE_VIEW_DESC view = AsIntegers();
  view.firstMipmapLevel = 1;
  view.lastMipmapLevel = 2;
  CUtexObject second = 0, wrong = 0;
  CHECK_DRIVER(cuTexObjectCreate(&second, &resource, &texture, &view));
  ExpectBits(Read(kernel, second), kWidth / 2, kHeight / 2, 1000.0f);
  view.lastMipmapLevel = 3;
  EXPECT_OF_MISTAKE(cuTexObjectCreate(&wrong, &resource, &texture, &view) == kInvalid,
                    "a fourth level");
  CHECK_DRIVER(cuTexObjectDestroy(second));
  CHECK_DRIVER(cuMipmappedArrayDestroy(levels));
}

int main() {
  CUdevice device = 0;
  CUcontext context = OpenContext(&device);
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CHECK_DRIVER(cuModuleLoadData(&module, kText));
  CHECK_DRIVER(cuModuleGetFunction(&kernel, module, "Read"));
  OfAnArray(kernel);
  OfLevels(kernel);
  CHECK_DRIVER(cuCtxDestroy(context));
  std::printf("PASS driver_texture_views\n");
  return 0;
}
