// Clusters of blocks: where their blocks are, what they read and write of one another's shared
// memory, barriers and copies across blocks, launches by attribute, by the kernel's own size and
// from graphs, sizes that are refused, and how many fit.
#include <cooperative_groups.h>

#include <vector>

#include "check.h"

namespace cg = cooperative_groups;

// A launch with clusters, or without any if they are empty.
template <class... Parameters, class... Arguments>
static cudaError_t Launch(void (*kernel)(Parameters...), dim3 grid, unsigned threads, dim3 cluster,
                          cudaStream_t stream, Arguments... arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster.x;
  attribute.val.clusterDim.y = cluster.y;
  attribute.val.clusterDim.z = cluster.z;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = threads;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = cluster.x != 0 ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

constexpr dim3 kNone = {0, 0, 0};

template <class T>
struct Memory {
  explicit Memory(size_t count) : count(count) {
    CHECK(cudaMalloc(&device, count * sizeof(T)));
    CHECK(cudaMemset(device, 0, count * sizeof(T)));
  }
  ~Memory() { cudaFree(device); }
  std::vector<T> Read() const {
    std::vector<T> host(count);
    CHECK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }
  size_t count;
  T* device = nullptr;
};

static __device__ unsigned AddressOf(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
static __device__ unsigned AddressIn(unsigned rank, const void* p) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(AddressOf(p)), "r"(rank));
  return there;
}

// The block's barrier waits for one arrival; all blocks of the cluster have one afterwards.
static __device__ void StartBarrier(uint64_t* barrier, unsigned arrivals) {
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(AddressOf(barrier)), "r"(arrivals)
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cg::this_cluster().sync();
}
static __device__ void ExpectBytes(uint64_t* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(AddressOf(barrier)),
               "r"(bytes)
               : "memory");
}
static __device__ void Await(uint64_t* barrier) {
  asm volatile(
      "{ .reg .pred over;\n"
      "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%0], 0;\n"
      "@!over bra again; }" ::"r"(AddressOf(barrier))
      : "memory");
}

// Counts what is not as the grid and the cluster's sides say.
__global__ void CountWrong(dim3 sides, unsigned* wrong, unsigned* blocks) {
  auto cluster = cg::this_cluster();
  auto grid = cg::this_grid();
  const dim3 at = cluster.block_index(), number = grid.cluster_index(), all = grid.dim_clusters();
  const unsigned rank = (at.z * sides.y + at.y) * sides.x + at.x;
  unsigned faults = 0;
  faults += number.x * sides.x + at.x != blockIdx.x || at.x >= sides.x;
  faults += number.y * sides.y + at.y != blockIdx.y || at.y >= sides.y;
  faults += number.z * sides.z + at.z != blockIdx.z || at.z >= sides.z;
  faults += all.x * sides.x != gridDim.x || all.y * sides.y != gridDim.y;
  faults += all.z * sides.z != gridDim.z;
  faults += cluster.block_rank() != rank || cluster.num_blocks() != sides.x * sides.y * sides.z;
  faults += cluster.thread_rank() != rank * blockDim.x + threadIdx.x;
  if (faults != 0) atomicAdd(wrong, faults);
  if (threadIdx.x == 0) atomicAdd(blocks, 1);
}

static void BlocksOfClusters() {
  Memory<unsigned> counts(2);
  unsigned blocks = 0;
  const dim3 grid(8, 12, 4);
  for (dim3 sides : {dim3(2, 1, 1), dim3(8, 1, 1), dim3(1, 4, 1), dim3(2, 3, 1), dim3(1, 1, 4),
                     dim3(2, 2, 2), dim3(1, 1, 1), dim3(4, 2, 1)}) {
    CHECK(Launch(CountWrong, grid, 64, sides, nullptr, sides, counts.device, counts.device + 1));
    const std::vector<unsigned> seen = counts.Read();
    blocks += grid.x * grid.y * grid.z;
    EXPECT(seen[0] == 0 && seen[1] == blocks, "clusters of %u, %u, %u: %u wrong of %u blocks",
           sides.x, sides.y, sides.z, seen[0], seen[1]);
  }
  CountWrong<<<grid, 64>>>(dim3(1, 1, 1), counts.device, counts.device + 1);
  EXPECT(counts.Read()[0] == 0, "without clusters each block is one");
}

