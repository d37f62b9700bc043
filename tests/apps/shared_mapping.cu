// Registered memory that other processes may write. Copies and kernels use it as any pinned memory;
// where the user wants that ("refused"), it has no device address.
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "check.h"

constexpr int kCount = 1 << 12;
constexpr size_t kBytes = kCount * sizeof(unsigned);

__global__ void Add(unsigned* values, unsigned more) {
  values[blockIdx.x * blockDim.x + threadIdx.x] += more;
}

static unsigned* Map(int sharing, int file) {
  const int flags = sharing | (file < 0 ? MAP_ANONYMOUS : 0);
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, flags, file, 0);
  EXPECT(memory != MAP_FAILED, "mmap");
  auto* values = static_cast<unsigned*>(memory);
  CHECK(cudaHostRegister(values, kBytes, cudaHostRegisterPortable | cudaHostRegisterMapped));
  return values;
}

static void CheckCopies(unsigned* pinned, cudaStream_t stream) {
  unsigned* device;
  CHECK(cudaMalloc(&device, kBytes));
  for (int i = 0; i < kCount; ++i) pinned[i] = 3 * i;
  CHECK(cudaMemcpyAsync(device, pinned, kBytes, cudaMemcpyHostToDevice, stream));
  Add<<<kCount / 256, 256, 0, stream>>>(device, 1);
  CHECK(cudaMemcpyAsync(pinned, device, kBytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (int i = 0; i < kCount; ++i) EXPECT(pinned[i] == 3u * i + 1, "%d: %u", i, pinned[i]);
  CHECK(cudaFree(device));
}

static void CheckAddress(unsigned* pinned, cudaStream_t stream, bool works) {
  unsigned* device = nullptr;
  const cudaError_t code = cudaHostGetDevicePointer(&device, pinned, 0);
  EXPECT(code == (works ? cudaSuccess : cudaErrorNotSupported), "the device address gave %d", code);
  cudaGetLastError();
  if (works) {
    for (int i = 0; i < kCount; ++i) pinned[i] = 5 * i;
    Add<<<kCount / 256, 256, 0, stream>>>(device, 2);
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < kCount; ++i) EXPECT(pinned[i] == 5u * i + 2, "%d: %u", i, pinned[i]);
  }
  CHECK(cudaHostUnregister(pinned));
  EXPECT(munmap(pinned, kBytes) == 0, "munmap");
}

template <class Type>
static Type Function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
  return reinterpret_cast<Type>(found);
}
#define DRIVER(name) Function<decltype(&name)>(#name)

// Host memory of the driver's own making is asked for in two steps; the second one says no.
static void CheckHostMemory() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  size_t granularity = 0;
  CUresult code = DRIVER(cuMemGetAllocationGranularity)(&granularity, &properties,
                                                        CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  EXPECT(code == CUDA_SUCCESS && granularity >= 4096, "%d, %zu bytes", code, granularity);
  CUmemGenericAllocationHandle handle;
  code = DRIVER(cuMemCreate)(&handle, granularity, &properties, 0);
  EXPECT(code == CUDA_ERROR_NOT_SUPPORTED, "host memory gave %d", code);
}

int main(int count, char** arguments) {
  const bool refused = count > 1 && std::strcmp(arguments[1], "refused") == 0;
  const int file = memfd_create("shared", 0);
  EXPECT(file >= 0 && ftruncate(file, kBytes) == 0, "memfd_create");
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int sharing : {MAP_SHARED, MAP_PRIVATE}) {
    for (int of : {file, -1}) {
      unsigned* pinned = Map(sharing, of);
      CheckCopies(pinned, stream);
      CheckAddress(pinned, stream, !refused || sharing == MAP_PRIVATE);
    }
  }
  CheckHostMemory();
  return Pass("shared_mapping");
}
