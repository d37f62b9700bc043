// Pinned memory that kernels read and write: through the address that the program asked for, or the
// same one; memory that was registered; and copies, memsets and host functions beside the kernels.
#include <cstring>
#include <vector>

#include "check.h"

constexpr int kCount = 3000;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void AddToAll(int* values, int amount) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) values[i] += amount;
}

__global__ void Sum(const int* values, int* sum) {
  int total = 0;
  for (int i = 0; i < kCount; ++i) total += values[i];
  *sum = total;
}

static void Fill(int* values, int first) {
  for (int i = 0; i < kCount; ++i) values[i] = first + i;
}

static void ExpectFilled(const int* values, int first, const char* what) {
  for (int i = 0; i < kCount; ++i) {
    EXPECT(values[i] == first + i, "%s: element %d is %d, not %d", what, i, values[i], first + i);
  }
}

static void Add(int* values, int amount, cudaStream_t stream = nullptr) {
  AddToAll<<<(kCount + 255) / 256, 256, 0, stream>>>(values, amount);
}

static void Allocated() {
  int *host = nullptr, *device = nullptr;
  CHECK(cudaHostAlloc(&host, kBytes, cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&device, host, 0));
  Fill(host, 0);
  Add(device, 10);
  CHECK(cudaDeviceSynchronize());
  ExpectFilled(host, 10, "through the device pointer");
  // The program may write between launches: the next one reads it.
  int *sums = nullptr, *device_sums = nullptr;
  CHECK(cudaHostAlloc(&sums, 3 * sizeof(int), cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&device_sums, sums, 0));
  for (int launch = 0; launch < 3; ++launch) {
    CHECK(cudaDeviceSynchronize());
    Fill(host, launch);
    Sum<<<1, 1>>>(device, device_sums + launch);
  }
  CHECK(cudaDeviceSynchronize());
  for (int launch = 0; launch < 3; ++launch) {
    const int expected = kCount * (kCount - 1) / 2 + launch * kCount;
    EXPECT(sums[launch] == expected, "sum %d is %d", launch, sums[launch]);
  }
  CHECK(cudaFreeHost(sums));
  CHECK(cudaFreeHost(host));
}

// With unified addresses the pointer itself will do, also of memory that was not asked to be
// mapped.
static void SameAddress() {
  int* host = nullptr;
  CHECK(cudaMallocHost(&host, kBytes));
  Fill(host, 5);
  Add(host, 1);
  CHECK(cudaDeviceSynchronize());
  ExpectFilled(host, 6, "through the same address");
  CHECK(cudaMemset(host, 0, kBytes));
  EXPECT(host[0] == 0 && host[kCount - 1] == 0, "a memset did not reach pinned memory");
  CHECK(cudaFreeHost(host));
  CHECK(cudaMallocHost(&host, kBytes));
  std::memset(host, 1, kBytes);
  CHECK(cudaMemset(host, 7, kBytes));
  const char* bytes = reinterpret_cast<char*>(host);
  for (size_t i = 0; i < kBytes; ++i) EXPECT(bytes[i] == 7, "byte %zu is %d", i, bytes[i]);
  CHECK(cudaFreeHost(host));
}

// Kernels find the memory through a structure on the device; no argument and no call names it.
struct Job {
  const int* values;
  int* sum;
};
__constant__ Job constant_job;

__global__ void DoJob(const Job* job) {
  const Job todo = job != nullptr ? *job : constant_job;
  int total = 0;
  for (int i = 0; i < kCount; ++i) total += todo.values[i];
  *todo.sum = total;
}

static void Stored() {
  Job job, *device = nullptr;
  int* values = nullptr;
  CHECK(cudaMallocHost(&values, kBytes));
  CHECK(cudaHostAlloc(&job.sum, sizeof(int), cudaHostAllocMapped));
  CHECK(cudaMalloc(&device, sizeof(Job)));
  job.values = values;
  for (int round = 0; round < 3; ++round) {
    Fill(values, round);
    *job.sum = -1;
    if (round == 0) CHECK(cudaMemcpy(device, &job, sizeof job, cudaMemcpyHostToDevice));
    if (round == 2) CHECK(cudaMemcpyToSymbol(constant_job, &job, sizeof job));
    DoJob<<<1, 1>>>(round == 2 ? nullptr : device);
    CHECK(cudaDeviceSynchronize());
    const int expected = kCount * (kCount - 1) / 2 + round * kCount;
    EXPECT(*job.sum == expected, "round %d: the sum is %d, not %d", round, *job.sum, expected);
  }
  CHECK(cudaFree(device));
  CHECK(cudaFreeHost(job.sum));
  CHECK(cudaFreeHost(values));
}

