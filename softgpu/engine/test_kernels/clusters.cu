// Clusters of blocks: where a block is, what its neighbours hold, and how they meet.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ unsigned address_of(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}
__device__ unsigned map_address(const void* shared, unsigned rank) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"(address_of(shared)), "r"(rank));
  return there;
}

struct Place {
  uint3 cluster, clusters, block, blocks;
  unsigned rank, count, is_explicit;
};

__global__ void places(Place* out) {
  Place place;
  place.cluster = __clusterIdx();
  place.clusters = __clusterGridDimInClusters();
  place.block = __clusterRelativeBlockIdx();
  place.blocks = __clusterDim();
  place.rank = __clusterRelativeBlockRank();
  place.count = __clusterSizeInBlocks();
  place.is_explicit = __clusterDimIsSpecified();
  if (threadIdx.x != 0) return;
  out[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = place;
}

__global__ void __cluster_dims__(2, 3, 1) compiled_for_six(Place*) {}
__global__ void __cluster_dims__() wants_clusters(Place*) {}
__global__ void __launch_bounds__(128, 1, 4) at_most_four(Place*) {}

// Each block hands its number on, `rounds` times: out[block] is the number of the one before.
__global__ void ring(int* out, int rounds) {
  __shared__ int box[2][32];
  auto cluster = cg::this_cluster();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  int value = blockIdx.x * 100 + threadIdx.x;
  for (int i = 0; i < rounds; ++i) {
    cluster.map_shared_rank(&box[i % 2][0], next)[threadIdx.x] = value;
    cluster.sync();
    value = box[i % 2][threadIdx.x];
  }
  out[blockIdx.x * 32 + threadIdx.x] = value;
}

// Loads, stores and atomics by addresses in the window, and what is asked of addresses.
__global__ void window(int* out, unsigned* asked) {
  __shared__ alignas(16) int wide[4];
  __shared__ int values[32], count;
  auto cluster = cg::this_cluster();
  values[threadIdx.x] = cluster.block_rank() * 1000 + threadIdx.x;
  if (threadIdx.x == 0) count = 0;
  cluster.sync();
  const unsigned lanes_block = threadIdx.x % cluster.num_blocks();
  int value, old;
  asm volatile("ld.shared::cluster.b32 %0, [%1];"
               : "=r"(value)
               : "r"(map_address(&values[threadIdx.x], lanes_block)));
  asm volatile("atom.shared::cluster.add.u32 %0, [%1], 1;"
               : "=r"(old)
               : "r"(map_address(&count, lanes_block)));
  asm volatile("red.shared::cluster.add.u32 [%0], 1;" ::"r"(address_of(&count)));
  if (threadIdx.x == 0) {
    asm volatile("st.shared::cluster.v4.b32 [%0], {%1, %1, %1, %2};" ::"r"(
                     map_address(wide, cluster.num_blocks() - 1 - cluster.block_rank())),
                 "r"(cluster.block_rank()), "r"(7));
  }
  cluster.sync();
  out[blockIdx.x * 32 + threadIdx.x] = value + (threadIdx.x == 0 ? 100000 * count : 0) +
                                       (threadIdx.x == 1 ? 100000 * (wide[0] * 10 + wide[3]) : 0);
  if (threadIdx.x != 0) return;
  const unsigned last = cluster.num_blocks() - 1;
  int* there = cluster.map_shared_rank(values, last);
  unsigned in_block, in_cluster, rank;
  asm("{ .reg .pred p;\n isspacep.shared::cta p, %1;\n selp.u32 %0, 1, 0, p; }"
      : "=r"(in_block)
      : "l"(there));
  asm("{ .reg .pred p;\n isspacep.shared::cluster p, %1;\n selp.u32 %0, 1, 0, p; }"
      : "=r"(in_cluster)
      : "l"(there));
  asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(rank) : "r"(map_address(values, last)));
  const bool same = there == __cvta_shared_to_generic(address_of(there)) &&
                    there == __cvta_shared_to_generic(map_address(values, last));
  unsigned* mine = asked + blockIdx.x * 6;
  mine[0] = in_block;
  mine[1] = in_cluster + 2 * __isLocal(there) + 4 * __isGlobal(there);
  mine[2] = rank;
  mine[3] = cluster.query_shared_rank(there);
  mine[4] = same;
  mine[5] = cluster.query_shared_rank(values);
}

