// Copies handed over in batches, between every pair of memories, with the sources' orders of
// access, arrays and pitched memory, and the codes of wrong batches.
#include <cstring>
#include <numeric>
#include <vector>

#include "check.h"

constexpr int kPieces = 8;
constexpr size_t kCount = 1 << 14, kBytes = kCount * sizeof(unsigned);

__global__ void AddOne(unsigned* values) { values[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

static cudaMemcpyAttributes Attributes(cudaMemcpySrcAccessOrder order) {
  cudaMemcpyAttributes attributes = {};
  attributes.srcAccessOrder = order;
  return attributes;
}

static void ExpectError(cudaError_t found, cudaError_t wanted, const char* what) {
  EXPECT(found == wanted, "%s gave %d (%s)", what, found, cudaGetErrorString(found));
  cudaGetLastError();
}

static std::vector<unsigned> Numbers(unsigned seed) {
  std::vector<unsigned> numbers(kCount);
  for (size_t i = 0; i < kCount; ++i) numbers[i] = i * 2654435761u + seed;
  return numbers;
}

// Host to device, device to device and back, each in one batch; kernels stand between.
static void CheckPointers(cudaStream_t stream) {
  std::vector<std::vector<unsigned>> source(kPieces), result(kPieces);
  unsigned *first[kPieces], *second[kPieces];
  const void *from[kPieces], *devices[kPieces], *copies[kPieces];
  void *to[kPieces], *on[kPieces], *back[kPieces];
  size_t sizes[kPieces];
  for (int i = 0; i < kPieces; ++i) {
    source[i] = Numbers(i);
    result[i].resize(kCount);
    CHECK(cudaMalloc(&first[i], kBytes));
    CHECK(cudaMalloc(&second[i], kBytes));
    from[i] = source[i].data();
    to[i] = first[i];
    devices[i] = first[i];
    on[i] = second[i];
    copies[i] = second[i];
    back[i] = result[i].data();
    sizes[i] = kBytes;
  }
  cudaMemcpyAttributes during = Attributes(cudaMemcpySrcAccessOrderDuringApiCall);
  cudaMemcpyAttributes in_order[2] = {Attributes(cudaMemcpySrcAccessOrderStream),
                                      Attributes(cudaMemcpySrcAccessOrderAny)};
  size_t zero = 0, halves[2] = {0, kPieces / 2};
  CHECK(cudaMemcpyBatchAsync(to, from, sizes, kPieces, &during, &zero, 1, stream));
  for (auto& numbers : source) std::memset(numbers.data(), 0xee, kBytes);  // they were read
  for (unsigned* values : first) AddOne<<<kCount / 256, 256, 0, stream>>>(values);
  CHECK(cudaMemcpyBatchAsync(on, devices, sizes, kPieces, in_order, halves, 2, stream));
  for (unsigned* values : second) AddOne<<<kCount / 256, 256, 0, stream>>>(values);
  CHECK(cudaMemcpyBatchAsync(back, copies, sizes, kPieces, in_order, &zero, 1, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (int i = 0; i < kPieces; ++i) {
    const std::vector<unsigned> numbers = Numbers(i);
    for (size_t k = 0; k < kCount; ++k) {
      EXPECT(result[i][k] == numbers[k] + 2, "piece %d: element %zu is %u", i, k, result[i][k]);
    }
  }

  ExpectError(cudaMemcpyBatchAsync(to, from, sizes, kPieces, &during, &zero, 1, cudaStreamLegacy),
              cudaErrorInvalidValue, "the default stream");
  ExpectError(cudaMemcpyBatchAsync(to, from, sizes, kPieces, &during, &zero, 0, stream),
              cudaErrorInvalidValue, "no attributes");
  size_t behind[2] = {0, kPieces}, one = 1;
  ExpectError(cudaMemcpyBatchAsync(to, from, sizes, kPieces, in_order, behind, 2, stream),
              cudaErrorInvalidValue, "attributes behind the last copy");
  ExpectError(cudaMemcpyBatchAsync(to, from, sizes, kPieces, &during, &one, 1, stream),
              cudaErrorInvalidValue, "a first copy without attributes");
  cudaMemcpyAttributes none = {};
  ExpectError(cudaMemcpyBatchAsync(to, from, sizes, kPieces, &none, &zero, 1, stream),
              cudaErrorInvalidValue, "no order of access");
  for (int i = 0; i < kPieces; ++i) {
    CHECK(cudaFree(first[i]));
    CHECK(cudaFree(second[i]));
  }
}

static cudaMemcpy3DOperand Pointer(void* pointer, size_t row, size_t layer) {
  cudaMemcpy3DOperand operand = {};
  operand.type = cudaMemcpyOperandTypePointer;
  operand.op.ptr.ptr = pointer;
  operand.op.ptr.rowLength = row;
  operand.op.ptr.layerHeight = layer;
  return operand;
}

static cudaMemcpy3DOperand Array(cudaArray_t array, size_t x, size_t y, size_t z) {
  cudaMemcpy3DOperand operand = {};
  operand.type = cudaMemcpyOperandTypeArray;
  operand.op.array.array = array;
  operand.op.array.offset = {x, y, z};
  return operand;
}

// A box from the host into an array at an offset, and from there into padded rows on the device.
static void CheckBoxes(cudaStream_t stream) {
  constexpr size_t kWidth = 12, kHeight = 5, kDepth = 3, kRow = 16, kLayer = 6;
  constexpr size_t kArrayWidth = 20, kArrayHeight = 9, kArrayDepth = 4;
  std::vector<unsigned> box(kWidth * kHeight * kDepth), found(kRow * kLayer * kDepth);
  std::iota(box.begin(), box.end(), 100u);
  cudaArray_t array;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned>();
  CHECK(
      cudaMalloc3DArray(&array, &format, make_cudaExtent(kArrayWidth, kArrayHeight, kArrayDepth)));
  unsigned* device;
  CHECK(cudaMalloc(&device, found.size() * sizeof(unsigned)));
  CHECK(cudaMemsetAsync(device, 0xff, found.size() * sizeof(unsigned), stream));
  cudaMemcpy3DBatchOp in = {}, out = {};
  in.src = Pointer(box.data(), 0, 0);
  in.dst = Array(array, 3, 2, 1);
  in.extent = out.extent = make_cudaExtent(kWidth, kHeight, kDepth);
  in.srcAccessOrder = out.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  out.src = Array(array, 3, 2, 1);
  out.dst = Pointer(device, kRow, kLayer);
  CHECK(cudaMemcpy3DBatchAsync(1, &in, 0, stream));
  CHECK(cudaMemcpy3DBatchAsync(1, &out, 0, stream));
  CHECK(cudaMemcpyAsync(found.data(), device, found.size() * sizeof(unsigned),
                        cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (size_t z = 0; z < kDepth; ++z) {
    for (size_t y = 0; y < kLayer; ++y) {
      for (size_t x = 0; x < kRow; ++x) {
        const bool inside = x < kWidth && y < kHeight;
        const unsigned wanted = inside ? box[(z * kHeight + y) * kWidth + x] : 0xffffffffu;
        const unsigned value = found[(z * kLayer + y) * kRow + x];
        EXPECT(value == wanted, "at %zu %zu %zu: %u, not %u", x, y, z, value, wanted);
      }
    }
  }
  in.extent.width = 0;
  ExpectError(cudaMemcpy3DBatchAsync(1, &in, 0, stream), cudaErrorInvalidValue, "an empty box");
  in.extent.width = kArrayWidth;
  ExpectError(cudaMemcpy3DBatchAsync(1, &in, 0, stream), cudaErrorInvalidValue,
              "a box that is wider than the array");
  CHECK(cudaFreeArray(array));
  CHECK(cudaFree(device));
}

int main() {
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CheckPointers(stream);
  CheckBoxes(stream);
  return Pass("batch_copies");
}