// Every block's row goes on to the next block of its cluster, several times.
__global__ void PassOn(int* out, int rounds) {
  __shared__ int box[2][64];
  auto cluster = cg::this_cluster();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  int value = static_cast<int>(blockIdx.x * 64 + threadIdx.x);
  for (int i = 0; i < rounds; ++i) {
    cluster.map_shared_rank(&box[i % 2][0], next)[threadIdx.x] = value;
    cluster.sync();
    value = box[i % 2][threadIdx.x];
  }
  out[blockIdx.x * 64 + threadIdx.x] = value;
}

static void ExpectPassed(const std::vector<int>& out, unsigned size, unsigned rounds) {
  for (unsigned i = 0; i < out.size(); ++i) {
    const unsigned rank = i / 64 % size, first = i / 64 - rank;
    const unsigned from = first + (rank + size * rounds - rounds) % size;
    EXPECT(out[i] == static_cast<int>(from * 64 + i % 64), "clusters of %u: element %u is %d", size,
           i, out[i]);
  }
}

static bool FitsAtAll(unsigned size) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = size;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = 48;
  config.blockDim = 64;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  CHECK(cudaOccupancyMaxActiveClusters(&clusters, PassOn, &config));
  return clusters > 0;
}

static void Rings() {
  Memory<int> out(48 * 64);
  for (unsigned size : {1u, 2u, 3u, 4u, 8u}) {
    CHECK(Launch(PassOn, 48, 64, size, nullptr, out.device, 5));
    ExpectPassed(out.Read(), size, 5);
  }
  EXPECT(Launch(PassOn, 48, 64, 16, nullptr, out.device, 5) == cudaErrorInvalidClusterSize,
         "16 blocks are more than every device has");
  EXPECT(cudaGetLastError() == cudaErrorInvalidClusterSize, "the error is not the last one");
  CHECK(cudaFuncSetAttribute(PassOn, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  if (!FitsAtAll(16)) return;
  CHECK(Launch(PassOn, 48, 64, 16, nullptr, out.device, 5));
  ExpectPassed(out.Read(), 16, 5);
}

// The bins lie in the shared memory of all blocks, kBinsEach in each.
constexpr int kBinsEach = 100;
__global__ void CountValues(const int* values, int count, int* bins) {
  __shared__ int mine[kBinsEach];
  auto cluster = cg::this_cluster();
  for (int i = threadIdx.x; i < kBinsEach; i += blockDim.x) mine[i] = 0;
  cluster.sync();
  const int all = kBinsEach * static_cast<int>(cluster.num_blocks());
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const int bin = values[i] % all;
    atomicAdd(cluster.map_shared_rank(mine, bin / kBinsEach) + bin % kBinsEach, 1);
  }
  cluster.sync();
  for (int i = threadIdx.x; i < kBinsEach; i += blockDim.x) {
    atomicAdd(&bins[cluster.block_rank() * kBinsEach + i], mine[i]);
  }
}

static void Histograms() {
  std::vector<int> values(20000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i * i % 10007);
  Memory<int> device(values.size());
  CHECK(cudaMemcpy(device.device, values.data(), values.size() * sizeof(int),
                   cudaMemcpyHostToDevice));
  for (unsigned size : {2u, 4u, 8u}) {
    Memory<int> bins(kBinsEach * size);
    std::vector<int> expected(bins.count);
    for (int value : values) ++expected[value % expected.size()];
    CHECK(Launch(CountValues, 16, 128, size, nullptr, device.device,
                 static_cast<int>(values.size()), bins.device));
    EXPECT(bins.Read() == expected, "the bins of clusters of %u", size);
  }
}

// Addresses in the window of shared memory and generic ones say the same.
__global__ void AskAddresses(unsigned* wrong) {
  __shared__ int value, count;
  auto cluster = cg::this_cluster();
  const unsigned blocks = cluster.num_blocks(), rank = cluster.block_rank();
  if (threadIdx.x == 0) value = 1000 + rank;
  if (threadIdx.x == 0) count = 0;
  cluster.sync();
  const unsigned other = threadIdx.x % blocks;
  int* there = cluster.map_shared_rank(&value, other);
  int seen;
  unsigned faults = 0, owner, inside;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(seen) : "r"(AddressIn(other, &value)));
  faults += seen != 1000 + static_cast<int>(other) || *there != seen;
  asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(owner) : "r"(AddressIn(other, &value)));
  faults += owner != other || cluster.query_shared_rank(there) != other;
  asm("{ .reg .pred p;\n isspacep.shared::cluster p, %1;\n selp.u32 %0, 1, 0, p; }"
      : "=r"(inside)
      : "l"(there));
  faults += inside != 1 || __isGlobal(there) || __isLocal(there);
  asm volatile("red.shared::cluster.add.u32 [%0], 1;" ::"r"(AddressIn(other, &count)));
  asm volatile("red.shared::cluster.add.u32 [%0], 1;" ::"r"(AddressOf(&count)));
  cluster.sync();
  faults += threadIdx.x == 0 && count != static_cast<int>(2 * blockDim.x);
  if (faults != 0) atomicAdd(wrong, faults);
  cluster.sync();
}