// Every other thread is gone; of the rest some leave after they have arrived. The others find the
// stores of all before the barrier.
__global__ void leave_early(int* out) {
  __shared__ int value;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) value = 5 + cluster.block_rank();
  if (threadIdx.x % 2 == 1) return;
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  if (threadIdx.x >= 64) return;
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
  int sum = 0;
  for (unsigned i = 0; i < cluster.num_blocks(); ++i) sum += *cluster.map_shared_rank(&value, i);
  atomicAdd(&out[blockIdx.x], sum);
  asm volatile("barrier.cluster.arrive.relaxed;\n barrier.cluster.wait;" ::: "memory");
}

__device__ void start(unsigned long long* barrier, unsigned arrivals) {
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(arrivals)
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  cg::this_cluster().sync();
}
__device__ void expect(unsigned long long* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ void await(unsigned long long* barrier, unsigned parity) {
  asm volatile(
      "{ .reg .pred over;\n"
      "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%0], %1;\n"
      "@!over bra again; }" ::"r"(address_of(barrier)),
      "r"(parity)
      : "memory");
}

// The first block waits for all threads of the others.
__global__ void arrive_remotely(int* out) {
  __shared__ unsigned long long barrier;
  __shared__ int sum;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) sum = 0;
  start(&barrier, (cluster.num_blocks() - 1) * blockDim.x);
  if (cluster.block_rank() == 0) {
    await(&barrier, 0);
    if (threadIdx.x == 0) out[blockIdx.x / cluster.num_blocks()] = sum;
  } else {
    atomicAdd(cluster.map_shared_rank(&sum, 0), static_cast<int>(cluster.block_rank()));
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                     map_address(&barrier, 0))
                 : "memory");
  }
  cluster.sync();
}

// st.async and red.async into the next block, and a copy of a row into the one behind it.
__global__ void send(int* out) {
  __shared__ alignas(16) int numbers[4], row[64], copied[64], added[64];
  __shared__ unsigned sum;
  __shared__ unsigned long long barrier;
  auto cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank(), count = cluster.num_blocks();
  if (threadIdx.x == 0) sum = 1;
  row[threadIdx.x] = rank * 64 + threadIdx.x;
  added[threadIdx.x] = 1;
  start(&barrier, 1);
  if (threadIdx.x == 0) {
    const unsigned next = (rank + 1) % count, last = (rank + 2) % count;
    expect(&barrier, 16 + 4 + 2 * sizeof row);
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
        "[%0], {%1, %1, %1, %2}, [%3];" ::"r"(map_address(numbers, next)),
        "r"(rank), "r"(99), "r"(map_address(&barrier, next))
        : "memory");
    asm volatile(
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
        "[%0], %1, [%2];" ::"r"(map_address(&sum, next)),
        "r"(rank), "r"(map_address(&barrier, next))
        : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
        "[%0], [%1], %2, [%3];" ::"r"(map_address(copied, last)),
        "r"(address_of(row)), "r"(static_cast<unsigned>(sizeof row)),
        "r"(map_address(&barrier, last))
        : "memory");
    asm volatile(
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 "
        "[%0], [%1], %2, [%3];" ::"r"(map_address(added, last)),
        "r"(address_of(row)), "r"(static_cast<unsigned>(sizeof row)),
        "r"(map_address(&barrier, last))
        : "memory");
  }
  await(&barrier, 0);
  int* mine = out + blockIdx.x * 67;
  mine[threadIdx.x] = copied[threadIdx.x] + 1000 * (added[threadIdx.x] - copied[threadIdx.x]);
  if (threadIdx.x == 0) {
    mine[64] = numbers[0];
    mine[65] = numbers[3];
    mine[66] = sum;
  }
  cluster.sync();
}

