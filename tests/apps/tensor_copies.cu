// Copies of boxes of tensors between memory and shared memory, by tensor maps: in one, two and
// three dimensions, swizzled and not, over the tensor's edges, and of more than one kind of
// element. Boxes start at multiples of 16 bytes along the innermost dimension; others are illegal.
#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstdint>
#include <vector>

#include "check.h"

constexpr int kWidth = 80, kHeight = 44, kDepth = 6;
constexpr int kBox = 32, kRows = 8;

static PFN_cuTensorMapEncodeTiled_v12000 Encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                         cudaEnableDefault, &result));
  EXPECT(result == cudaDriverEntryPointSuccess, "there is no cuTensorMapEncodeTiled");
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
}

struct Shape {
  CUtensorMapDataType type;
  unsigned rank, element;  // bytes
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  cuuint32_t box[3] = {kBox, kRows, 2};
};

static CUtensorMap Map(const Shape& shape, void* memory) {
  const cuuint64_t sizes[] = {kWidth, kHeight, kDepth};
  const cuuint64_t strides[] = {kWidth * shape.element, kWidth * kHeight * shape.element};
  const cuuint32_t steps[] = {1, 1, 1};
  alignas(64) CUtensorMap map;
  const CUresult result =
      Encoder()(&map, shape.type, shape.rank, memory, sizes, strides, shape.box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, shape.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  EXPECT(result == CUDA_SUCCESS, "the map was refused: %d", result);
  return map;
}

static __device__ unsigned SharedAddress(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

static __device__ void ExpectBytes(uint64_t* barrier, unsigned bytes) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SharedAddress(barrier)));
  asm volatile("fence.mbarrier_init.release.cluster;");
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(barrier)),
      "r"(bytes)
      : "memory");
}

static __device__ void Await(uint64_t* barrier) {
  asm volatile(
      "{ .reg .pred over;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], 0;\n"
      "@!over bra again; }" ::"r"(SharedAddress(barrier))
      : "memory");
}

static __device__ void SendAway() {
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

// Each block moves one box: loaded at its place, changed, stored where the other map says. The last
// ones reach over the upper edges; no box is stored before the beginning.
__global__ void MoveBoxes(const __grid_constant__ CUtensorMap from,
                          const __grid_constant__ CUtensorMap to) {
  __shared__ alignas(128) float box[kRows][kBox];
  __shared__ uint64_t barrier;
  const int x = blockIdx.x * kBox, y = blockIdx.y * kRows;
  if (threadIdx.x == 0) {
    ExpectBytes(&barrier, sizeof(box));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];" ::"r"(SharedAddress(box)),
        "l"(&from), "r"(x), "r"(y), "r"(SharedAddress(&barrier))
        : "memory");
  }
  __syncthreads();
  Await(&barrier);
  for (int i = threadIdx.x; i < kRows * kBox; i += blockDim.x) box[i / kBox][i % kBox] += 0.5f;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0) return;
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to),
      "r"(x), "r"(y), "r"(SharedAddress(box))
      : "memory");
  SendAway();
}

static void WithoutSwizzle() {
  const Shape shape = {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, sizeof(float)};
  std::vector<float> host(kWidth * kHeight), moved(host.size());
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i);
  float *from, *to;
  CHECK(cudaMalloc(&from, host.size() * sizeof(float)));
  CHECK(cudaMalloc(&to, host.size() * sizeof(float)));
  CHECK(cudaMemcpy(from, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  MoveBoxes<<<dim3(3, 6), 64>>>(Map(shape, from), Map(shape, to));
  CHECK(cudaMemcpy(moved.data(), to, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < host.size(); ++i) {
    EXPECT(moved[i] == host[i] + 0.5f, "element %zu is %g, not %g", i, moved[i], host[i] + 0.5f);
  }
  CHECK(cudaFree(from));
  CHECK(cudaFree(to));
}

// What a box looks like in shared memory: rows of `span` bytes in which the places of 16 bytes are
// mixed by the number of the row of 128.
__global__ void LoadBox(const __grid_constant__ CUtensorMap map, int x, int y, int z, int* out,
                        unsigned bytes) {
  __shared__ alignas(1024) int box[kRows * 2 * kBox];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    ExpectBytes(&barrier, bytes);
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(SharedAddress(box)),
        "l"(&map), "r"(x), "r"(y), "r"(z), "r"(SharedAddress(&barrier))
        : "memory");
  }
  __syncthreads();
  Await(&barrier);
  for (unsigned i = threadIdx.x; i < bytes / sizeof(int); i += blockDim.x) out[i] = box[i];
}

