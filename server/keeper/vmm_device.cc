#include "server/keeper/vmm_device.h"

#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "server/keeper/device_links.h"

namespace longwire::keeper {
namespace {

// The CUDA version of the requested entry points: no function used here has changed since.
constexpr int kDriverInterface = 12000;

// Smaller chunks are zeroed by the driver, even where their pages could be discarded.
constexpr uint64_t kDiscardFrom = uint64_t{8} << 20;

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

// The driver's functions, found by name. The members' types come from cuda.h.
struct Functions {
  decltype(&cuInit) init;
  decltype(&cuDeviceGet) device_get;
  decltype(&cuDeviceGetCount) device_get_count;
  decltype(&cuDeviceGetName) device_get_name;
  decltype(&cuDeviceGetUuid) device_get_uuid;
  decltype(&cuDeviceGetAttribute) device_get_attribute;
  decltype(&cuDeviceCanAccessPeer) can_access_peer;
  decltype(&cuDeviceGetP2PAttribute) p2p_attribute;
  decltype(&cuDeviceTotalMem) device_total_memory;
  decltype(&cuDevicePrimaryCtxRetain) primary_context_retain;
  decltype(&cuCtxSetCurrent) context_set_current;
  decltype(&cuMemGetAllocationGranularity) granularity;
  decltype(&cuMemCreate) create;
  decltype(&cuMemRelease) release;
  decltype(&cuMemExportToShareableHandle) export_handle;
  decltype(&cuMemAddressReserve) reserve;
  decltype(&cuMemAddressFree) address_free;
  decltype(&cuMemMap) map;
  decltype(&cuMemUnmap) unmap;
  decltype(&cuMemSetAccess) set_access;
  decltype(&cuMemsetD8Async) memset_async;
  decltype(&cuMemHostRegister) host_register;
  decltype(&cuMemcpyDtoHAsync) copy_to_host;
  decltype(&cuMemcpyHtoDAsync) copy_to_device;
  decltype(&cuStreamCreate) stream_create;
  decltype(&cuStreamDestroy) stream_destroy;
  decltype(&cuStreamSynchronize) stream_synchronize;
  decltype(&cuGetErrorName) error_name;
};

// False with the name of the first function that the library lacks.
bool Load(void* library, Functions* functions, std::string* missing) {
  auto get = reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t,
                                           CUdriverProcAddressQueryResult*)>(
      dlsym(library, "cuGetProcAddress_v2"));
  auto find = [&](const char* name, auto* function) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    if (get == nullptr || get(name, &found, kDriverInterface, 0, &status) != CUDA_SUCCESS ||
        found == nullptr) {
      *missing = name;
      return false;
    }
    *reinterpret_cast<void**>(function) = found;
    return true;
  };
  return find("cuInit", &functions->init) && find("cuDeviceGet", &functions->device_get) &&
         find("cuDeviceGetUuid", &functions->device_get_uuid) &&
         find("cuDeviceGetAttribute", &functions->device_get_attribute) &&
         find("cuDeviceGetCount", &functions->device_get_count) &&
         find("cuDeviceGetName", &functions->device_get_name) &&
         find("cuDeviceCanAccessPeer", &functions->can_access_peer) &&
         find("cuDeviceGetP2PAttribute", &functions->p2p_attribute) &&
         find("cuDeviceTotalMem", &functions->device_total_memory) &&
         find("cuDevicePrimaryCtxRetain", &functions->primary_context_retain) &&
         find("cuCtxSetCurrent", &functions->context_set_current) &&
         find("cuMemGetAllocationGranularity", &functions->granularity) &&
         find("cuMemCreate", &functions->create) && find("cuMemRelease", &functions->release) &&
         find("cuMemExportToShareableHandle", &functions->export_handle) &&
         find("cuMemAddressReserve", &functions->reserve) &&
         find("cuMemAddressFree", &functions->address_free) && find("cuMemMap", &functions->map) &&
         find("cuMemUnmap", &functions->unmap) && find("cuMemSetAccess", &functions->set_access) &&
         find("cuMemsetD8Async", &functions->memset_async) &&
         find("cuMemHostRegister", &functions->host_register) &&
         find("cuMemcpyDtoHAsync", &functions->copy_to_host) &&
         find("cuMemcpyHtoDAsync", &functions->copy_to_device) &&
         find("cuStreamCreate", &functions->stream_create) &&
         find("cuStreamDestroy", &functions->stream_destroy) &&
         find("cuStreamSynchronize", &functions->stream_synchronize) &&
         find("cuGetErrorName", &functions->error_name);
}

class VmmDevice : public DeviceMemory {
 public:
  const DeviceIdentity& identity() const override { return identity_; }

  int Open(const std::string& driver, int ordinal, std::string* sentence) {
    // Never unloaded: the driver's threads outlive any use of it.
    void* library = dlopen(driver.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      *sentence = "cannot load the driver: " + std::string(dlerror());
      return kNoDevice;
    }
    std::string missing;
    if (!Load(library, &functions_, &missing)) {
      *sentence = "the driver " + driver + " has no function " + missing;
      return kNotSupported;
    }
    const char* step = "cuInit";
    CUresult result = Initialise(ordinal, &step);
    if (result == CUDA_SUCCESS) {
      identity_.facts.links = LinksOf(driver, identity_.facts.uuid);
    }
    if (result != CUDA_SUCCESS) {
      const char* name = nullptr;
      functions_.error_name(result, &name);
      *sentence = "device " + std::to_string(ordinal) + " of " + driver + ": " + step +
                  " answers " + (name != nullptr ? name : std::to_string(result).c_str());
    }
    return result;
  }

