#include "server/keeper/vmm_device.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/try.h"
#include "server/keeper/nvml/device_links.h"

namespace longwire::keeper {
namespace {

// Smaller chunks are zeroed by the driver, even where their pages could be discarded.
constexpr uint64_t kDiscardFrom = uint64_t{8} << 20;
// Of a chunk that is a file, at once.
constexpr size_t kPartBytes = size_t{1} << 20;

// Attributes for tools that open no session, in addition to name and memory.
constexpr CUdevice_attribute kFacts[] = {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                         CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                         CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
                                         CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
                                         CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
                                         CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID,
                                         CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID,
                                         CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
                                         CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
                                         CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
                                         CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                         CU_DEVICE_ATTRIBUTE_COMPUTE_MODE,
                                         CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD};

class VmmDevice : public DeviceMemory {
 public:
  const DeviceIdentity& identity() const override { return identity_; }

  explicit VmmDevice(const LoadedDriver& driver) : driver_(driver.table) {}

  int Open(const std::string& path, int ordinal, std::string* sentence) {
    const char* step = "";
    CUresult result = Initialise(ordinal, &step);
    if (result == CUDA_SUCCESS) {
      identity_.facts.links = LinksOf(path, identity_.facts.uuid);
      return result;
    }
    const char* name = nullptr;
    driver_.cuGetErrorName(result, &name);
    *sentence = "device " + std::to_string(ordinal) + " of " + path + ": " + step + " answers " +
                (name != nullptr ? name : std::to_string(result));
    return result;
  }

  int Create(uint64_t bytes, uint64_t* handle) override {
    CUmemGenericAllocationHandle created = 0;
    CUresult result = driver_.cuMemCreate(&created, bytes, &properties_, 0);
    *handle = created;
    return result;
  }

  int Export(uint64_t handle, wire::Descriptor* descriptor) override {
    int file = -1;
    CUresult result = driver_.cuMemExportToShareableHandle(
        &file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result == CUDA_SUCCESS) descriptor->Reset(file);
    return result;
  }

  uint64_t Used() override {
    size_t free = 0, total = 0;
    driver_.cuCtxSetCurrent(context_);
    bool told = driver_.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS;
    return told && free <= total ? total - free : 0;
  }

  void Release(uint64_t handle) override { driver_.cuMemRelease(handle); }

  int Zero(uint64_t handle, uint64_t bytes) override {
    if (bytes >= kDiscardFrom && Discard(handle, bytes)) return kSuccess;
    return OnMapped(handle, bytes, [&](CUdeviceptr address, CUstream stream) {
      return driver_.cuMemsetD8Async(address, 0, bytes, stream);
    });
  }

  // Large pages where the system has some, touched before they are registered: pinning pages that
  // are there is several times as quick.
  std::byte* Pin(uint64_t bytes) override {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    madvise(data, bytes, MADV_HUGEPAGE);
    std::memset(data, 0, bytes);
    driver_.cuCtxSetCurrent(context_);
    if (driver_.cuMemHostRegister_v2(data, bytes, CU_MEMHOSTREGISTER_PORTABLE) != CUDA_SUCCESS) {
      munmap(data, bytes);
      return nullptr;
    }
    return static_cast<std::byte*>(data);
  }

  int CopyOut(uint64_t handle, uint64_t bytes, std::span<const HostPart> to) override {
    return OnMapped(handle, bytes, [&](CUdeviceptr address, CUstream stream) {
      CUresult result = CUDA_SUCCESS;
      for (const HostPart& part : to) {
        if (result == CUDA_SUCCESS) {
          result = driver_.cuMemcpyDtoHAsync_v2(part.data, address, part.bytes, stream);
        }
        address += part.bytes;
      }
      return result;
    });
  }

  int CopyIn(uint64_t handle, uint64_t bytes, std::span<const HostPart> from) override {
    return OnMapped(handle, bytes, [&](CUdeviceptr address, CUstream stream) {
      CUresult result = CUDA_SUCCESS;
      for (const HostPart& part : from) {
        if (result == CUDA_SUCCESS) {
          result = driver_.cuMemcpyHtoDAsync_v2(address, part.data, part.bytes, stream);
        }
        address += part.bytes;
      }
      return result;
    });
  }