// Some threads never come to the barrier, some come and go; nobody waits for them.
__global__ void LeaveEarly(int* out) {
  __shared__ int value;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) value = 1 + static_cast<int>(cluster.block_rank());
  if (threadIdx.x >= 96) return;
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  int sum = 0;
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
  for (unsigned i = 0; i < cluster.num_blocks(); ++i) sum += *cluster.map_shared_rank(&value, i);
  atomicAdd(&out[blockIdx.x], sum);
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
  if (threadIdx.x >= 32) return;
  asm volatile("barrier.cluster.wait;" ::: "memory");
}

static void Barriers() {
  Memory<unsigned> wrong(1);
  CHECK(Launch(AskAddresses, 16, 64, 4, nullptr, wrong.device));
  EXPECT(wrong.Read()[0] == 0, "%u addresses", wrong.Read()[0]);
  Memory<int> sums(16);
  CHECK(Launch(LeaveEarly, 16, 128, 8, nullptr, sums.device));
  for (int sum : sums.Read()) EXPECT(sum == 96 * 36, "%d, not %d", sum, 96 * 36);
}

// All blocks tell the first one's barrier that they have added to its sum.
__global__ void ArriveRemotely(int* out) {
  __shared__ uint64_t barrier;
  __shared__ int sum;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) sum = 0;
  StartBarrier(&barrier, cluster.num_blocks() * blockDim.x);
  atomicAdd(cluster.map_shared_rank(&sum, 0), static_cast<int>(cluster.block_rank()) + 1);
  asm volatile(
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(AddressIn(0, &barrier))
      : "memory");
  if (cluster.block_rank() == 0) {
    Await(&barrier);
    if (threadIdx.x == 0) out[blockIdx.x / cluster.num_blocks()] = sum;
  }
  cluster.sync();
}

// Numbers into the next block, a row into the one behind that; both tell when they are there.
__global__ void Send(int* out) {
  __shared__ alignas(16) int numbers[4], row[64], copied[64];
  __shared__ unsigned sum;
  __shared__ uint64_t barrier;
  auto cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank(), count = cluster.num_blocks();
  row[threadIdx.x] = static_cast<int>(rank * 64 + threadIdx.x);
  if (threadIdx.x == 0) sum = 1;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  StartBarrier(&barrier, 1);
  if (threadIdx.x == 0) {
    const unsigned next = (rank + 1) % count, last = (rank + 2) % count;
    ExpectBytes(&barrier, sizeof(numbers) + sizeof(sum) + sizeof(row));
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.s32"
        " [%0], {%1, %1, %1, %2}, [%3];" ::"r"(AddressIn(next, numbers)),
        "r"(rank), "r"(99), "r"(AddressIn(next, &barrier))
        : "memory");
    asm volatile(
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32"
        " [%0], %1, [%2];" ::"r"(AddressIn(next, &sum)),
        "r"(rank), "r"(AddressIn(next, &barrier))
        : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
        " [%0], [%1], %2, [%3];" ::"r"(AddressIn(last, copied)),
        "r"(AddressOf(row)), "r"(static_cast<unsigned>(sizeof(row))), "r"(AddressIn(last, &barrier))
        : "memory");
  }
  Await(&barrier);
  out[blockIdx.x * 64 + threadIdx.x] =
      copied[threadIdx.x] + 10000 * numbers[0] + 1000000 * (numbers[3] - 90) + 100000 * (sum - 1);
  cluster.sync();
}

