// Descriptions of tensors, planes of picture arrays, what arrays say of memory that is mapped to
// them, and the figures of a device that belong to these.
#include <cstring>
#include <numeric>
#include <vector>

#include "driver_program.h"

constexpr CUresult kInvalid = CUDA_ERROR_INVALID_VALUE;

struct Tiles {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  cuuint32_t rank = 2;
  CUdeviceptr address = 0;
  cuuint64_t dimensions[5] = {64, 32, 4, 2, 2}, strides[4] = {256, 8192, 32768, 65536};
  cuuint32_t box[5] = {16, 8, 2, 1, 1}, steps[5] = {1, 1, 1, 1, 1};
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;

  CUresult Encode(CUtensorMap* map) const {
    return cuTensorMapEncodeTiled(map, type, rank, reinterpret_cast<void*>(address), dimensions,
                                  strides, box, steps, interleave, swizzle,
                                  CU_TENSOR_MAP_L2_PROMOTION_L2_128B, fill);
  }
  CUresult EncodePixels(CUtensorMap* map, int lower, int upper, unsigned channels) const {
    const int lowers[3] = {lower, lower, lower}, uppers[3] = {upper, upper, upper};
    return cuTensorMapEncodeIm2col(map, type, rank, reinterpret_cast<void*>(address), dimensions,
                                   strides, lowers, uppers, channels, 64, steps, interleave,
                                   swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, fill);
  }
  CUresult EncodeWide(CUtensorMap* map, CUtensorMapIm2ColWideMode mode) const {
    return cuTensorMapEncodeIm2colWide(
        map, type, rank, reinterpret_cast<void*>(address), dimensions, strides, -1, 1, 16, 64,
        steps, interleave, mode, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_NONE, fill);
  }
};

static bool Same(const CUtensorMap& a, const CUtensorMap& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

static CUtensorMap Encoded(const Tiles& tiles) {
  CUtensorMap map;
  std::memset(&map, 0x5a, sizeof map);
  CHECK_DRIVER(tiles.Encode(&map));
  return map;
}

// Every parameter shows in the description, and a wrong one is refused.
template <class Change>
static void ExpectOther(const Tiles& tiles, const char* what, Change change) {
  Tiles changed = tiles;
  change(changed);
  EXPECT(!Same(Encoded(tiles), Encoded(changed)), "%s makes no difference", what);
}
template <class Change>
static void ExpectRefused(const Tiles& tiles, const char* what, Change change) {
  Tiles changed = tiles;
  change(changed);
  CUtensorMap map;
  EXPECT(changed.Encode(&map) == kInvalid, "%s", what);
}

static void Tiled(const Tiles& tiles) {
  const CUtensorMap map = Encoded(tiles);
  EXPECT(Same(map, Encoded(tiles)), "the same tensor is described otherwise");
  ExpectOther(tiles, "the address", [](Tiles& t) { t.address += 256; });
  ExpectOther(tiles, "the type", [](Tiles& t) { t.type = CU_TENSOR_MAP_DATA_TYPE_INT32; });
  ExpectOther(tiles, "the rank", [](Tiles& t) { t.rank = 3; });
  ExpectOther(tiles, "a dimension", [](Tiles& t) { t.dimensions[1] = 31; });
  ExpectOther(tiles, "a stride", [](Tiles& t) { t.strides[0] = 512; });
  ExpectOther(tiles, "the box", [](Tiles& t) { t.box[1] = 4; });
  ExpectOther(tiles, "a step", [](Tiles& t) { t.steps[1] = 2; });
  ExpectOther(tiles, "the swizzle", [](Tiles& t) { t.swizzle = CU_TENSOR_MAP_SWIZZLE_128B; });
  ExpectRefused(tiles, "no dimensions", [](Tiles& t) { t.rank = 0; });
  ExpectRefused(tiles, "six dimensions", [](Tiles& t) { t.rank = 6; });
  ExpectRefused(tiles, "an odd address", [](Tiles& t) { t.address += 8; });
  ExpectRefused(tiles, "no elements", [](Tiles& t) { t.dimensions[0] = 0; });
  ExpectRefused(tiles, "an odd stride", [](Tiles& t) { t.strides[0] = 260; });
  ExpectRefused(tiles, "a large box", [](Tiles& t) { t.box[1] = 257; });
  ExpectRefused(tiles, "a box of 12 bytes", [](Tiles& t) { t.box[0] = 3; });
  ExpectRefused(tiles, "a large step", [](Tiles& t) { t.steps[1] = 9; });
  ExpectRefused(tiles, "a box wider than the swizzle",
                [](Tiles& t) { t.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; });
  ExpectRefused(tiles, "an unknown type",
                [](Tiles& t) { t.type = static_cast<CUtensorMapDataType>(99); });
  EXPECT(tiles.Encode(nullptr) == kInvalid, "nowhere to write to");

  CUtensorMap moved = map;
  Tiles elsewhere = tiles;
  elsewhere.address += 1024;
  CHECK_DRIVER(cuTensorMapReplaceAddress(&moved, reinterpret_cast<void*>(elsewhere.address)));
  EXPECT(Same(moved, Encoded(elsewhere)), "a new address changes more than the address");
  EXPECT(cuTensorMapReplaceAddress(&moved, reinterpret_cast<void*>(tiles.address + 4)) == kInvalid,
         "an odd address");
  EXPECT(Same(moved, Encoded(elsewhere)), "a refused address changes the description");
  EXPECT(cuTensorMapReplaceAddress(nullptr, nullptr) == kInvalid, "no description");
}

static void Pixels(Tiles tiles) {
  CUtensorMap map, other;
  tiles.rank = 4;
  CHECK_DRIVER(tiles.EncodePixels(&map, -1, 1, 16));
  CHECK_DRIVER(tiles.EncodePixels(&other, -1, 1, 16));
  EXPECT(Same(map, other) && !Same(map, Encoded(tiles)), "like tiles, or not like itself");
  CHECK_DRIVER(tiles.EncodePixels(&other, -2, 1, 16));
  EXPECT(!Same(map, other), "the lower corner makes no difference");
  CHECK_DRIVER(tiles.EncodePixels(&other, -1, 2, 16));
  EXPECT(!Same(map, other), "the upper corner makes no difference");
  CHECK_DRIVER(tiles.EncodePixels(&other, -1, 1, 32));
  EXPECT(!Same(map, other), "the channels make no difference");
  EXPECT(tiles.EncodePixels(&other, -129, 1, 16) == kInvalid, "a corner too far away");
  EXPECT(tiles.EncodePixels(&other, -1, 1, 257) == kInvalid, "too many channels");
  tiles.rank = 2;
  EXPECT(tiles.EncodePixels(&map, -1, 1, 16) == kInvalid, "pixels of two dimensions");
}

static void Wide(Tiles tiles) {
  CUtensorMap map, other;
  int major = 0;
  CHECK_DRIVER(
      cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CUdevice{0}));
  tiles.rank = 4;
  const CUresult result = tiles.EncodeWide(&other, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W);
  if (major < 10 && !IsSoftwareDevice()) return;  // GPUs from 10.0 on know the modes
  EXPECT(result == CUDA_SUCCESS, "the code is %d", result);
  CHECK_DRIVER(tiles.EncodeWide(&map, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128));
  EXPECT(!Same(map, other), "the mode makes no difference");
  EXPECT(tiles.EncodeWide(&map, static_cast<CUtensorMapIm2ColWideMode>(9)) == kInvalid, "a mode");
  tiles.rank = 2;
  EXPECT(tiles.EncodeWide(&map, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W) == kInvalid, "two dimensions");
}