  int Fill(uint64_t handle, uint64_t bytes, const wire::Descriptor& from) override {
    if (FillFile(handle, bytes, from.get())) return kSuccess;
    driver_.cuCtxSetCurrent(context_);
    CUmemGenericAllocationHandle source = 0;
    LONGWIRE_TRY(driver_.cuMemImportFromShareableHandle(
        &source, reinterpret_cast<void*>(intptr_t{from.get()}),
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CUresult result = CUDA_SUCCESS;
    {
      const Mapping read(*this, source, bytes);
      result = read.result();
      if (result == CUDA_SUCCESS) {
        result = OnMapped(handle, bytes, [&](CUdeviceptr written, CUstream stream) {
          return driver_.cuMemcpyDtoDAsync_v2(written, read.address(), bytes, stream);
        });
      }
    }
    driver_.cuMemRelease(source);
    return result;
  }

 private:
  // A driver whose device memory is a memory file of the host (the software device): its pages are
  // discarded and read as zeros. Touching gigabytes instead would take seconds of processor time.
  bool Discard(uint64_t handle, uint64_t bytes) {
    if (!of_files_) return false;
    wire::Descriptor file;
    if (Export(handle, &file) != kSuccess) return false;
    of_files_ = fcntl(file.get(), F_GET_SEALS) >= 0;
    return of_files_ && fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                                  static_cast<off_t>(bytes)) == 0;
  }

  // Of such a driver: what was never written has no pages, and gets none.
  bool FillFile(uint64_t handle, uint64_t bytes, int from) {
    struct stat file {};
    wire::Descriptor to;
    const bool is_chunk = of_files_ && fcntl(from, F_GET_SEALS) >= 0 && fstat(from, &file) == 0 &&
                          file.st_size == static_cast<off_t>(bytes);
    if (!is_chunk || !Discard(handle, bytes) || Export(handle, &to) != kSuccess) return false;
    std::vector<std::byte> part(kPartBytes);
    for (off_t at = 0; (at = lseek(from, at, SEEK_DATA)) >= 0;) {
      const off_t end = lseek(from, at, SEEK_HOLE);
      for (ssize_t got = 0; at < end; at += got) {
        const auto size = std::min<size_t>(part.size(), static_cast<size_t>(end - at));
        got = pread(from, part.data(), size, at);
        if (got <= 0 || pwrite(to.get(), part.data(), static_cast<size_t>(got), at) != got) {
          return false;
        }
      }
      if (end < 0) return false;
    }
    return errno == ENXIO;  // there is no more
  }

  // A chunk, of any device that this one reaches, that is mapped in this process meanwhile.
  class Mapping {
   public:
    Mapping(const VmmDevice& device, uint64_t handle, uint64_t bytes)
        : driver_(device.driver_), bytes_(bytes) {
      result_ = driver_.cuMemAddressReserve(&address_, bytes, 0, 0, 0);
      if (result_ != CUDA_SUCCESS) return;
      result_ = driver_.cuMemMap(address_, bytes, 0, handle, 0);
      is_mapped_ = result_ == CUDA_SUCCESS;
      if (!is_mapped_) return;
      const CUmemAccessDesc access{device.properties_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
      result_ = driver_.cuMemSetAccess(address_, bytes, &access, 1);
    }
    ~Mapping() {
      if (is_mapped_) driver_.cuMemUnmap(address_, bytes_);
      if (address_ != 0) driver_.cuMemAddressFree(address_, bytes_);
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    CUresult result() const { return result_; }
    CUdeviceptr address() const { return address_; }

   private:
    const DriverTable& driver_;
    const uint64_t bytes_;
    CUdeviceptr address_ = 0;
    bool is_mapped_ = false;
    CUresult result_ = CUDA_SUCCESS;
  };

  // Maps the chunk for `work`, which only queues; returns when that is done.
  template <class Work>
  CUresult OnMapped(uint64_t handle, uint64_t bytes, Work work) {
    driver_.cuCtxSetCurrent(context_);
    CUstream stream = nullptr;
    LONGWIRE_TRY(driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUresult result = CUDA_SUCCESS;
    {
      const Mapping mapping(*this, handle, bytes);
      result = mapping.result();
      if (result == CUDA_SUCCESS) {
        result = work(mapping.address(), stream);
        // Also after a failure: what was queued must be over before the memory goes.
        CUresult over = driver_.cuStreamSynchronize(stream);
        if (result == CUDA_SUCCESS) result = over;
      }
    }
    driver_.cuStreamDestroy_v2(stream);
    return result;
  }

  // *step is the function that was called last.
  CUresult Initialise(int ordinal, const char** step) {
    CUdevice device = 0;
    char name[256] = {};
    size_t total = 0;
    size_t granularity = 0;
    CUresult result = CUDA_SUCCESS;
    auto good = [&](const char* function, CUresult answer) {
      *step = function;
      result = answer;
      return answer == CUDA_SUCCESS;
    };
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties_.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
    good("cuInit", driver_.cuInit(0)) &&
        good("cuDeviceGetCount", driver_.cuDeviceGetCount(&identity_.device_count)) &&
        good("cuDeviceGet", driver_.cuDeviceGet(&device, ordinal)) &&
        good("cuDeviceGetName", driver_.cuDeviceGetName(name, sizeof(name) - 1, device)) &&
        good("cuDeviceTotalMem", driver_.cuDeviceTotalMem_v2(&total, device)) &&
        good("cuDevicePrimaryCtxRetain", driver_.cuDevicePrimaryCtxRetain(&context_, device)) &&
        good("cuCtxSetCurrent", driver_.cuCtxSetCurrent(context_)) &&
        good("cuMemGetAllocationGranularity",
             driver_.cuMemGetAllocationGranularity(&granularity, &properties_,
                                                   CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    identity_.name = name;
    identity_.total = total;
    identity_.granularity = granularity;
    if (result == CUDA_SUCCESS) identity_.facts = FactsOf(device);
    return result;
  }

  DeviceFacts FactsOf(CUdevice device) const {
    DeviceFacts facts;
    CUuuid uuid{};
    driver_.cuDeviceGetUuid_v2(&uuid, device);
    facts.uuid.assign(uuid.bytes, sizeof(uuid.bytes));
    for (CUdevice_attribute attribute : kFacts) {
      int value = 0;
      if (driver_.cuDeviceGetAttribute(&value, attribute, device) != CUDA_SUCCESS) continue;
      facts.attributes.push_back({attribute, value});
    }
    AddPeers(device, &facts);
    return facts;
  }

  void AddPeers(CUdevice device, DeviceFacts* facts) const {
    for (CUdevice peer = 0; peer < identity_.device_count; ++peer) {
      int can = 0, atomics = 0;
      if (peer == device || driver_.cuDeviceCanAccessPeer(&can, device, peer) != CUDA_SUCCESS ||
          can == 0) {
        continue;
      }
      facts->peers.push_back(peer);
      constexpr auto kAtomics = CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
      driver_.cuDeviceGetP2PAttribute(&atomics, kAtomics, device, peer);
      if (atomics != 0) facts->atomic_peers.push_back(peer);
    }
  }

  DeviceIdentity identity_;
  std::atomic<bool> of_files_{true};  // false once a descriptor was no memory file
  const DriverTable driver_;
  CUcontext context_ = nullptr;
  CUmemAllocationProp properties_{};
};

}  // namespace

int OpenVmmDevice(const LoadedDriver& driver, int ordinal, std::unique_ptr<DeviceMemory>* device,
                  std::string* sentence) {
  auto opened = std::make_unique<VmmDevice>(driver);
  int code = opened->Open(driver.path, ordinal, sentence);
  *device = code == kSuccess ? std::move(opened) : nullptr;
  return code;
}

}  // namespace longwire::keeper