// Each block fetches a row for the next one.
__global__ void FetchForNext(const int* in, int* out) {
  __shared__ alignas(16) int row[64];
  __shared__ uint64_t barrier;
  auto cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank(), next = (rank + 1) % cluster.num_blocks();
  StartBarrier(&barrier, 1);
  if (threadIdx.x == 0) {
    ExpectBytes(&barrier, sizeof(row));
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1], %2, [%3];" ::"r"(AddressIn(next, row)),
        "l"(in + 64 * rank), "r"(static_cast<unsigned>(sizeof(row))), "r"(AddressIn(next, &barrier))
        : "memory");
  }
  Await(&barrier);
  out[blockIdx.x * 64 + threadIdx.x] = row[threadIdx.x];
  cluster.sync();
}

static void Copies() {
  constexpr unsigned kSize = 4;
  Memory<int> sums(4), sent(8 * 64), in(64 * kSize), fetched(64 * kSize);
  CHECK(Launch(ArriveRemotely, 32, 96, 8, nullptr, sums.device));
  for (int sum : sums.Read()) EXPECT(sum == 96 * 36, "%d, not %d", sum, 96 * 36);
  CHECK(Launch(Send, 8, 64, kSize, nullptr, sent.device));
  const std::vector<int> got = sent.Read();
  for (unsigned i = 0; i < got.size(); ++i) {
    const unsigned before = (i / 64 + kSize - 1) % kSize, row = (i / 64 + kSize - 2) % kSize;
    const int expected = static_cast<int>(row * 64 + i % 64 + 110000 * before + 9000000);
    EXPECT(got[i] == expected, "element %u is %d, not %d", i, got[i], expected);
  }
  std::vector<int> rows(in.count);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int>(i + 1);
  CHECK(cudaMemcpy(in.device, rows.data(), rows.size() * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(Launch(FetchForNext, kSize, 64, kSize, nullptr, in.device, fetched.device));
  const std::vector<int> rest = fetched.Read();
  for (unsigned i = 0; i < rest.size(); ++i) {
    const int expected = rows[(i / 64 + kSize - 1) % kSize * 64 + i % 64];
    EXPECT(rest[i] == expected, "element %u is %d, not %d", i, rest[i], expected);
  }
}

// Adds each block's number of blocks in its cluster to what is there.
__global__ void __cluster_dims__(2, 2, 1) AddSize(int* out) {
  if (threadIdx.x == 0) atomicAdd(out, static_cast<int>(cg::this_cluster().num_blocks()));
}
__global__ void __cluster_dims__() AddSizeOfLaunch(int* out) {
  if (threadIdx.x == 0) atomicAdd(out, static_cast<int>(cg::this_cluster().num_blocks()));
}
__global__ void AddSizeOrOne(int* out) {
  if (threadIdx.x == 0) atomicAdd(out, static_cast<int>(cg::this_cluster().num_blocks()));
}

static void OwnSizes() {
  Memory<int> sum(1);
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, AddSize));
  EXPECT(attributes.requiredClusterWidth == 2 && attributes.requiredClusterHeight == 2 &&
             attributes.requiredClusterDepth == 1,
         "the size it was compiled for");
  CHECK(cudaFuncGetAttributes(&attributes, AddSizeOfLaunch));
  EXPECT(attributes.clusterDimMustBeSet == 1 && attributes.requiredClusterWidth == 0, "any size");
  const dim3 grid(4, 4, 2);
  AddSize<<<grid, 32>>>(sum.device);
  CHECK(cudaGetLastError());
  CHECK(Launch(AddSize, grid, 32, dim3(2, 2, 1), nullptr, sum.device));
  CHECK(Launch(AddSizeOfLaunch, grid, 32, dim3(1, 4, 2), nullptr, sum.device));
  CHECK(Launch(AddSizeOrOne, grid, 32, kNone, nullptr, sum.device));
  EXPECT(sum.Read()[0] == 32 * (4 + 4 + 8 + 1), "%d", sum.Read()[0]);
}

static void ExpectRefused(cudaError_t result, const char* what) {
  EXPECT(result == cudaErrorInvalidClusterSize, "%s: %d", what, result);
  EXPECT(cudaGetLastError() == result, "%s: the error is not the last one", what);
}

// The sides that were compiled in may be said again; without any, all may be set and taken back.
static void SetSides() {
  constexpr int kSides[] = {2, 2, 1};
  for (int side = 0; side < 3; ++side) {
    const auto attribute = cudaFuncAttribute(cudaFuncAttributeRequiredClusterWidth + side);
    for (int value : {4, 2, 1, 0}) {
      const cudaError_t set = cudaFuncSetAttribute(AddSize, attribute, value);
      EXPECT(set == (value == kSides[side] ? cudaSuccess : cudaErrorInvalidValue),
             "side %d of a size that was compiled in as %d: %d", side, value, set);
      EXPECT(cudaGetLastError() == set, "side %d: the error is not the last one", side);
      CHECK(cudaFuncSetAttribute(AddSizeOrOne, attribute, value));
    }
  }
}

