// What a program says about managed memory and asks about it: advice, prefetches, discards, the
// attributes of ranges and pointers, and what the driver refuses.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstring>
#include <vector>

#include "check.h"

constexpr size_t kPage = 4096, kBytes = 16 * kPage;

__managed__ int variable = 3;

__global__ void Increment(int* value) { *value += 1; }

#define EXPECT_CODE(call, expected)                        \
  do {                                                     \
    AT_THIS_LINE;                                          \
    const int code = (call);                               \
    EXPECT(code == (expected), "%s gave %d", #call, code); \
  } while (false)

static CUmemLocation Place(CUmemLocationType type, int id) {
  CUmemLocation place{};
  place.type = type;
  place.id = id;
  return place;
}

static const CUmemLocation kDevice = Place(CU_MEM_LOCATION_TYPE_DEVICE, 0);
static const CUmemLocation kHost = Place(CU_MEM_LOCATION_TYPE_HOST, 0);
static const CUmemLocation kNowhere = Place(CU_MEM_LOCATION_TYPE_DEVICE, 77);

static int Ask(CUmem_range_attribute attribute, CUdeviceptr address, size_t bytes) {
  int value = -99;
  CHECK(static_cast<cudaError_t>(
      cuMemRangeGetAttribute(&value, sizeof value, attribute, address, bytes)));
  return value;
}

static void Advice(CUdeviceptr memory) {
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, kBytes) == 0, "read mostly at first");
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory, kBytes) == CU_DEVICE_INVALID,
         "a preferred location at first");
  EXPECT_CODE(cuMemAdvise(memory, 4 * kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice), 0);
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, 4 * kPage) == 1, "the advised pages");
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory + kPage, 10) == 1, "inside them");
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, 5 * kPage) == 0, "one page more");
  EXPECT_CODE(cuMemAdvise(memory + kPage, 1, CU_MEM_ADVISE_UNSET_READ_MOSTLY, kDevice), 0);
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, 4 * kPage) == 0, "one page less");
  EXPECT_CODE(cuMemAdvise(memory, kBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kHost), 0);
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory, kBytes) == CU_DEVICE_CPU,
         "the host is preferred");
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, memory, kBytes) ==
             CU_MEM_LOCATION_TYPE_HOST,
         "the type of the preferred location");
  EXPECT_CODE(cuMemAdvise(memory, kBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kDevice), 0);
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory, kBytes) == 0, "the device is");
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, memory, kBytes) == 0, "its number");
  EXPECT_CODE(cuMemAdvise(memory, kBytes, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, kDevice), 0);
  EXPECT_CODE(cuMemAdvise(memory, kBytes, CU_MEM_ADVISE_SET_ACCESSED_BY, kDevice), 0);
  EXPECT_CODE(cuMemAdvise(memory, kBytes, CU_MEM_ADVISE_SET_ACCESSED_BY, kHost), 0);
  EXPECT_CODE(cuMemAdvise(memory, kPage, CU_MEM_ADVISE_UNSET_ACCESSED_BY, kHost), 0);
  int devices[3] = {};
  CUmem_range_attribute all[] = {CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
                                 CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
  int preferred = 0;
  void* data[] = {devices, &preferred};
  size_t sizes[] = {sizeof devices, sizeof preferred};
  EXPECT_CODE(cuMemRangeGetAttributes(data, sizes, all, 2, memory, kBytes), 0);
  EXPECT(devices[0] == 0 && devices[1] == CU_DEVICE_INVALID && devices[2] == CU_DEVICE_INVALID,
         "accessed by %d %d %d", devices[0], devices[1], devices[2]);
  EXPECT(preferred == CU_DEVICE_INVALID, "preferred is %d", preferred);
}