static void FillPlane(CUarray plane, const std::vector<unsigned char>& bytes, size_t row, bool up) {
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
  copy.dstMemoryType = up ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
  copy.srcHost = bytes.data();
  copy.dstHost = const_cast<unsigned char*>(bytes.data());
  copy.srcArray = copy.dstArray = plane;
  copy.WidthInBytes = row;
  copy.Height = bytes.size() / row;
  CHECK_DRIVER(cuMemcpy2D(&copy));
}

// A picture in NV12: a plane of brightness and one of half the size with two kinds of colour.
static void Planes() {
  constexpr size_t kWidth = 64, kHeight = 16;
  const CUDA_ARRAY3D_DESCRIPTOR shape = {kWidth, kHeight, 0, CU_AD_FORMAT_NV12, 3, 0};
  CUarray picture = nullptr, bright = nullptr, colour = nullptr, none = nullptr;
  CHECK_DRIVER(cuArray3DCreate(&picture, &shape));
  CHECK_DRIVER(cuArrayGetPlane(&bright, picture, 0));
  CHECK_DRIVER(cuArrayGetPlane(&colour, picture, 1));
  EXPECT(bright != colour && bright != picture, "the planes are the same");
  CUDA_ARRAY_DESCRIPTOR told = {};
  CHECK_DRIVER(cuArrayGetDescriptor(&told, bright));
  EXPECT(told.Width == kWidth && told.Height == kHeight && told.NumChannels == 1, "%zu x %zu, %u",
         told.Width, told.Height, told.NumChannels);
  CHECK_DRIVER(cuArrayGetDescriptor(&told, colour));
  EXPECT(told.Width == kWidth / 2 && told.Height == kHeight / 2 && told.NumChannels == 2,
         "%zu x %zu, %u", told.Width, told.Height, told.NumChannels);
  std::vector<unsigned char> up(kWidth * kHeight), tint(kWidth * kHeight / 2, 0xcc);
  std::iota(up.begin(), up.end(), 1);
  std::vector<unsigned char> down(up.size()), tint_down(tint.size());
  FillPlane(bright, up, kWidth, true);
  FillPlane(colour, tint, kWidth, true);
  FillPlane(bright, down, kWidth, false);
  FillPlane(colour, tint_down, kWidth, false);
  EXPECT(down == up && tint_down == tint, "a plane's bytes are not what was written");
  EXPECT(cuArrayGetPlane(&none, picture, 2) == kInvalid, "a third plane");
  EXPECT(cuArrayGetPlane(nullptr, picture, 0) == kInvalid, "nowhere to write to");
  CHECK_DRIVER(cuArrayDestroy(picture));
  EXPECT_OF_MISTAKE(cuArrayGetPlane(&none, picture, 0) == CUDA_ERROR_INVALID_HANDLE,
                    "a destroyed array");
}