static void Mistakes() {
  Memory<int> sum(1);
  ExpectRefused(Launch(AddSizeOrOne, 8, 32, 3, nullptr, sum.device), "a grid that is no multiple");
  ExpectRefused(Launch(AddSizeOrOne, 64, 32, 32, nullptr, sum.device), "a cluster of 32 blocks");
  ExpectRefused(Launch(AddSize, dim3(4, 4), 32, dim3(4, 1, 1), nullptr, sum.device),
                "another size than the kernel's");
  AddSize<<<dim3(3, 4), 32>>>(sum.device);
  ExpectRefused(cudaPeekAtLastError(), "a grid that does not fit the kernel");
  const cudaError_t none = Launch(AddSizeOfLaunch, 4, 32, kNone, nullptr, sum.device);
  EXPECT(none != cudaSuccess && cudaGetLastError() == none, "no cluster where one must be");
  EXPECT_OF_MISTAKE(none == cudaErrorInvalidClusterSize, "no cluster where one must be: %d", none);
  CHECK(cudaDeviceSynchronize());
  EXPECT(sum.Read()[0] == 0, "something ran");
}

static void InGraphs() {
  Memory<int> sum(1), passed(48 * 64);
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK(Launch(PassOn, 48, 64, 4, stream, passed.device, 3));
  AddSize<<<dim3(4, 4), 32, 0, stream>>>(sum.device);
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphNode_t node;
  cudaKernelNodeParams params = {};
  int* argument = sum.device;
  void* arguments[] = {&argument};
  params.func = reinterpret_cast<void*>(AddSizeOfLaunch);
  params.gridDim = 16;
  params.blockDim = 32;
  params.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  cudaLaunchAttributeValue value = {};
  value.clusterDim.x = 8;
  value.clusterDim.y = value.clusterDim.z = 1;
  CHECK(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
  value = {};
  CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
  EXPECT(value.clusterDim.x == 8 && value.clusterDim.y == 1, "%u", value.clusterDim.x);
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  ExpectPassed(passed.Read(), 4, 3);
  EXPECT(sum.Read()[0] == 3 * (16 * 4 + 16 * 8), "%d", sum.Read()[0]);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
}

static void Occupancy() {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = 16;
  config.blockDim = 1024;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int processors = 0, two = 0, eight = 0, size = 0;
  CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
  CHECK(cudaOccupancyMaxActiveClusters(&two, AddSizeOrOne, &config));
  attribute.val.clusterDim.x = 8;
  CHECK(cudaOccupancyMaxActiveClusters(&eight, AddSizeOrOne, &config));
  EXPECT(two > 0 && two <= processors && eight > 0 && 4 * eight <= two,
         "%d clusters of 2, %d of 8 blocks", two, eight);
  CHECK(cudaOccupancyMaxPotentialClusterSize(&size, AddSizeOrOne, &config));
  EXPECT(size == 8, "clusters of at most %d", size);
  ExpectRefused(cudaOccupancyMaxPotentialClusterSize(&size, AddSize, &config),
                "the most of another size than the kernel's");
  ExpectRefused(cudaOccupancyMaxActiveClusters(&size, AddSize, &config),
                "how many of another size than the kernel's");
  config.numAttrs = 0;
  ExpectRefused(cudaOccupancyMaxPotentialClusterSize(&size, AddSize, &config), "a grid of one row");
  config.gridDim = dim3(16, 4);
  attribute.val.clusterDim.x = attribute.val.clusterDim.y = 2;
  for (unsigned attributes : {0u, 1u}) {
    config.numAttrs = attributes;
    CHECK(cudaOccupancyMaxPotentialClusterSize(&size, AddSize, &config));
    EXPECT(size == 8, "of a kernel for 4, with %u attributes, clusters of at most %d", attributes,
           size);
  }
}

int main() {
  int clusters = 0;
  CHECK(cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, 0));
  EXPECT(clusters == 1, "the device has no clusters");
  BlocksOfClusters();
  Rings();
  Histograms();
  Barriers();
  Copies();
  OwnSizes();
  Mistakes();
  InGraphs();
  Occupancy();
  SetSides();
  return Pass("cluster_blocks");
}
