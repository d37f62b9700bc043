// Barriers in shared memory, and copies that arrive at them.
#include <cuda/barrier>

using Barrier = cuda::barrier<cuda::thread_scope_block>;

// One half of the block fills a buffer that the other half empties, `rounds` times.
__global__ void hand_over(int* out, int rounds) {
  __shared__ int box[32];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier filled, emptied;
  if (threadIdx.x == 0) {
    init(&filled, blockDim.x);
    init(&emptied, blockDim.x);
  }
  __syncthreads();
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int i = 0; i < rounds; ++i) {
      box[lane] = i * 100 + lane;
      filled.arrive();
      emptied.arrive_and_wait();
    }
  } else {
    int sum = 0;
    for (int i = 0; i < rounds; ++i) {
      filled.arrive_and_wait();
      sum += box[31 - lane];
      emptied.arrive();
    }
    out[lane] = sum;
  }
}

// Threads that drop out are not waited for in the phases behind.
__global__ void drop_out(int* out) {
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  int phases = 0;
  for (unsigned i = 0; i < 8; ++i) {
    if (threadIdx.x % 8 == i) {
      barrier.arrive_and_drop();
      break;
    }
    barrier.arrive_and_wait();
    ++phases;
  }
  out[threadIdx.x] = phases;
}

__device__ unsigned address_of(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}
__device__ bool is_over(const unsigned long long* barrier, unsigned parity) {
  unsigned over;
  asm volatile(
      "{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      " selp.u32 %0, 1, 0, p;\n}"
      : "=r"(over)
      : "r"(address_of(barrier)), "r"(parity)
      : "memory");
  return over != 0;
}

// One thread fetches a row in bulk, all double it, one thread stores it in bulk. out[n] counts what
// the barrier said too early.
__global__ void fetch_rows(const int* in, int* out, unsigned rows, int* early) {
  __shared__ alignas(16) int row[64];
  __shared__ unsigned long long barrier;
  const unsigned at = address_of(&barrier), bytes = sizeof row;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
  }
  __syncthreads();
  for (unsigned i = 0; i < rows; ++i) {
    if (threadIdx.x == 0) {
      unsigned long long state;
      unsigned pending;
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;"
                   : "=l"(state)
                   : "r"(at), "r"(bytes)
                   : "memory");
      asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
      if (is_over(&barrier, i & 1) || pending != 1) ++*early;
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
          "[%3];" ::"r"(address_of(row)),
          "l"(in + i * 64), "r"(bytes), "r"(at)
          : "memory");
    }
    while (!is_over(&barrier, i & 1)) {
    }
    row[threadIdx.x] *= 2;
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile(
          "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + i * 64),
          "r"(address_of(row)), "r"(bytes)
          : "memory");
      asm volatile("cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0;" ::: "memory");
    }
    __syncthreads();
  }
}