static void Prefetches(CUdeviceptr memory, cudaStream_t stream) {
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory, kBytes) == CU_DEVICE_INVALID,
         "a prefetch at first");
  EXPECT_CODE(cuMemPrefetchAsync(memory, kBytes, kDevice, 0, stream), 0);
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory, kBytes) == 0, "to the device");
  std::memset(reinterpret_cast<void*>(memory), 0, kBytes);
  Increment<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(memory));
  EXPECT_CODE(cuMemPrefetchAsync(memory, kPage, kHost, 0, stream), 0);
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(*reinterpret_cast<int*>(memory) == 1, "a prefetch lost the kernel's write");
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory, kPage) == CU_DEVICE_CPU,
         "to the host");
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory, kBytes) == CU_DEVICE_INVALID,
         "to different places");
  CUdeviceptr pointers[] = {memory, memory + kPage, memory + 2 * kPage};
  size_t sizes[] = {kPage, kPage, kPage}, firsts[] = {0, 2}, wrong[] = {1, 2};
  CUmemLocation places[] = {kDevice, kHost};
  EXPECT_CODE(cuMemPrefetchBatchAsync(pointers, sizes, 3, places, firsts, 2, 0, stream), 0);
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory, 2 * kPage) == 0,
         "the first two");
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory + 2 * kPage, kPage) ==
             CU_DEVICE_CPU,
         "the last one");
  EXPECT_CODE(cuMemPrefetchBatchAsync(pointers, sizes, 3, places, wrong, 2, 0, stream),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemPrefetchBatchAsync(pointers, sizes, 3, places, firsts, 2, 1, stream),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemPrefetchBatchAsync(pointers, sizes, 3, places, firsts, 2, 0, CU_STREAM_LEGACY),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemDiscardBatchAsync(pointers, sizes, 3, 0, stream), 0);
  EXPECT_CODE(cuMemDiscardAndPrefetchBatchAsync(pointers, sizes, 3, places, firsts, 1, 0, stream),
              0);
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory, 3 * kPage) == 0,
         "discarded and prefetched");
  std::memset(reinterpret_cast<void*>(memory), 9, 3 * kPage);
  Increment<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(memory));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(*reinterpret_cast<int*>(memory) == 0x0909090a, "written after a discard");
}

template <class Function>
static Function* Of(const char* name, unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult query;
  CHECK(cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &query));
  EXPECT(found != nullptr && query == cudaDriverEntryPointSuccess, "%s is not found", name);
  return reinterpret_cast<Function*>(found);
}

// The forms of programs that were built before CUDA 12.2: a device stands for the place.
static void OlderForms(CUdeviceptr memory, cudaStream_t stream) {
  auto* advise = Of<CUresult(CUdeviceptr, size_t, CUmem_advise, CUdevice)>("cuMemAdvise", 8000);
  auto* prefetch =
      Of<CUresult(CUdeviceptr, size_t, CUdevice, CUstream)>("cuMemPrefetchAsync", 8000);
  EXPECT_CODE(advise(memory, kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU), 0);
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory, kPage) == CU_DEVICE_CPU,
         "the older form's place");
  EXPECT_CODE(advise(memory, kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 77),
              CUDA_ERROR_INVALID_DEVICE);
  EXPECT_CODE(prefetch(memory, kPage, 0, stream), 0);
  EXPECT(Ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory, kPage) == 0,
         "the older form's prefetch");
  EXPECT_CODE(prefetch(memory, kPage, 77, stream), CUDA_ERROR_INVALID_DEVICE);
}

static void Pointers(void* memory) {
  cudaPointerAttributes attributes;
  char* inside = static_cast<char*>(memory) + 100;
  CHECK(cudaPointerGetAttributes(&attributes, inside));
  EXPECT(attributes.type == cudaMemoryTypeManaged, "the type is %d", attributes.type);
  EXPECT(attributes.devicePointer == inside && attributes.hostPointer == inside, "the addresses");
  CHECK(cudaPointerGetAttributes(&attributes, &variable));
  EXPECT(attributes.type == cudaMemoryTypeManaged, "a variable's type is %d", attributes.type);
  int managed = -1;
  auto address = reinterpret_cast<CUdeviceptr>(memory);
  EXPECT_CODE(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address), 0);
  EXPECT(managed == 1, "is managed: %d", managed);
  CUdeviceptr base = 0;
  size_t size = 0;
  EXPECT_CODE(cuMemGetAddressRange(&base, &size, address + 100), 0);
  EXPECT(base == address && size == kBytes, "the range has %zu bytes", size);
}