static void Registered() {
  std::vector<int> memory(kCount + 3);
  int *host = memory.data() + 1, *device = nullptr;
  memory[0] = memory[kCount + 1] = -1;
  CHECK(cudaHostRegister(host, kBytes, cudaHostRegisterMapped));
  Fill(host, 100);
  CHECK(cudaHostGetDevicePointer(&device, host, 0));
  Add(device, 11);
  CHECK(cudaDeviceSynchronize());
  ExpectFilled(host, 111, "registered");
  EXPECT(memory[0] == -1 && memory[kCount + 1] == -1, "a neighbour was written");
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, host));
  EXPECT(attributes.type == cudaMemoryTypeHost && attributes.devicePointer == device,
         "registered memory is of type %d", attributes.type);
  CHECK(cudaHostUnregister(host));
  Fill(host, 0);  // the program's alone again
  EXPECT(cudaHostGetDevicePointer(&device, host, 0) == cudaErrorInvalidValue,
         "a device pointer of memory that is not registered");
}

static void CUDART_CB Double(void* argument) {
  int* values = static_cast<int*>(argument);
  for (int i = 0; i < kCount; ++i) values[i] *= 2;
}

// Copies and host functions on the same memory keep their place in the stream.
static void BesideCopies() {
  int *host = nullptr, *device = nullptr;
  CHECK(cudaHostAlloc(&host, kBytes, cudaHostAllocMapped));
  CHECK(cudaMalloc(&device, kBytes));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 0; round < 3; ++round) {
    Fill(host, round);
    CHECK(cudaMemcpyAsync(device, host, kBytes, cudaMemcpyHostToDevice, stream));
    Add(device, 1, stream);
    CHECK(cudaMemcpyAsync(host, device, kBytes, cudaMemcpyDeviceToHost, stream));
    Add(host, 1000, stream);
    CHECK(cudaMemcpyAsync(device, host, kBytes, cudaMemcpyHostToDevice, stream));
    CHECK(cudaStreamSynchronize(stream));
    ExpectFilled(host, round + 1001, "after a kernel on copied memory");
    std::vector<int> copied(kCount);
    CHECK(cudaMemcpy(copied.data(), device, kBytes, cudaMemcpyDeviceToHost));
    ExpectFilled(copied.data(), round + 1001, "copied after the kernel");
  }
  for (int i = 0; i < kCount; ++i) host[i] = 1;
  Add(host, 1, stream);
  CHECK(cudaLaunchHostFunc(stream, Double, host));
  Add(host, 1, stream);
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(host[0] == 5 && host[kCount - 1] == 5, "kernel, function, kernel gave %d", host[0]);
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(device));
  CHECK(cudaFreeHost(host));
}

// A range is exposed while a copy into its neighbour is on its way: later copies see that one's
// bytes.
static void BesideAnExposedOne() {
  int *first = nullptr, *second = nullptr, *device = nullptr, *copied = nullptr;
  CHECK(cudaMallocHost(&first, kBytes));
  CHECK(cudaMallocHost(&second, kBytes));
  CHECK(cudaMalloc(&device, kBytes));
  CHECK(cudaMalloc(&copied, kBytes));
  Fill(first, -5);
  std::vector<int> values(kCount);
  Fill(values.data(), 40);
  CHECK(cudaMemcpy(device, values.data(), kBytes, cudaMemcpyHostToDevice));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 0; i < 50; ++i) Add(device, 1, stream);
  CHECK(cudaMemcpyAsync(first, device, kBytes, cudaMemcpyDeviceToHost, stream));
  Add(second, 1, stream);
  CHECK(cudaMemcpyAsync(copied, first, kBytes, cudaMemcpyHostToDevice, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(values.data(), copied, kBytes, cudaMemcpyDeviceToHost));
  ExpectFilled(first, 90, "a neighbour of exposed memory");
  ExpectFilled(values.data(), 90, "copied from it");
  CHECK(cudaStreamDestroy(stream));
  for (int* memory : {device, copied}) CHECK(cudaFree(memory));
  for (int* memory : {first, second}) CHECK(cudaFreeHost(memory));
}

int main() {
  int maps = 0;
  CHECK(cudaDeviceGetAttribute(&maps, cudaDevAttrCanMapHostMemory, 0));
  EXPECT(maps == 1, "the device says it cannot map host memory");
  Allocated();
  SameAddress();
  Stored();
  Registered();
  BesideCopies();
  BesideAnExposedOne();
  return Pass("mapped_memory");
}
