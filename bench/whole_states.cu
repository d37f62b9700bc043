// Whether a kernel that runs sees a state of memory that another one has written in part
// (docs/decisions/0063): it looks at pairs of words all the time, while states are written, each
// greater than the one before, in another order than it looks. The writer is another process,
// or another context of the same one, or, so that the looking is known to find something, another
// stream.
//
//   whole_states device|host WORDS STATES one|contexts|two BLOCKS
//
// Memory of the device, mapped by both processes, or of the host, registered by both.
#include <cuda_runtime.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "driver_check.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kBytes = size_t{64} << 20;

struct Seen {
  unsigned long long looks, torn, changes;
};

__global__ void Look(volatile unsigned* words, unsigned count, volatile unsigned* stop,
                     Seen* seen) {
  unsigned long long looks = 0, torn = 0, changes = 0;
  unsigned last = 0, salt = blockIdx.x * blockDim.x + threadIdx.x;
  while (*stop == 0) {
    salt = salt * 1664525u + 1013904223u;
    const unsigned i = (salt >> 8) % count, j = (salt * 2654435761u >> 8) % count;
    const unsigned first = words[i];
    __threadfence_system();
    const unsigned other = words[j];
    __threadfence_system();
    const unsigned again = words[i];
    ++looks;
    torn += other < first || again < other || first < last;
    changes += again != last;
    last = again;
  }
  atomicAdd(&seen->looks, looks);
  atomicAdd(&seen->torn, torn);
  atomicAdd(&seen->changes, changes);
}

__global__ void Write(volatile unsigned* words, unsigned count, unsigned value) {
  for (int part = 7; part >= 0; --part) {
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
      if ((i & 7) == part) words[i] = value;
    }
    __threadfence_system();
    __syncthreads();
    __nanosleep(1000);
  }
}

void Check(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(code));
  std::exit(1);
}

// One of the two ends of a message with a descriptor.
int Exchange(int socket, int descriptor) {
  char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
  iovec part = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (descriptor < 0) {
    if (recvmsg(socket, &message, 0) != 1 || CMSG_FIRSTHDR(&message) == nullptr) std::exit(1);
    std::memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
    return descriptor;
  }
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  if (sendmsg(socket, &message, 0) != 1) std::exit(1);
  return descriptor;
}

// Maps what the descriptor has; of the device, makes it where that is -1.
unsigned* Map(bool host, int* descriptor) {
  Check(cudaFree(nullptr));  // the context
  if (host) {
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, *descriptor, 0);
    void* mapped = nullptr;
    Check(cudaHostRegister(memory, kBytes, cudaHostRegisterMapped));
    Check(cudaHostGetDevicePointer(&mapped, memory, 0));
    return static_cast<unsigned*>(mapped);
  }
  CUmemAllocationProp kind = {};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  kind.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle memory = 0;
  if (*descriptor < 0) {
    CHECK(cuMemCreate(&memory, kBytes, &kind, 0));
    CHECK(cuMemExportToShareableHandle(descriptor, memory, kind.requestedHandleTypes, 0));
  } else {
    CHECK(cuMemImportFromShareableHandle(
        &memory, reinterpret_cast<void*>(static_cast<intptr_t>(*descriptor)),
        kind.requestedHandleTypes));
  }
  CUdeviceptr place = 0;
  CHECK(cuMemAddressReserve(&place, kBytes, 0, 0, 0));
  CHECK(cuMemMap(place, kBytes, 0, memory, 0));
  const CUmemAccessDesc access = {kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CHECK(cuMemSetAccess(place, kBytes, &access, 1));
  return reinterpret_cast<unsigned*>(place);
}

void WriteStates(unsigned* words, unsigned count, unsigned states, cudaStream_t stream) {
  std::vector<double> took;
  for (unsigned state = 1; state <= states; ++state) {
    const auto begun = Clock::now();
    Write<<<1, 1024, 0, stream>>>(words, count, state);
    Check(cudaStreamSynchronize(stream));
    took.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begun).count());
    usleep(state % 3 * 100);
  }
  std::sort(took.begin(), took.end());
  std::printf("write %.0f us, 90th percentile %.0f\n", took[states / 2], took[states * 9 / 10]);
  std::fflush(stdout);
}

// The memory is where it is in the first context.
void WriteInSecondContext(unsigned* words, unsigned count, unsigned states) {
  CUcontext first = nullptr, second = nullptr;
  CHECK(cuCtxGetCurrent(&first));
  const auto begun = Clock::now();
#if CUDA_VERSION >= 13000
  CHECK(cuCtxCreate(&second, nullptr, 0, 0));
#else
  CHECK(cuCtxCreate(&second, 0, 0));
#endif
  std::printf("second context made in %.0f us\n",
              std::chrono::duration<double, std::micro>(Clock::now() - begun).count());
  WriteStates(words, count, states, nullptr);
  CHECK(cuCtxSetCurrent(first));
}

}  // namespace

int main(int arguments, char** words) {
  if (arguments != 6) return 2;
  const bool host = std::strcmp(words[1], "host") == 0, two = std::strcmp(words[4], "two") == 0;
  const bool contexts = std::strcmp(words[4], "contexts") == 0;
  const unsigned count = std::strtoul(words[2], nullptr, 10);
  const unsigned states = std::strtoul(words[3], nullptr, 10);
  int ends[2], descriptor = host ? memfd_create("states", 0) : -1;
  char byte = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  if (host && ftruncate(descriptor, kBytes) != 0) return 1;
  const pid_t writer = two ? fork() : -1;
  if (writer == 0) {
    descriptor = Exchange(ends[1], -1);
    unsigned* memory = Map(host, &descriptor);
    Write<<<1, 1024>>>(memory, count, 0);
    Check(cudaDeviceSynchronize());
    if (write(ends[1], "r", 1) != 1 || read(ends[1], &byte, 1) != 1) return 1;
    WriteStates(memory, count, states, nullptr);
    return write(ends[1], "d", 1) == 1 ? 0 : 1;
  }
  unsigned *memory = Map(host, &descriptor), *stop = nullptr;
  Seen* seen = nullptr;
  cudaStream_t looks, writes;
  Check(cudaHostAlloc(&seen, sizeof *seen, cudaHostAllocMapped));
  Check(cudaHostAlloc(&stop, sizeof *stop, cudaHostAllocMapped));
  *seen = {};
  *stop = 0;
  Check(cudaStreamCreateWithFlags(&looks, cudaStreamNonBlocking));
  Check(cudaStreamCreateWithFlags(&writes, cudaStreamNonBlocking));
  Write<<<1, 1024>>>(memory, count, 0);  // loads it, too: that would wait for a kernel that runs
  Check(cudaDeviceSynchronize());
  if (two) Exchange(ends[0], descriptor);
  if (two && read(ends[0], &byte, 1) != 1) return 1;
  Look<<<std::strtoul(words[5], nullptr, 10), 256, 0, looks>>>(memory, count, stop, seen);
  usleep(20000);
  if (contexts) WriteInSecondContext(memory, count, states);
  if (!two && !contexts) WriteStates(memory, count, states, writes);
  const bool written = !two || (write(ends[0], "g", 1) == 1 && read(ends[0], &byte, 1) == 1);
  *stop = 1;
  Check(cudaStreamSynchronize(looks));
  std::printf("%s, %u words, %s: %llu looks, %llu changes, %llu torn\n", words[1], count,
              two        ? "two processes"
              : contexts ? "two contexts"
                         : "one process",
              seen->looks, seen->changes, seen->torn);
  if (two) waitpid(writer, nullptr, 0);
  return written ? 0 : 1;
}
