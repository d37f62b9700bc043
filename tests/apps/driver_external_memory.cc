// External memory: what one side exported as a descriptor, imported and mapped as buffers.
#include <fcntl.h>
#include <unistd.h>

#include "driver_program.h"

constexpr size_t kBytes = size_t{4} << 20;

static CUmemGenericAllocationHandle MakeShareable(CUdevice device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle = 0;
  CHECK_DRIVER(cuMemCreate(&handle, kBytes, &properties, 0));
  return handle;
}

static CUdeviceptr MapHere(CUmemGenericAllocationHandle handle, CUdevice device) {
  CUdeviceptr address = 0;
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device},
                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CHECK_DRIVER(cuMemAddressReserve(&address, kBytes, 0, 0, 0));
  CHECK_DRIVER(cuMemMap(address, kBytes, 0, handle, 0));
  CHECK_DRIVER(cuMemSetAccess(address, kBytes, &access, 1));
  return address;
}

static int Export(CUmemGenericAllocationHandle handle) {
  int descriptor = -1;
  CHECK_DRIVER(cuMemExportToShareableHandle(&descriptor, handle,
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  return descriptor;
}

static CUresult Import(int descriptor, size_t bytes, CUexternalMemory* memory) {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC told = {};
  told.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  told.handle.fd = descriptor;
  told.size = bytes;
  return cuImportExternalMemory(memory, &told);
}

static CUresult MapBuffer(CUexternalMemory memory, size_t offset, size_t bytes,
                          CUdeviceptr* address) {
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {};
  buffer.offset = offset;
  buffer.size = bytes;
  return cuExternalMemoryGetMappedBuffer(address, memory, &buffer);
}

static unsigned Read(CUdeviceptr address) {
  unsigned value = 0;
  CHECK_DRIVER(cuMemcpyDtoH(&value, address, sizeof value));
  return value;
}

// The buffers' bytes are the exporter's own, and outlive the handle and the exporter's mapping.
static void Shares(CUdevice device) {
  CUmemGenericAllocationHandle handle = MakeShareable(device);
  CUdeviceptr own = MapHere(handle, device), buffer = 0, same = 0, all = 0;
  CHECK_DRIVER(cuMemsetD32(own, 1, kBytes / 4));
  CUexternalMemory memory = nullptr;
  const int descriptor = Export(handle);
  CHECK_DRIVER(Import(descriptor, kBytes, &memory));
  EXPECT(fcntl(descriptor, F_GETFD) == -1, "the descriptor still belongs to the program");
  CHECK_DRIVER(MapBuffer(memory, 4096, 65536, &buffer));
  CHECK_DRIVER(MapBuffer(memory, 4096, 65536, &same));
  CHECK_DRIVER(MapBuffer(memory, 0, kBytes, &all));
  CHECK_DRIVER(cuMemsetD32(buffer, 7, 16));
  CHECK_DRIVER(cuCtxSynchronize());
  EXPECT(Read(own + 4096) == 7 && Read(own + 4092) == 1, "the exporter sees other bytes");
  EXPECT(Read(same) == 7 && Read(all + 4096) == 7, "other buffers see other bytes");
  CHECK_DRIVER(cuDestroyExternalMemory(memory));
  CHECK_DRIVER(cuMemUnmap(own, kBytes));
  CHECK_DRIVER(cuMemAddressFree(own, kBytes));
  CHECK_DRIVER(cuMemRelease(handle));
  EXPECT(Read(buffer) == 7, "the buffer is gone with its maker");
  CHECK_DRIVER(cuMemFree(buffer));
  EXPECT(Read(all + 4096) == 7, "one buffer's end took another's bytes");
  CHECK_DRIVER(cuMemFree(same));
  CHECK_DRIVER(cuMemFree(all));
  EXPECT_OF_MISTAKE(cuMemFree(all) == CUDA_ERROR_INVALID_VALUE, "a buffer freed twice");
  EXPECT_OF_MISTAKE(cuDestroyExternalMemory(memory) != CUDA_SUCCESS, "destroyed twice");
}

static void Refuses(CUdevice device) {
  CUmemGenericAllocationHandle handle = MakeShareable(device);
  CUexternalMemory memory = nullptr;
  CUdeviceptr address = 0;
  int other = open("/dev/null", O_RDONLY);
  EXPECT(Import(other, kBytes, &memory) != CUDA_SUCCESS, "a descriptor of something else");
  EXPECT_OF_MISTAKE(fcntl(other, F_GETFD) != -1, "a descriptor that was refused was closed");
  EXPECT(Import(-1, kBytes, &memory) != CUDA_SUCCESS, "no descriptor");
  int descriptor = Export(handle);
  EXPECT_OF_MISTAKE(Import(descriptor, 2 * kBytes, &memory) != CUDA_SUCCESS, "more than there is");
  EXPECT(Import(descriptor, 0, &memory) != CUDA_SUCCESS, "no bytes");
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC told = {};
  told.type = static_cast<CUexternalMemoryHandleType>(77);
  told.size = kBytes;
  EXPECT(cuImportExternalMemory(&memory, &told) == CUDA_ERROR_INVALID_VALUE, "no type");
  EXPECT_OF_MISTAKE(cuImportExternalMemory(&memory, nullptr) == CUDA_ERROR_INVALID_VALUE,
                    "nothing told");
  EXPECT_OF_MISTAKE(cuImportExternalMemory(nullptr, &told) == CUDA_ERROR_INVALID_VALUE,
                    "no result");
  CHECK_DRIVER(Import(descriptor, kBytes / 2, &memory));
  EXPECT(MapBuffer(memory, 0, kBytes, &address) == CUDA_ERROR_INVALID_VALUE, "too many bytes");
  EXPECT(MapBuffer(memory, kBytes, 16, &address) == CUDA_ERROR_INVALID_VALUE, "beyond the end");
  EXPECT(MapBuffer(memory, 0, 0, &address) == CUDA_ERROR_INVALID_VALUE, "no bytes");
  EXPECT_OF_MISTAKE(
      MapBuffer(reinterpret_cast<CUexternalMemory>(0x1230), 0, 16, &address) != CUDA_SUCCESS,
      "no external memory");
  CHECK_DRIVER(cuDestroyExternalMemory(memory));
  CHECK_DRIVER(cuMemRelease(handle));
  close(other);
}

int main() {
  CUdevice device = 0;
  CUcontext context = OpenContext(&device);
  Shares(device);
  Shares(device);
  Refuses(device);
  CHECK_DRIVER(cuCtxDestroy(context));
  std::puts("PASS driver_external_memory");
  return 0;
}