  int Create(uint64_t bytes, uint64_t* handle) override {
    CUmemGenericAllocationHandle created = 0;
    CUresult result = functions_.create(&created, bytes, &properties_, 0);
    *handle = created;
    return result;
  }

  int Export(uint64_t handle, wire::Descriptor* descriptor) override {
    int file = -1;
    CUresult result =
        functions_.export_handle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result == CUDA_SUCCESS) descriptor->Reset(file);
    return result;
  }

  void Release(uint64_t handle) override { functions_.release(handle); }

  int Zero(uint64_t handle, uint64_t bytes) override {
    if (bytes >= kDiscardFrom && Discard(handle, bytes)) return kSuccess;
    return OnMapped(handle, bytes, [&](CUdeviceptr address, CUstream stream) {
      return functions_.memset_async(address, 0, bytes, stream);
    });
  }

  // Large pages where the system has some, touched before they are registered: pinning pages that
  // are there is several times as quick.
  std::byte* Pin(uint64_t bytes) override {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    madvise(data, bytes, MADV_HUGEPAGE);
    std::memset(data, 0, bytes);
    functions_.context_set_current(context_);
    if (functions_.host_register(data, bytes, CU_MEMHOSTREGISTER_PORTABLE) != CUDA_SUCCESS) {
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
          result = functions_.copy_to_host(part.data, address, part.bytes, stream);
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
          result = functions_.copy_to_device(address, part.data, part.bytes, stream);
        }
        address += part.bytes;
      }
      return result;
    });
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

  // Maps the chunk in this process for `work`, which only queues; returns when that is done.
  template <class Work>
  int OnMapped(uint64_t handle, uint64_t bytes, Work work) {
    functions_.context_set_current(context_);
    CUstream stream = nullptr;
    CUresult result = functions_.stream_create(&stream, CU_STREAM_NON_BLOCKING);
    if (result != CUDA_SUCCESS) return result;
    CUdeviceptr address = 0;
    result = functions_.reserve(&address, bytes, 0, 0, 0);
    if (result == CUDA_SUCCESS) {
      result = functions_.map(address, bytes, 0, handle, 0);
      if (result == CUDA_SUCCESS) {
        CUmemAccessDesc access{properties_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        result = functions_.set_access(address, bytes, &access, 1);
        if (result == CUDA_SUCCESS) result = work(address, stream);
        // Also after a failure: what was queued must be over before the memory goes.
        CUresult over = functions_.stream_synchronize(stream);
        if (result == CUDA_SUCCESS) result = over;
        functions_.unmap(address, bytes);
      }
      functions_.address_free(address, bytes);
    }
    functions_.stream_destroy(stream);
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
    const Functions& f = functions_;
    good("cuInit", f.init(0)) &&
        good("cuDeviceGetCount", f.device_get_count(&identity_.device_count)) &&
        good("cuDeviceGet", f.device_get(&device, ordinal)) &&
        good("cuDeviceGetName", f.device_get_name(name, sizeof(name) - 1, device)) &&
        good("cuDeviceTotalMem", f.device_total_memory(&total, device)) &&
        good("cuDevicePrimaryCtxRetain", f.primary_context_retain(&context_, device)) &&
        good("cuCtxSetCurrent", f.context_set_current(context_)) &&
        good("cuMemGetAllocationGranularity",
             f.granularity(&granularity, &properties_, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    identity_.name = name;
    identity_.total = total;
    identity_.granularity = granularity;
    if (result == CUDA_SUCCESS) identity_.facts = FactsOf(device);
    return result;
  }

  DeviceFacts FactsOf(CUdevice device) const {
    DeviceFacts facts;
    CUuuid uuid{};
    functions_.device_get_uuid(&uuid, device);
    facts.uuid.assign(uuid.bytes, sizeof(uuid.bytes));
    for (CUdevice_attribute attribute : kFacts) {
      int value = 0;
      if (functions_.device_get_attribute(&value, attribute, device) != CUDA_SUCCESS) continue;
      facts.attributes.push_back({attribute, value});
    }
    AddPeers(device, &facts);
    return facts;
  }

  void AddPeers(CUdevice device, DeviceFacts* facts) const {
    for (CUdevice peer = 0; peer < identity_.device_count; ++peer) {
      int can = 0, atomics = 0;
      if (peer == device || functions_.can_access_peer(&can, device, peer) != CUDA_SUCCESS ||
          can == 0) {
        continue;
      }
      facts->peers.push_back(peer);
      constexpr auto kAtomics = CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
      functions_.p2p_attribute(&atomics, kAtomics, device, peer);
      if (atomics != 0) facts->atomic_peers.push_back(peer);
    }
  }

  DeviceIdentity identity_;
  std::atomic<bool> of_files_{true};  // false once a descriptor was no memory file
  Functions functions_{};
  CUcontext context_ = nullptr;
  CUmemAllocationProp properties_{};
};

}  // namespace

std::unique_ptr<DeviceMemory> OpenVmmDevice(const std::string& driver, int device, int* code,
                                            std::string* sentence) {
  auto opened = std::make_unique<VmmDevice>();
  *code = opened->Open(driver, device, sentence);
  if (*code != kSuccess) return nullptr;
  return opened;
}

}  // namespace longwire::keeper
