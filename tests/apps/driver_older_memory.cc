// Memory by older calls and by rare ones: pinned memory, values that streams write and wait for,
// pools by place, memory whose copies always wait.
#include <cudaTypedefs.h>

#include <cstring>
#include <vector>

#include "driver_lookup.h"
#include "driver_program.h"

constexpr CUresult kInvalid = CUDA_ERROR_INVALID_VALUE;

static CUstream NewStream() {
  CUstream stream = nullptr;
  CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

static unsigned KindOf(void* pointer) {
  unsigned kind = 0;
  const CUresult result = cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                reinterpret_cast<CUdeviceptr>(pointer));
  return result == CUDA_SUCCESS ? kind : 0;
}

static void Pinned() {
  const auto host_register = Lookup<PFN_cuMemHostRegister_v6050>("cuMemHostRegister", 4000);
  std::vector<unsigned> pages(4096, 7);
  EXPECT(KindOf(pages.data()) == 0, "pageable memory is known");
  CHECK_DRIVER(host_register(pages.data(), pages.size() * 4, CU_MEMHOSTREGISTER_PORTABLE));
  EXPECT(KindOf(&pages[5]) == CU_MEMORYTYPE_HOST, "registered memory is of kind %u",
         KindOf(&pages[5]));
  EXPECT(host_register(pages.data(), 64, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "twice");
  EXPECT(host_register(nullptr, 64, 0) == kInvalid, "no memory");
  CHECK_DRIVER(cuMemHostUnregister(pages.data()));
  EXPECT(KindOf(pages.data()) == 0, "it is known after its end");
  EXPECT_OF_MISTAKE(host_register(pages.data(), 64, 1 << 20) == kInvalid, "unknown flags");

  void* block = nullptr;
  CHECK_DRIVER(cuMemAllocHost(&block, 4096));
  EXPECT(KindOf(block) == CU_MEMORYTYPE_HOST, "pinned memory is of kind %u", KindOf(block));
  CUdeviceptr device = 0;
  CHECK_DRIVER(cuMemAlloc(&device, 4096));
  std::memset(block, 0x5c, 4096);
  CUstream stream = NewStream();
  CHECK_DRIVER(cuMemcpyHtoDAsync(device, block, 4096, stream));
  CHECK_DRIVER(cuStreamSynchronize(stream));
  unsigned found = 0;
  CHECK_DRIVER(cuMemcpyDtoH(&found, device + 4092, sizeof found));
  EXPECT(found == 0x5c5c5c5c, "the last word is %x", found);
  EXPECT(cuMemAllocHost(nullptr, 4096) == kInvalid, "nowhere to write to");
  void* none = block;
  CHECK_DRIVER(cuMemAllocHost(&none, 0));  // no bytes, and no error
  CHECK_DRIVER(cuMemFreeHost(block));
  CHECK_DRIVER(cuMemFree(device));
  CHECK_DRIVER(cuStreamDestroy(stream));
}

// A stream waits for what another one writes, by the first version of these calls.
static void Values() {
  const auto wait32 = Lookup<PFN_cuStreamWaitValue32_v8000>("cuStreamWaitValue32", 8000);
  const auto write32 = Lookup<PFN_cuStreamWriteValue32_v8000>("cuStreamWriteValue32", 8000);
  const auto wait64 = Lookup<PFN_cuStreamWaitValue64_v9000>("cuStreamWaitValue64", 9000);
  const auto write64 = Lookup<PFN_cuStreamWriteValue64_v9000>("cuStreamWriteValue64", 9000);
  const auto batch = Lookup<PFN_cuStreamBatchMemOp_v8000>("cuStreamBatchMemOp", 8000);
  CUstream waits = NewStream(), writes = NewStream();
  CUdeviceptr words = 0;
  CHECK_DRIVER(cuMemAlloc(&words, 64));
  CHECK_DRIVER(cuMemsetD32(words, 0, 16));
  CHECK_DRIVER(cuCtxSynchronize());
  const CUresult waited = wait32(waits, words, 5, CU_STREAM_WAIT_VALUE_EQ);
  // NVIDIA's driver has the first version only with a module parameter.
  if (waited == CUDA_ERROR_NOT_SUPPORTED && !IsSoftwareDevice()) return;
  CHECK_DRIVER(waited);
  CHECK_DRIVER(wait64(waits, words + 8, uint64_t{1} << 40, CU_STREAM_WAIT_VALUE_GEQ));
  CHECK_DRIVER(write32(waits, words + 16, 111, CU_STREAM_WRITE_VALUE_DEFAULT));
  CHECK_DRIVER(write64(waits, words + 24, ~uint64_t{0} - 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  EXPECT(cuStreamQuery(waits) == CUDA_ERROR_NOT_READY, "nobody waited");
  CHECK_DRIVER(write32(writes, words, 5, 0));
  CHECK_DRIVER(cuStreamSynchronize(writes));
  EXPECT(cuStreamQuery(waits) == CUDA_ERROR_NOT_READY, "the second wait ended");
  CUstreamBatchMemOpParams both[2] = {};
  both[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  both[0].writeValue.address = words + 8;
  both[0].writeValue.value64 = (uint64_t{1} << 40) + 3;
  both[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  both[1].writeValue.address = words + 32;
  both[1].writeValue.value = 222;
  CHECK_DRIVER(batch(writes, 2, both, 0));
  CHECK_DRIVER(cuStreamSynchronize(waits));
  CHECK_DRIVER(cuStreamSynchronize(writes));
  unsigned found[16];
  CHECK_DRIVER(cuMemcpyDtoH(found, words, sizeof found));
  EXPECT(found[4] == 111 && found[6] == 0xfffffffe && found[7] == 0xffffffff && found[8] == 222,
         "written were %u, %x %x and %u", found[4], found[6], found[7], found[8]);
  EXPECT(write32(writes, words + 2, 1, 0) == kInvalid, "an address between words");
  EXPECT(write64(writes, words + 4, 1, 0) == kInvalid, "an address between long words");
  EXPECT(wait32(waits, 0x1000, 1, 0) == kInvalid, "nobody's memory");
  EXPECT(wait64(waits, 0x1000, 1, 0) == kInvalid, "nobody's memory");
  EXPECT(batch(writes, 2, nullptr, 0) == kInvalid, "no operations");
  // Nothing of a batch is done if one of it is wrong.
  both[0].writeValue.value64 = 0;
  both[1].writeValue.address = 0x1000;
  EXPECT(batch(writes, 2, both, 0) == kInvalid, "nobody's memory");
  both[1].operation = static_cast<CUstreamBatchMemOpType>(99);
  EXPECT(batch(writes, 2, both, 0) == kInvalid, "an unknown operation");
  CHECK_DRIVER(cuStreamSynchronize(writes));
  uint64_t kept = 0;
  CHECK_DRIVER(cuMemcpyDtoH(&kept, words + 8, sizeof kept));
  EXPECT(kept == (uint64_t{1} << 40) + 3, "a refused batch wrote %llx",
         static_cast<unsigned long long>(kept));
  CHECK_DRIVER(cuMemFree(words));
  for (CUstream stream : {waits, writes}) CHECK_DRIVER(cuStreamDestroy(stream));
}

static void Pools(CUdevice device) {
  CUmemLocation here = {}, host = {};
  here.type = CU_MEM_LOCATION_TYPE_DEVICE;
  here.id = device;
  host.type = CU_MEM_LOCATION_TYPE_INVALID;
  constexpr auto kPinned = CU_MEM_ALLOCATION_TYPE_PINNED;
  CUmemoryPool usual = nullptr, now = nullptr, own = nullptr, same = nullptr;
  CHECK_DRIVER(cuMemGetDefaultMemPool(&usual, &here, kPinned));
  CHECK_DRIVER(cuDeviceGetDefaultMemPool(&same, device));
  CHECK_DRIVER(cuMemGetMemPool(&now, &here, kPinned));
  EXPECT(usual == same && usual == now && usual != nullptr, "%p, %p and %p", usual, same, now);
  CUmemPoolProps props = {};
  props.allocType = kPinned;
  props.location = here;
  CHECK_DRIVER(cuMemPoolCreate(&own, &props));
  CHECK_DRIVER(cuMemSetMemPool(&here, kPinned, own));
  CHECK_DRIVER(cuMemGetMemPool(&now, &here, kPinned));
  CHECK_DRIVER(cuDeviceGetMemPool(&same, device));
  EXPECT(now == own && same == own, "the pool in use is %p or %p, not %p", now, same, own);
  CUstream stream = NewStream();
  CUdeviceptr memory = 0;
  unsigned found = 0;
  CHECK_DRIVER(cuMemAllocAsync(&memory, 4096, stream));
  CHECK_DRIVER(cuMemsetD32Async(memory, 31, 1024, stream));
  CHECK_DRIVER(cuMemcpyDtoHAsync(&found, memory + 4092, sizeof found, stream));
  CHECK_DRIVER(cuMemFreeAsync(memory, stream));
  CHECK_DRIVER(cuStreamSynchronize(stream));
  EXPECT(found == 31, "memory of the pool holds %u", found);
  EXPECT(cuMemGetMemPool(&now, &host, kPinned) != CUDA_SUCCESS, "nowhere");
  EXPECT(cuMemGetDefaultMemPool(&now, nullptr, kPinned) == kInvalid, "no place");
  EXPECT(cuMemGetDefaultMemPool(&now, &here, CU_MEM_ALLOCATION_TYPE_INVALID) == kInvalid, "a kind");
  EXPECT(cuMemSetMemPool(&here, kPinned, nullptr) == kInvalid, "no pool");
  CHECK_DRIVER(cuMemSetMemPool(&here, kPinned, usual));
  CHECK_DRIVER(cuMemPoolDestroy(own));
  here.id = 99;
  EXPECT(cuMemGetMemPool(&now, &here, kPinned) != CUDA_SUCCESS, "no device");
  EXPECT(cuMemSetMemPool(&here, kPinned, usual) != CUDA_SUCCESS, "no device");
  CHECK_DRIVER(cuStreamDestroy(stream));
}

// A copy between device memories returns before it is made, unless the memory wants it otherwise.
static void CopiesThatWait() {
  constexpr auto kWait = CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
  CUdeviceptr from = 0, to = 0;
  unsigned on = 1, off = 0;
  int told = 0;
  CHECK_DRIVER(cuMemAlloc(&from, 4096));
  CHECK_DRIVER(cuMemAlloc(&to, 4096));
  CHECK_DRIVER(cuPointerGetAttribute(&told, kWait, to));
  EXPECT(told == 0, "it is on from the start");
  CHECK_DRIVER(cuPointerSetAttribute(&on, kWait, to + 8));
  CHECK_DRIVER(cuPointerGetAttribute(&told, kWait, to));
  EXPECT(told == 1, "it is not on");
  told = 0;
  CHECK_DRIVER(cuPointerGetAttribute(&told, kWait, from));
  EXPECT(told == 0, "it is on for other memory");
  for (int round = 0; round < 20; ++round) {
    CHECK_DRIVER(cuMemsetD8(to, round, 4096));
    CHECK_DRIVER(cuStreamQuery(nullptr));  // all of the legacy stream is done
    CHECK_DRIVER(cuMemcpyDtoD(to, from, 4096));
    CHECK_DRIVER(cuStreamQuery(nullptr));
    CHECK_DRIVER(cuMemcpyDtoD(from, to, 4096));
    CHECK_DRIVER(cuStreamQuery(nullptr));
  }
  CHECK_DRIVER(cuPointerSetAttribute(&off, kWait, to));
  CHECK_DRIVER(cuPointerGetAttribute(&told, kWait, to));
  EXPECT(told == 0, "it is still on");
  EXPECT(cuPointerSetAttribute(nullptr, kWait, to) == kInvalid, "no value");
  EXPECT(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_MAPPED, to) == kInvalid, "not to be set");
  EXPECT(cuPointerSetAttribute(&on, kWait, 0x1000) == kInvalid, "nobody's memory");
  CHECK_DRIVER(cuPointerSetAttribute(&on, kWait, to));
  CHECK_DRIVER(cuMemFree(to));
  EXPECT(cuPointerSetAttribute(&on, kWait, to) == kInvalid, "memory that was freed");
  CHECK_DRIVER(cuMemAlloc(&to, 4096));
  CHECK_DRIVER(cuPointerGetAttribute(&told, kWait, to));
  EXPECT(told == 0, "new memory has it from old memory");
  for (CUdeviceptr memory : {from, to}) CHECK_DRIVER(cuMemFree(memory));
}

int main() {
  CUdevice device = 0;
  CUcontext context = OpenContext(&device);
  Pinned();
  Values();
  Pools(device);
  CopiesThatWait();
  CHECK_DRIVER(cuCtxDestroy(context));
  std::printf("PASS driver_older_memory\n");
  return 0;
}