template <class T>
static T At(const std::vector<T>& tensor, int x, int y, int z) {
  const bool inside = x >= 0 && x < kWidth && y >= 0 && y < kHeight && z >= 0 && z < kDepth;
  return inside ? tensor[(z * kHeight + y) * kWidth + x] : T{0};
}

template <class T>
static void ExpectBox(const Shape& shape, const std::vector<T>& tensor, const std::vector<T>& box,
                      int x, int y, int z) {
  const size_t mixed = shape.swizzle;  // bits: none, 1, 2 or 3
  for (size_t i = 0; i < box.size(); ++i) {
    const int column = i % shape.box[0], row = i / shape.box[0] % shape.box[1];
    const int layer = i / shape.box[0] / shape.box[1];
    size_t at = i * sizeof(T);
    at ^= (at >> 7 & ((1u << mixed) - 1)) << 4;
    const T expected = At(tensor, x + column, y + row, z + layer);
    EXPECT(box[at / sizeof(T)] == expected, "swizzle %d at %d %d %d: element %zu is %d, not %d",
           shape.swizzle, x, y, z, i, int{box[at / sizeof(T)]}, int{expected});
  }
}

template <class T>
static void LoadAt(const Shape& shape) {
  std::vector<T> tensor(kWidth * kHeight * kDepth);
  for (size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<T>(i * 7 + 1);
  const size_t count = shape.box[0] * shape.box[1] * shape.box[2];
  std::vector<T> box(count);
  T* memory;
  int* out;
  CHECK(cudaMalloc(&memory, tensor.size() * sizeof(T)));
  CHECK(cudaMalloc(&out, count * sizeof(T)));
  CHECK(cudaMemcpy(memory, tensor.data(), tensor.size() * sizeof(T), cudaMemcpyHostToDevice));
  const int places[][3] = {{0, 0, 0}, {16, 5, 1}, {-16, -2, -1}, {64, 38, 5}, {112, 0, 0}};
  for (const auto& [x, y, z] : places) {
    LoadBox<<<1, 128>>>(Map(shape, memory), x, y, z, out, static_cast<unsigned>(count * sizeof(T)));
    CHECK(cudaMemcpy(box.data(), out, count * sizeof(T), cudaMemcpyDeviceToHost));
    ExpectBox(shape, tensor, box, x, y, z);
  }
  CHECK(cudaFree(memory));
  CHECK(cudaFree(out));
}

// The context is lost then: no call follows, and what was allocated stays.
static void IllegalPlace() {
  const Shape shape = {CU_TENSOR_MAP_DATA_TYPE_INT32, 3, sizeof(int)};
  const unsigned bytes = kBox * kRows * 2 * sizeof(int);
  void* memory;
  int* out;
  CHECK(cudaMalloc(&memory, kWidth * kHeight * kDepth * sizeof(int)));
  CHECK(cudaMalloc(&out, bytes));
  LoadBox<<<1, 128>>>(Map(shape, memory), 1, 0, 0, out, bytes);
  const cudaError_t code = cudaDeviceSynchronize();
  EXPECT(code == cudaErrorIllegalInstruction, "a box that starts at 4 bytes: %d", code);
}

int main() {
  WithoutSwizzle();
  for (int swizzle = 0; swizzle <= 3; ++swizzle) {
    Shape shape = {CU_TENSOR_MAP_DATA_TYPE_INT32, 3, sizeof(int)};
    shape.swizzle = static_cast<CUtensorMapSwizzle>(swizzle);
    shape.box[0] = swizzle == 1 ? 8 : swizzle == 2 ? 16 : 32;
    LoadAt<int>(shape);
    shape.type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
    shape.element = 1;
    shape.box[0] *= swizzle == 0 ? 1 : 4;
    LoadAt<uint8_t>(shape);
    shape.type = CU_TENSOR_MAP_DATA_TYPE_UINT16;
    shape.element = 2;
    shape.box[0] /= swizzle == 0 ? 1 : 2;
    LoadAt<uint16_t>(shape);
  }
  IllegalPlace();
  return Pass("tensor_copies");
}
