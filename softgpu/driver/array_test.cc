// Arrays: the shapes that they can have, what queries answer about them, and copies into the faces
// of a cube map.
#include <numeric>

#include "softgpu/driver/test_device.h"

namespace softgpu {
namespace {

using ArrayTest = DeviceTest;

constexpr unsigned kCube = CUDA_ARRAY3D_CUBEMAP, kLayered = CUDA_ARRAY3D_LAYERED;
constexpr unsigned kGather = CUDA_ARRAY3D_TEXTURE_GATHER;

CUDA_ARRAY3D_DESCRIPTOR Shape(size_t width, size_t height, size_t depth, unsigned flags) {
  return {width, height, depth, CU_AD_FORMAT_FLOAT, 1, flags};
}

// Both for arrays and for those with levels.
CUresult Make(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  CUarray array = nullptr;
  CUmipmappedArray levels = nullptr;
  const CUresult result = cuArray3DCreate(&array, &shape);
  EXPECT_EQ(cuMipmappedArrayCreate(&levels, &shape, 2), result);
  if (result == CUDA_SUCCESS) {
    EXPECT_CU(cuArrayDestroy(array));
    EXPECT_CU(cuMipmappedArrayDestroy(levels));
  }
  return result;
}

TEST_F(ArrayTest, CubesHaveSixSquareFaces) {
  EXPECT_CU(Make(Shape(16, 16, 6, kCube)));
  EXPECT_CU(Make(Shape(1, 1, 6, kCube | CUDA_ARRAY3D_SURFACE_LDST)));
  EXPECT_CU(Make(Shape(16, 16, 6, kCube | kLayered)));
  EXPECT_CU(Make(Shape(16, 16, 18, kCube | kLayered)));
  const CUDA_ARRAY3D_DESCRIPTOR refused[] = {Shape(16, 8, 6, kCube),
                                             Shape(8, 16, 6, kCube),
                                             Shape(16, 0, 6, kCube),
                                             Shape(16, 16, 0, kCube),
                                             Shape(16, 16, 5, kCube),
                                             Shape(16, 16, 12, kCube),
                                             Shape(40000, 40000, 6, kCube),
                                             Shape(16, 16, 0, kCube | kLayered),
                                             Shape(16, 16, 7, kCube | kLayered),
                                             Shape(16, 16, 2052, kCube | kLayered)};
  for (const CUDA_ARRAY3D_DESCRIPTOR& shape : refused) {
    EXPECT_EQ(Make(shape), CUDA_ERROR_INVALID_VALUE)
        << shape.Width << " " << shape.Height << " " << shape.Depth << " " << shape.Flags;
  }
}

TEST_F(ArrayTest, TexelsAreGatheredOfPlanes) {
  EXPECT_CU(Make(Shape(16, 8, 0, kGather)));
  EXPECT_EQ(Make(Shape(16, 0, 0, kGather)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Make(Shape(16, 8, 4, kGather)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Make(Shape(40000, 8, 0, kGather)), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ArrayTest, CubesAreToldAsTheyWereAskedFor) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = Shape(8, 8, 12, kCube | kLayered);
  CUmipmappedArray levels = nullptr;
  ASSERT_CU(cuMipmappedArrayCreate(&levels, &shape, 9));
  for (unsigned level = 0; level < 4; ++level) {
    CUarray array = nullptr;
    CUDA_ARRAY3D_DESCRIPTOR told = {};
    ASSERT_CU(cuMipmappedArrayGetLevel(&array, levels, level));
    ASSERT_CU(cuArray3DGetDescriptor(&told, array));
    EXPECT_EQ(told.Width, 8u >> level);
    EXPECT_EQ(told.Height, 8u >> level);
    EXPECT_EQ(told.Depth, 12u);  // each level has all the faces
    EXPECT_EQ(told.Flags, kCube | kLayered);
  }
  CUarray none = nullptr;
  EXPECT_EQ(cuMipmappedArrayGetLevel(&none, levels, 4), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuMipmappedArrayDestroy(levels));
}

TEST_F(ArrayTest, FacesAreCopiedAsSlices) {
  constexpr size_t kSize = 4, kFaces = 6;
  const CUDA_ARRAY3D_DESCRIPTOR shape = Shape(kSize, kSize, kFaces, kCube);
  CUarray cube = nullptr;
  ASSERT_CU(cuArray3DCreate(&cube, &shape));
  std::vector<float> texels(kSize * kSize * kFaces), back(kSize * kSize);
  std::iota(texels.begin(), texels.end(), 1.0f);
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = texels.data();
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = cube;
  copy.WidthInBytes = kSize * sizeof(float);
  copy.Height = kSize;
  copy.Depth = kFaces;
  ASSERT_CU(cuMemcpy3D(&copy));
  CUDA_MEMCPY3D face = {};
  face.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  face.srcArray = cube;
  face.srcZ = 4;
  face.dstMemoryType = CU_MEMORYTYPE_HOST;
  face.dstHost = back.data();
  face.WidthInBytes = kSize * sizeof(float);
  face.Height = kSize;
  face.Depth = 1;
  ASSERT_CU(cuMemcpy3D(&face));
  for (size_t i = 0; i < back.size(); ++i) EXPECT_EQ(back[i], texels[4 * kSize * kSize + i]);
  face.srcZ = kFaces;
  EXPECT_EQ(cuMemcpy3D(&face), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuArrayDestroy(cube));
}

}  // namespace
}  // namespace softgpu
