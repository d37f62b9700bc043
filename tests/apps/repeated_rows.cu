// Rows of launches that come again and again, of the same kernels with other parameters: every
// launch runs once, in its stream's order, with its own parameters and sizes, whatever changes
// between the rows. Kernels of all kinds fold what they are given into a word of their stream,
// where a launch that is lost, doubled or out of order cannot go unseen.
#include <vector>

#include "check.h"

constexpr int kLaunches = 75;  // of a row
constexpr int kRounds = 24;
constexpr int kStreams = 3;
constexpr int kDynamicBytes = 64 << 10;

struct Large {
  unsigned values[500];
};

__host__ __device__ inline unsigned Fold(unsigned old, unsigned with) {
  return old * 1664525 + with;
}

__device__ void Write(unsigned* word, unsigned value) {
  if (threadIdx.x == 0 && blockIdx.x == 0) *word = Fold(*word, value);
}

__global__ void Plain(unsigned* word, unsigned value) { Write(word, value + gridDim.x); }

__global__ void TakesMuch(unsigned* word, Large large) {
  Write(word, large.values[0] + large.values[499]);
}

__global__ void SharesStatic(unsigned* word, unsigned value) {
  __shared__ unsigned values[1024];
  values[threadIdx.x] = value + threadIdx.x;
  __syncthreads();
  Write(word, values[blockDim.x - 1]);
}

__global__ void SharesDynamic(unsigned* word, unsigned value) {
  extern __shared__ unsigned dynamic[];
  unsigned last = kDynamicBytes / sizeof(unsigned) - 1;
  dynamic[last - threadIdx.x] = value;
  __syncthreads();
  Write(word, dynamic[last] + 3);
}

__global__ void NeedsLocal(unsigned* word, unsigned value) {
  volatile unsigned local[200];
  for (unsigned i = 0; i < 200; ++i) local[i] = value + i;
  Write(word, local[value % 200]);
}

__global__ void __cluster_dims__(2, 1, 1) Clustered(unsigned* word, unsigned value) {
  Write(word, value + gridDim.x);
}

// Nothing at all to be given.
__device__ unsigned calls;
__global__ void TakesNothing() {
  if (threadIdx.x == 0) atomicAdd(&calls, 1);
}

struct Row {
  cudaStream_t stream = nullptr;
  unsigned* word = nullptr;
  unsigned first = 0;  // of its values
  unsigned expected = 0;
};
static unsigned expected_calls = 0;

static void Launch(Row& row, int place, unsigned value, unsigned blocks) {
  switch (place * place % 7) {  // 0, 1, 2 and 4
    case 0:
      if (place % 2 == 0) {
        Clustered<<<2 * blocks, 32, 0, row.stream>>>(row.word, value);
        row.expected = Fold(row.expected, value + 2 * blocks);
      } else {
        Plain<<<blocks, 32, 0, row.stream>>>(row.word, value);
        row.expected = Fold(row.expected, value + blocks);
      }
      break;
    case 1: {
      Large large{};
      large.values[0] = value;
      large.values[499] = 7 * value;
      TakesMuch<<<1, 32, 0, row.stream>>>(row.word, large);
      row.expected = Fold(row.expected, 8 * value);
      break;
    }
    case 2:
      if (place % 2 == 0) {
        SharesStatic<<<1, 64, 0, row.stream>>>(row.word, value);
        row.expected = Fold(row.expected, value + 63);
      } else {
        SharesDynamic<<<1, 64, kDynamicBytes, row.stream>>>(row.word, value);
        row.expected = Fold(row.expected, value + 3);
      }
      break;
    default:
      if (place % 2 == 0) {
        NeedsLocal<<<2, 32, 0, row.stream>>>(row.word, value);
        row.expected = Fold(row.expected, value + value % 200);
      } else {
        TakesNothing<<<1, 32, 0, row.stream>>>();
        ++expected_calls;
      }
  }
  CHECK(cudaGetLastError());
}

static void Check(const std::vector<Row>& rows, int round) {
  for (const Row& row : rows) {
    unsigned word = 0;
    CHECK(cudaMemcpyAsync(&word, row.word, sizeof word, cudaMemcpyDeviceToHost, row.stream));
    CHECK(cudaStreamSynchronize(row.stream));
    EXPECT(word == row.expected, "round %d: %u is not %u", round, word, row.expected);
  }
}

// What may come between two rows.
static void Change(Row& row, int round) {
  if (round == 14) CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  if (round == 16) {
    CHECK(cudaFuncSetAttribute(Plain, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
  }
  if (round != 18 || row.stream == cudaStreamLegacy) return;
  CHECK(cudaStreamDestroy(row.stream));
  CHECK(cudaStreamCreateWithFlags(&row.stream, cudaStreamNonBlocking));
}

static void Rounds(std::vector<Row>& rows) {
  for (int round = 0; round < kRounds; ++round) {
    for (int place = 0; place < kLaunches; ++place) {
      unsigned blocks = round % 3 == 2 ? 5 : 1;  // now and then other sizes
      for (Row& row : rows) Launch(row, place, place * 31 + round / 2 + row.first, blocks);
    }
    Check(rows, round);
    Change(rows.front(), round);
  }
}

int main() {
  CHECK(cudaFuncSetAttribute(SharesDynamic, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             kDynamicBytes));
  std::vector<Row> rows(kStreams);
  for (Row& row : rows) {
    CHECK(cudaMalloc(&row.word, sizeof(unsigned)));
    CHECK(cudaMemset(row.word, 0, sizeof(unsigned)));
    row.first = static_cast<unsigned>(&row - rows.data());
    if (&row != &rows.front()) {
      CHECK(cudaStreamCreateWithFlags(&row.stream, cudaStreamNonBlocking));
    }
  }
  rows.front().stream = cudaStreamLegacy;
  CHECK(cudaDeviceSynchronize());
  for (Row& row : rows) {  // each alone
    std::vector<Row> one{row};
    Rounds(one);
    row = one.front();
  }
  Rounds(rows);  // and in turn
  unsigned counted = 0;
  CHECK(cudaMemcpyFromSymbol(&counted, calls, sizeof counted));
  EXPECT(counted == expected_calls, "%u launches, not %u", counted, expected_calls);
  return Pass("repeated_rows");
}
