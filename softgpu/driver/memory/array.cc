#include "softgpu/driver/memory/array.h"

#include <algorithm>

namespace softgpu {
namespace {

constexpr size_t kMaxWidth = 131072;  // as devices of compute capability 9.0, for 1D and 2D
constexpr size_t kMaxHeight = 65536;
constexpr size_t kMaxDepth = 16384;
constexpr size_t kMaxFaceWidth = 32768;
constexpr size_t kMaxFaces = 2046;
constexpr size_t kMaxGather = 32768;  // width and height
constexpr unsigned kKnownFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                                 CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_CUBEMAP;
constexpr size_t kCube = 6;  // faces

bool Has(const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned flag) { return (shape.Flags & flag) != 0; }

// Square faces, six of them or six of each layer.
CUresult CheckCube(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  const bool layered = Has(shape, CUDA_ARRAY3D_LAYERED);
  const bool faces =
      layered ? shape.Depth % kCube == 0 && shape.Depth <= kMaxFaces : shape.Depth == kCube;
  const bool good = faces && shape.Width == shape.Height && shape.Width <= kMaxFaceWidth;
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Texels are gathered of planes alone.
CUresult CheckGather(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  const bool good = shape.Height != 0 && (shape.Depth == 0 || InLayers(shape)) &&
                    shape.Width <= kMaxGather && shape.Height <= kMaxGather;
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

bool InLayers(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  return Has(shape, CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
}

CUresult CheckShape(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  if (shape.Width == 0 || shape.Width > kMaxWidth || shape.Height > kMaxHeight ||
      shape.Depth > kMaxDepth) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool layered = Has(shape, CUDA_ARRAY3D_LAYERED);
  if (shape.Height == 0 && shape.Depth != 0 && !layered) return CUDA_ERROR_INVALID_VALUE;
  if (layered && shape.Depth == 0) return CUDA_ERROR_INVALID_VALUE;
  if (Has(shape, CUDA_ARRAY3D_CUBEMAP)) LONGWIRE_TRY(CheckCube(shape));
  if (Has(shape, CUDA_ARRAY3D_TEXTURE_GATHER)) LONGWIRE_TRY(CheckGather(shape));
  if (shape.Format == CU_AD_FORMAT_NV12) {
    const bool good = shape.NumChannels == 3 && shape.Width % 2 == 0 && shape.Height != 0 &&
                      shape.Height % 2 == 0 && shape.Depth == 0;
    if (!good) return CUDA_ERROR_INVALID_VALUE;
    return (shape.Flags & ~kKnownFlags) == 0 ? CUDA_SUCCESS : Refuse("an array with these flags");
  }
  if (shape.NumChannels != 1 && shape.NumChannels != 2 && shape.NumChannels != 4) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (ChannelBytes(shape.Format) == 0) return Refuse("an array of this format");
  if ((shape.Flags & ~kKnownFlags) != 0) return Refuse("an array with these flags");
  return CUDA_SUCCESS;
}

CUDA_ARRAY3D_DESCRIPTOR LevelShape(CUDA_ARRAY3D_DESCRIPTOR shape, unsigned level) {
  auto halve = [level](size_t side) { return side == 0 ? 0 : std::max<size_t>(side >> level, 1); };
  shape.Width = halve(shape.Width);
  shape.Height = halve(shape.Height);
  if (!InLayers(shape)) shape.Depth = halve(shape.Depth);
  return shape;
}

unsigned MostLevels(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  size_t depth = InLayers(shape) ? 0 : shape.Depth;
  size_t longest = std::max({shape.Width, shape.Height, depth});
  unsigned levels = 1;
  for (; longest > 1; longest >>= 1) ++levels;
  return levels;
}

// base/texel_bytes.h has the numbers of these names.
static_assert(ChannelBytes(CU_AD_FORMAT_UNSIGNED_INT8) == 1);
static_assert(ChannelBytes(CU_AD_FORMAT_SIGNED_INT8) == 1);
static_assert(ChannelBytes(CU_AD_FORMAT_UNSIGNED_INT16) == 2);
static_assert(ChannelBytes(CU_AD_FORMAT_SIGNED_INT16) == 2);
static_assert(ChannelBytes(CU_AD_FORMAT_HALF) == 2);
static_assert(ChannelBytes(CU_AD_FORMAT_UNSIGNED_INT32) == 4);
static_assert(ChannelBytes(CU_AD_FORMAT_SIGNED_INT32) == 4);
static_assert(ChannelBytes(CU_AD_FORMAT_FLOAT) == 4);
static_assert(ChannelBytes(CU_AD_FORMAT_NV12) == 0);

std::shared_ptr<Array> FindArray(CUarray handle) { return Driver::Get().arrays.Find(handle); }

void ForgetArrays(Context& context) {
  Driver& driver = Driver::Get();
  for (auto& array : driver.arrays.All()) {
    if (array->context == &context) driver.arrays.Remove(array.get());
  }
  for (auto& mipmap : driver.mipmaps.All()) {
    if (mipmap->context == &context) driver.mipmaps.Remove(mipmap.get());
  }
}

}  // namespace softgpu
