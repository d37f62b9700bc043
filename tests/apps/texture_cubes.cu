// Cube maps as textures and surfaces, gathered texels, and levels of detail from gradients. For
// devices with texture units.
#include <algorithm>
#include <cmath>
#include <vector>

#include "check.h"

constexpr int kSize = 16, kFaces = 6;
constexpr float kFilter = 1.0f / 128;  // twice a filter's eight bits of fraction

// What a face's coordinates s and t, from -1 to 1, are as a direction.
__device__ float3 DirectionOf(int face, float s, float t) {
  switch (face) {
    case 0:
      return make_float3(1, -t, -s);
    case 1:
      return make_float3(-1, -t, s);
    case 2:
      return make_float3(s, 1, t);
    case 3:
      return make_float3(s, -1, -t);
    case 4:
      return make_float3(s, -t, 1);
    default:
      return make_float3(-s, -t, -1);
  }
}

// A layer for each block in y; without layers `layered` is false.
__global__ void ReadCube(cudaTextureObject_t cube, bool layered, float shift, float level,
                         float* out) {
  const int x = threadIdx.x, y = threadIdx.y, face = blockIdx.x;
  const float3 at =
      DirectionOf(face, (x + 0.5f + shift) / (kSize / 2) - 1, (y + 0.5f + shift) / (kSize / 2) - 1);
  float* to = out + ((blockIdx.y * kFaces + face) * kSize + y) * kSize + x;
  *to = layered ? texCubemapLayeredLod<float>(cube, 3 * at.x, 3 * at.y, 3 * at.z, blockIdx.y, level)
                : texCubemap<float>(cube, at.x, at.y, at.z);
}

__global__ void AddToFaces(cudaSurfaceObject_t surface, bool layered) {
  const int bytes = threadIdx.x * sizeof(float), y = threadIdx.y, face = blockIdx.x;
  float value;
  if (layered) {
    surfCubemapLayeredread(&value, surface, bytes, y, face);
    surfCubemapLayeredwrite(value + face, surface, bytes, y, face);
  } else {
    surfCubemapread(&value, surface, bytes, y, face);
    surfCubemapwrite(value + face, surface, bytes, y, face);
  }
}

__global__ void Gathered(cudaTextureObject_t plane, float offset, float4* out) {
  const int x = threadIdx.x, y = threadIdx.y;
  const float u = (x + offset) / kSize, v = (y + offset) / kSize;
  out[2 * (y * kSize + x)] = tex2Dgather<float4>(plane, u, v, 0);
  out[2 * (y * kSize + x) + 1] = tex2Dgather<float4>(plane, u, v, 1);
}

// Each lane steps half as far again as the one before, along x or, if odd, along y: one gradient
// much longer than the other, since devices blend those of similar lengths.
__global__ void OfGradients(cudaTextureObject_t line, cudaTextureObject_t plane,
                            cudaTextureObject_t solid, cudaTextureObject_t planes, float* out) {
  const int lane = threadIdx.x;
  const float step = exp2f(lane * 0.5f) / kSize;
  const float2 flat = lane % 2 ? make_float2(0, step) : make_float2(step, 0);
  const float4 deep = make_float4(0, 0, step, 0), none = make_float4(0, 0, 0, 0);
  const float2 small = make_float2(step / 4, 0);
  out[lane] = tex1DGrad<float>(line, 0.5f, lane % 2 ? 0 : step, lane % 2 ? -step : 0);
  out[8 + lane] = tex2DGrad<float>(plane, 0.5f, 0.5f, small, flat);
  out[16 + lane] = tex3DGrad<float>(solid, 0.5f, 0.5f, 0.5f, none, deep);
  out[24 + lane] = tex2DLayeredGrad<float>(planes, 0.5f, 0.5f, 1, flat, small);
}

static void Fill(cudaArray_t array, cudaExtent extent, const float* values, int channels = 1) {
  cudaMemcpy3DParms copy = {};
  copy.srcPtr =
      make_cudaPitchedPtr(const_cast<float*>(values), extent.width * channels * sizeof(float),
                          extent.width, std::max<size_t>(extent.height, 1));
  copy.dstArray = array;
  copy.extent = make_cudaExtent(extent.width, std::max<size_t>(extent.height, 1),
                                std::max<size_t>(extent.depth, 1));
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
}

static std::vector<float> Contents(cudaArray_t array, int slices) {
  std::vector<float> values(kSize * kSize * slices);
  cudaMemcpy3DParms copy = {};
  copy.srcArray = array;
  copy.dstPtr = make_cudaPitchedPtr(values.data(), kSize * sizeof(float), kSize, kSize);
  copy.extent = make_cudaExtent(kSize, kSize, slices);
  copy.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3D(&copy));
  return values;
}