// The first block fetches a row for the blocks that the mask names, and one for the last alone.
__global__ void fetch_for_many(const int* in, int* out, unsigned short mask) {
  __shared__ alignas(16) int row[64], own[64];
  __shared__ unsigned long long barrier;
  auto cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank(), last = cluster.num_blocks() - 1, bytes = sizeof row;
  row[threadIdx.x] = own[threadIdx.x] = 0;
  start(&barrier, 1);
  if (threadIdx.x == 0) {
    expect(&barrier, (mask >> rank & 1) * bytes + (rank == last ? bytes : 0));
    if (rank == 0) {
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
          "[%0], [%1], %2, [%3], %4;" ::"r"(address_of(row)),
          "l"(in), "r"(bytes), "r"(address_of(&barrier)), "h"(mask)
          : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%0], [%1], %2, [%3];" ::"r"(map_address(own, last)),
          "l"(in + 64), "r"(bytes), "r"(map_address(&barrier, last))
          : "memory");
    }
  }
  await(&barrier, 0);
  out[blockIdx.x * 64 + threadIdx.x] = row[threadIdx.x] + 1000 * own[threadIdx.x];
  cluster.sync();
}

struct alignas(64) Map {
  char bytes[128];
};

// The first block fetches a tensor's box for the blocks that the mask names.
__global__ void fetch_box(const __grid_constant__ Map map, int* out, unsigned short mask) {
  __shared__ alignas(128) int box[64];
  __shared__ unsigned long long barrier;
  const unsigned rank = cg::this_cluster().block_rank();
  box[threadIdx.x] = -1;
  start(&barrier, 1);
  if (threadIdx.x == 0) {
    expect(&barrier, (mask >> rank & 1) * sizeof box);
    if (rank == 0) {
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
          ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(address_of(box)),
          "l"(&map), "r"(4), "r"(1), "r"(address_of(&barrier)), "h"(mask)
          : "memory");
    }
  }
  await(&barrier, 0);
  out[blockIdx.x * 64 + threadIdx.x] = box[threadIdx.x];
  cg::this_cluster().sync();
}

// Stores a box, or loads it.
__global__ void move_box(const __grid_constant__ Map map, int x, int y, bool store) {
  __shared__ alignas(128) int box[64];
  __shared__ unsigned long long barrier;
  box[threadIdx.x] = 7;
  start(&barrier, 1);
  if (threadIdx.x == 0 && store) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
            &map),
        "r"(x), "r"(y), "r"(address_of(box))
        : "memory");
    asm volatile("cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0;" ::: "memory");
  } else if (threadIdx.x == 0) {
    expect(&barrier, sizeof box);
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];" ::"r"(address_of(box)),
        "l"(&map), "r"(x), "r"(y), "r"(address_of(&barrier))
        : "memory");
  }
  if (!store) await(&barrier, 0);
}

// One wrong access by one thread.
__global__ void touch(int* out, unsigned rank, int how) {
  __shared__ int values[4];
  values[threadIdx.x % 4] = 7;
  auto cluster = cg::this_cluster();
  cluster.sync();
  const unsigned there = map_address(values, rank);
  int value = 0;
  if (threadIdx.x == 0 && how == 0) {
    asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(value) : "r"(there));
  } else if (threadIdx.x == 0 && how == 1) {
    value = *static_cast<volatile int*>(cluster.map_shared_rank(values, rank));
  } else if (threadIdx.x == 0 && how == 2) {
    asm volatile("ld.shared::cluster.b32 %0, [%1 + 400000];" : "=r"(value) : "r"(there));
  } else if (threadIdx.x == 0 && how == 3) {
    asm volatile("st.shared::cluster.b32 [%0 + 2], %1;" ::"r"(there), "r"(value));
  }
  if (threadIdx.x == 0) out[blockIdx.x] = value;
  cluster.sync();
}

// A block that nobody else comes to meet.
__global__ void meet_alone() {
  if (cg::this_cluster().block_rank() == 0) {
    asm volatile("barrier.cluster.arrive;\n barrier.cluster.wait;");
  } else {
    __shared__ unsigned long long barrier;
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&barrier)));
    }
    asm volatile("bar.sync 1, 64;");  // half of them
  }
}

// Clusters that wait for those behind them.
__global__ void chain(unsigned* turn, int* out) {
  auto cluster = cg::this_cluster();
  const unsigned number = gridDim.x / cluster.num_blocks() - 1 - blockIdx.x / cluster.num_blocks();
  if (threadIdx.x == 0 && cluster.block_rank() == 0) {
    while (*static_cast<volatile unsigned*>(turn) != number) {
    }
    out[number] = static_cast<int>(number);
  }
  cluster.sync();
  if (threadIdx.x == 0 && cluster.block_rank() == cluster.num_blocks() - 1) atomicAdd(turn, 1);
}
