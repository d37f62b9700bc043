// Copies handed over in batches by the calls of CUDA 12.8, which say which copy is the wrong one.
#include <cudaTypedefs.h>

#include <cstdint>
#include <vector>

#include "check.h"

constexpr size_t kCount = 1 << 14, kBytes = kCount * sizeof(unsigned);

template <class Function>
static Function FirstForm(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status;
  CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12080, cudaEnableDefault, &status));
  EXPECT(status == cudaDriverEntryPointSuccess, "%s: status %d", name, status);
  return reinterpret_cast<Function>(found);
}

static std::vector<unsigned> Numbers() {
  std::vector<unsigned> numbers(kCount);
  for (size_t i = 0; i < kCount; ++i) numbers[i] = i * 2654435761u + 77;
  return numbers;
}

static CUdeviceptr Host(const std::vector<unsigned>& numbers) {
  return reinterpret_cast<CUdeviceptr>(numbers.data());
}

static void CheckPointers(cudaStream_t stream, const CUdeviceptr* memory) {
  const auto copy = FirstForm<PFN_cuMemcpyBatchAsync_v12080>("cuMemcpyBatchAsync");
  const std::vector<unsigned> source = Numbers();
  std::vector<unsigned> result(kCount);
  CUdeviceptr to[] = {memory[0], memory[1], Host(result)};
  CUdeviceptr from[] = {Host(source), memory[0], memory[1]};
  size_t sizes[] = {kBytes, kBytes, kBytes}, first = 0, wrong = 0;
  CUmemcpyAttributes in_order = {};
  in_order.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  CUresult code = copy(to, from, sizes, 3, &in_order, &first, 1, &wrong, stream);
  EXPECT(code == CUDA_SUCCESS, "the batch gave %d for copy %zu", code, wrong);
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(result == source, "other numbers came back");
  sizes[1] = 0;
  code = copy(to, from, sizes, 3, &in_order, &first, 1, &wrong, stream);
  EXPECT(code == CUDA_ERROR_INVALID_VALUE && wrong == 1, "code %d for copy %zu", code, wrong);
  code = copy(to, from, sizes, 3, &in_order, &first, 0, &wrong, stream);
  EXPECT(code == CUDA_ERROR_INVALID_VALUE && wrong == SIZE_MAX, "code %d, copy %zu", code, wrong);
}

// 64 rows of 16 words out of 256 each, of what the first batch left; then back.
static void CheckBoxes(cudaStream_t stream, const CUdeviceptr* memory) {
  const auto copy_boxes = FirstForm<PFN_cuMemcpy3DBatchAsync_v12080>("cuMemcpy3DBatchAsync");
  const std::vector<unsigned> source = Numbers();
  std::vector<unsigned> rows(kCount);
  size_t wrong = 0;
  CUDA_MEMCPY3D_BATCH_OP boxes[2] = {};
  for (CUDA_MEMCPY3D_BATCH_OP& box : boxes) {
    box.src.type = box.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    box.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    box.extent = {16 * sizeof(unsigned), 64, 1};
  }
  boxes[0].src.op.ptr.ptr = memory[1] + 32;
  boxes[0].src.op.ptr.rowLength = 256 * sizeof(unsigned);
  boxes[0].dst.op.ptr.ptr = boxes[1].src.op.ptr.ptr = memory[2];
  boxes[1].dst.op.ptr.ptr = Host(rows);
  CUresult code = copy_boxes(2, boxes, &wrong, 0, stream);
  EXPECT(code == CUDA_SUCCESS, "the boxes gave %d for box %zu", code, wrong);
  CHECK(cudaStreamSynchronize(stream));
  for (int i = 0; i < 64 * 16; ++i) {
    const unsigned expected = source[i / 16 * 256 + 8 + i % 16];
    EXPECT(rows[i] == expected, "element %d is %u, not %u", i, rows[i], expected);
  }
  EXPECT(rows[64 * 16] == 0, "more than the box was copied");
  boxes[1].extent.width = 0;
  code = copy_boxes(2, boxes, &wrong, 0, stream);
  EXPECT(code == CUDA_ERROR_INVALID_VALUE && wrong == 1, "code %d for box %zu", code, wrong);
  code = copy_boxes(2, boxes, &wrong, 1, stream);
  EXPECT(code == CUDA_ERROR_INVALID_VALUE, "unknown flags gave %d", code);
  CHECK(cudaStreamSynchronize(stream));
}

int main() {
  cudaStream_t stream;
  CUdeviceptr memory[3] = {};
  CHECK(cudaStreamCreate(&stream));
  for (CUdeviceptr& each : memory) CHECK(cudaMalloc(reinterpret_cast<void**>(&each), kBytes));
  CheckPointers(stream, memory);
  CheckBoxes(stream, memory);
  for (CUdeviceptr each : memory) CHECK(cudaFree(reinterpret_cast<void*>(each)));
  return Pass("batch_first_forms");
}