static cudaTextureObject_t TextureOf(const cudaResourceDesc& resource, cudaTextureFilterMode filter,
                                     float most_level = 0) {
  cudaTextureDesc description = {};
  for (cudaTextureAddressMode& mode : description.addressMode) mode = cudaAddressModeClamp;
  description.filterMode = description.mipmapFilterMode = filter;
  description.normalizedCoords = 1;
  description.maxMipmapLevelClamp = most_level;
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  return texture;
}

static cudaResourceDesc Resource(cudaArray_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

static void ExpectNear(const std::vector<float>& found, const std::vector<float>& expected,
                       float tolerance, const char* what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT(std::abs(found[i] - expected[i]) <= tolerance, "%s %zu is %g, not %g", what, i, found[i],
           expected[i]);
  }
}

static std::vector<float> ReadBack(cudaTextureObject_t cube, int layers, float shift = 0,
                                   float level = 0) {
  std::vector<float> found(kSize * kSize * kFaces * std::max(layers, 1));
  float* out;
  CHECK(cudaMalloc(&out, found.size() * sizeof(float)));
  ReadCube<<<dim3(kFaces, std::max(layers, 1)), dim3(kSize, kSize)>>>(cube, layers != 0, shift,
                                                                      level, out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(found.data(), out, found.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(out));
  return found;
}

// layers: 0 of a cube map without any.
static void Cubes(int layers) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  const int slices = kFaces * std::max(layers, 1);
  const cudaExtent extent = make_cudaExtent(kSize, kSize, slices);
  const unsigned flags =
      cudaArrayCubemap | cudaArraySurfaceLoadStore | (layers != 0 ? cudaArrayLayered : 0);
  cudaArray_t array;
  CHECK(cudaMalloc3DArray(&array, &format, extent, flags));
  cudaChannelFormatDesc told_format;
  cudaExtent told;
  unsigned told_flags = 0;
  CHECK(cudaArrayGetInfo(&told_format, &told, &told_flags, array));
  EXPECT(told.width == kSize && told.height == kSize && told.depth == size_t(slices) &&
             (told_flags & flags) == flags,
         "%zu x %zu x %zu, flags %u", told.width, told.height, told.depth, told_flags);
  std::vector<float> values(kSize * kSize * slices);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % kSize + i / kSize % kSize * 4 + i / (kSize * kSize) * 100);
  }
  Fill(array, extent, values.data());
  const cudaTextureObject_t points = TextureOf(Resource(array), cudaFilterModePoint);
  const cudaTextureObject_t filtered = TextureOf(Resource(array), cudaFilterModeLinear);
  ExpectNear(ReadBack(points, layers), values, 0, "texel");
  const std::vector<float> between = ReadBack(filtered, layers, -0.25f);
  for (int y = 1; y < kSize; ++y) {  // within the faces alone
    for (int x = 1; x < kSize; ++x) {
      const float expected = values[y * kSize + x] - 0.25f - 1;
      const float found = between[y * kSize + x];
      EXPECT(std::abs(found - expected) <= 5 * kFilter, "(%d, %d) is %g", x, y, found);
    }
  }
  cudaSurfaceObject_t surface;
  const cudaResourceDesc resource = Resource(array);
  CHECK(cudaCreateSurfaceObject(&surface, &resource));
  AddToFaces<<<slices, dim3(kSize, kSize)>>>(surface, layers != 0);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  for (size_t i = 0; i < values.size(); ++i) values[i] += static_cast<float>(i / (kSize * kSize));
  ExpectNear(Contents(array, slices), values, 0, "written texel");
  CHECK(cudaDestroySurfaceObject(surface));
  CHECK(cudaDestroyTextureObject(points));
  CHECK(cudaDestroyTextureObject(filtered));
  CHECK(cudaFreeArray(array));
}

static void Refused() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr;
  struct {
    cudaExtent extent;
    unsigned flags;
  } const shapes[] = {{{16, 8, 6}, cudaArrayCubemap},
                      {{16, 16, 5}, cudaArrayCubemap},
                      {{16, 16, 12}, cudaArrayCubemap},
                      {{16, 16, 7}, cudaArrayCubemap | cudaArrayLayered}};
  for (const auto& shape : shapes) {
    const cudaError_t code = cudaMalloc3DArray(&array, &format, shape.extent, shape.flags);
    EXPECT(code == cudaErrorInvalidValue, "%zu x %zu x %zu gave %d", shape.extent.width,
           shape.extent.height, shape.extent.depth, code);
  }
  cudaGetLastError();
}