static void Refusals(CUdeviceptr memory, cudaStream_t stream) {
  CUdeviceptr other = 0, ordinary = 0;
  EXPECT_CODE(cuMemAllocManaged(&other, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemAllocManaged(&other, 100, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemAllocManaged(&other, 100, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OF_MISTAKE(
      cuMemAllocManaged(nullptr, 100, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_INVALID_VALUE, "nowhere");
  // More than the device has: natively these are addresses only, until they are touched.
  const CUresult most = cuMemAllocManaged(&other, size_t{1} << 45, CU_MEM_ATTACH_GLOBAL);
  EXPECT(most == CUDA_ERROR_OUT_OF_MEMORY || most == CUDA_SUCCESS, "32 TiB gave %d", most);
  if (most == CUDA_SUCCESS) EXPECT_CODE(cuMemFree(other), 0);
  EXPECT_CODE(cuMemAlloc(&ordinary, kBytes), 0);
  EXPECT_CODE(cuMemAdvise(ordinary, kBytes, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemAdvise(memory, kBytes + 1, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice),
              CUDA_ERROR_INVALID_VALUE);
  // A device that is none: the driver calls it a wrong value, Longwire a wrong device.
  EXPECT(cuMemAdvise(memory, kBytes, CU_MEM_ADVISE_SET_ACCESSED_BY, kNowhere) != CUDA_SUCCESS,
         "advice about no device");
  EXPECT_CODE(cuMemAdvise(memory, kBytes, static_cast<CUmem_advise>(99), kDevice),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemPrefetchAsync(ordinary, kBytes, kDevice, 0, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemPrefetchAsync(memory, 0, kDevice, 0, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemPrefetchAsync(memory, kBytes, kNowhere, 0, stream) != CUDA_SUCCESS, "to no device");
  EXPECT_CODE(cuMemPrefetchAsync(memory, kBytes, kDevice, 1, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OF_MISTAKE(
      cuMemDiscardBatchAsync(&memory, nullptr, 1, 0, stream) == CUDA_ERROR_INVALID_VALUE,
      "no sizes");
  int value = 0;
  EXPECT_CODE(cuMemRangeGetAttribute(&value, 3, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, 1),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, ordinary, 1),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_OF_MISTAKE(cuStreamAttachMemAsync(stream, memory, 0, 0) == CUDA_ERROR_INVALID_VALUE,
                    "attached to nothing");
  EXPECT_OF_MISTAKE(cuStreamAttachMemAsync(stream, memory, kPage, CU_MEM_ATTACH_SINGLE) ==
                        CUDA_ERROR_INVALID_VALUE,
                    "a part");
  EXPECT_OF_MISTAKE(cuStreamAttachMemAsync(CU_STREAM_LEGACY, memory, 0, CU_MEM_ATTACH_SINGLE) ==
                        CUDA_ERROR_INVALID_VALUE,
                    "to the default stream");
  EXPECT_OF_MISTAKE(
      cuStreamAttachMemAsync(stream, ordinary, 0, CU_MEM_ATTACH_SINGLE) == CUDA_ERROR_INVALID_VALUE,
      "ordinary memory");
  EXPECT_CODE(cuStreamAttachMemAsync(stream, memory, kBytes, CU_MEM_ATTACH_SINGLE), 0);
  EXPECT_CODE(cuMemFree(memory + 512), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemFree(reinterpret_cast<CUdeviceptr>(&variable)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemFree(ordinary), 0);
}

int main() {
  void* memory = nullptr;
  CHECK(cudaMallocManaged(&memory, kBytes));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  auto address = reinterpret_cast<CUdeviceptr>(memory);
  Advice(address);
  Prefetches(address, stream);
  OlderForms(address, stream);
  Pointers(memory);
  Refusals(address, stream);
  CHECK(cudaFree(memory));
  EXPECT(cuMemAdvise(address, kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, kDevice) ==
             CUDA_ERROR_INVALID_VALUE,
         "advice for memory that was freed");
  return Pass("managed_hints");
}