// Arrays that have their memory from the start.
static void Mapped(CUdevice device) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = {64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUarray array = nullptr, plane = nullptr;
  CUmipmappedArray levels = nullptr;
  CHECK_DRIVER(cuArray3DCreate(&array, &shape));
  CHECK_DRIVER(cuMipmappedArrayCreate(&levels, &shape, 3));
  CUDA_ARRAY_SPARSE_PROPERTIES properties = {};
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {};
  EXPECT(cuArrayGetSparseProperties(&properties, array) == kInvalid, "it is not sparse");
  EXPECT(cuMipmappedArrayGetSparseProperties(&properties, levels) == kInvalid, "it is not sparse");
  EXPECT(cuArrayGetMemoryRequirements(&needs, array, device) == kInvalid, "it has memory");
  EXPECT(cuMipmappedArrayGetMemoryRequirements(&needs, levels, device) == kInvalid,
         "it has memory");
  EXPECT(cuArrayGetPlane(&plane, array, 0) == kInvalid, "it has no planes");
  CHECK_DRIVER(cuMipmappedArrayDestroy(levels));
  CHECK_DRIVER(cuArrayDestroy(array));
  EXPECT_OF_MISTAKE(cuArrayGetSparseProperties(&properties, array) == CUDA_ERROR_INVALID_HANDLE,
                    "gone");
  EXPECT_OF_MISTAKE(
      cuMipmappedArrayGetSparseProperties(&properties, levels) == CUDA_ERROR_INVALID_HANDLE,
      "gone");
}

static void Figures(CUdevice device) {
  size_t width = 0;
  CHECK_DRIVER(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 1, device));
  EXPECT(width >= size_t{1} << 27, "%zu texels", width);
  EXPECT(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 3, device) == kInvalid, "");
  EXPECT(cuDeviceGetTexture1DLinearMaxWidth(nullptr, CU_AD_FORMAT_FLOAT, 1, device) == kInvalid,
         "nowhere to write to");
  EXPECT(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 1, 99) ==
             CUDA_ERROR_INVALID_DEVICE,
         "no device");
  const CUatomicOperation operations[] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_CAS};
  unsigned capabilities[3] = {7, 7, 7};
  int native = -1;
  CHECK_DRIVER(
      cuDeviceGetAttribute(&native, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, device));
  CHECK_DRIVER(cuDeviceGetHostAtomicCapabilities(capabilities, operations, 2, device));
  EXPECT((native != 0) == (capabilities[0] != 0) && capabilities[2] == 7, "%x, natively %d",
         capabilities[0], native);
  const auto unknown = static_cast<CUatomicOperation>(99);
  EXPECT(cuDeviceGetHostAtomicCapabilities(capabilities, &unknown, 1, device) == kInvalid, "");
  EXPECT(cuDeviceGetHostAtomicCapabilities(capabilities, operations, 0, device) == kInvalid, "");
  EXPECT(cuDeviceGetHostAtomicCapabilities(nullptr, operations, 2, device) == kInvalid, "nowhere");
  EXPECT(cuDeviceGetHostAtomicCapabilities(capabilities, operations, 2, 99) ==
             CUDA_ERROR_INVALID_DEVICE,
         "no device");
}

int main() {
  CUdevice device = 0;
  CUcontext context = OpenContext(&device);
  Tiles tiles;
  CHECK_DRIVER(cuMemAlloc(&tiles.address, 1 << 20));
  Tiled(tiles);
  Pixels(tiles);
  Wide(tiles);
  if (IsSoftwareDevice()) Planes();  // not every GPU has pictures in planes
  Mapped(device);
  Figures(device);
  CHECK_DRIVER(cuMemFree(tiles.address));
  CHECK_DRIVER(cuCtxDestroy(context));
  std::printf("PASS driver_tensor_maps\n");
  return 0;
}