static void Gathers() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float2>();
  const cudaExtent extent = make_cudaExtent(kSize, kSize, 0);
  cudaArray_t array;
  CHECK(cudaMalloc3DArray(&array, &format, extent, cudaArrayTextureGather));
  std::vector<float> values(kSize * kSize * 2);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  Fill(array, extent, values.data(), 2);
  const cudaTextureObject_t texture = TextureOf(Resource(array), cudaFilterModePoint);
  std::vector<float4> found(kSize * kSize * 2);
  float4* out;
  CHECK(cudaMalloc(&out, found.size() * sizeof(float4)));
  for (float offset : {0.0f, 0.25f, 0.75f}) {
    Gathered<<<1, dim3(kSize, kSize)>>>(texture, offset, out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(found.data(), out, found.size() * sizeof(float4), cudaMemcpyDeviceToHost));
    for (int i = 0; i < kSize * kSize * 2; ++i) {
      const int low = offset > 0.5f ? 0 : -1;
      auto texel = [&](int right, int down) {
        const int x = std::clamp(i / 2 % kSize + low + right, 0, kSize - 1);
        const int y = std::clamp(i / 2 / kSize + low + down, 0, kSize - 1);
        return values[(y * kSize + x) * 2 + i % 2];
      };
      const float4& four = found[i];
      EXPECT(four.x == texel(0, 1) && four.y == texel(1, 1) && four.z == texel(1, 0) &&
                 four.w == texel(0, 0),
             "offset %g, element %d: %g %g %g %g", offset, i, four.x, four.y, four.z, four.w);
    }
  }
  CHECK(cudaFree(out));
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFreeArray(array));
}

// A mipmapped array of which every texel holds its level's number, and ten times its layer's.
struct Levels {
  static constexpr unsigned kLevels = 5;  // 16, 8, 4, 2 and 1 texels
  Levels(cudaExtent extent, unsigned flags) {
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocMipmappedArray(&array, &format, extent, kLevels, flags));
    for (unsigned level = 0; level < kLevels; ++level) {
      cudaArray_t one;
      cudaExtent size = extent;
      CHECK(cudaGetMipmappedArrayLevel(&one, array, level));
      size.width >>= level;
      size.height >>= level;
      const bool counts = (flags & (cudaArrayLayered | cudaArrayCubemap)) != 0;
      if (!counts) size.depth >>= level;
      const size_t plane = size.width * std::max<size_t>(size.height, 1);
      std::vector<float> values(plane * std::max<size_t>(size.depth, 1));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(level) + (counts ? static_cast<float>(i / plane) * 10 : 0);
      }
      Fill(one, size, values.data());
    }
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = array;
    texture = TextureOf(resource, cudaFilterModeLinear, kLevels - 1);
  }
  ~Levels() {
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeMipmappedArray(array));
  }
  cudaMipmappedArray_t array;
  cudaTextureObject_t texture;
};

static void Gradients() {
  const Levels line(make_cudaExtent(kSize, 0, 0), 0), plane(make_cudaExtent(kSize, kSize, 0), 0);
  const Levels solid(make_cudaExtent(kSize, kSize, kSize), 0);
  const Levels planes(make_cudaExtent(kSize, kSize, 2), cudaArrayLayered);
  const Levels cubes(make_cudaExtent(kSize, kSize, 2 * kFaces),
                     cudaArrayCubemap | cudaArrayLayered);
  std::vector<float> found(32), expected(32);
  float* out;
  CHECK(cudaMalloc(&out, found.size() * sizeof(float)));
  OfGradients<<<1, 8>>>(line.texture, plane.texture, solid.texture, planes.texture, out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(found.data(), out, found.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; ++i) expected[i] = static_cast<float>(i % 8) / 2 + (i >= 24 ? 10 : 0);
  ExpectNear(found, expected, 0.15f, "level");  // devices take logarithms roughly
  CHECK(cudaFree(out));
  for (float level : {0.0f, 1.0f, 2.5f, 4.0f}) {
    const std::vector<float> read = ReadBack(cubes.texture, 2, 0, level);
    for (size_t i = 0; i < read.size(); ++i) {
      const float value = level + static_cast<float>(i / (kSize * kSize)) * 10;
      EXPECT(std::abs(read[i] - value) <= 0.5f, "level %g of texel %zu is %g", level, i, read[i]);
    }
  }
}

int main() {
  Cubes(0);
  Cubes(2);
  Refused();
  Gathers();
  Gradients();
  return Pass("texture_cubes");
}
