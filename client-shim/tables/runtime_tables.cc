// The tables that every copy of the CUDA runtime asks for.

#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "client-shim/context/current_context.h"
#include "client-shim/tables/context_storage.h"
#include "client-shim/tables/integrity.h"
#include "client-shim/tables/table.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim {
namespace {

// --- CUDART_INTERFACE: 13 words on 12.x and 13.x drivers.

CUresult LoadWrapper(CUmodule* module, const void* wrapper) {
  return hand::cuModuleLoadData(module, wrapper);
}

CUresult PrimaryContext(CUcontext* context, CUdevice device) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUcontext handle = PrimaryContextHandle(device);
  if (handle == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *context = handle;
  return CUDA_SUCCESS;
}

CUresult LoadWrapperWithItems(CUmodule* module, const void* wrapper, void* items, void* values,
                              uint32_t) {
  bool plain = items == nullptr && values == nullptr;
  return plain ? hand::cuModuleLoadData(module, wrapper) : CUDA_ERROR_NOT_SUPPORTED;
}

void UnregisterNotice(size_t) {}

CUresult LoadContainer(const void* container, CUmodule* module, void* items, void* values,
                       uint32_t) {
  bool plain = items == nullptr && values == nullptr;
  return plain ? hand::cuModuleLoadData(module, container) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult LaunchWithExtra(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                         CUstream stream, void** extra) {
  return hand::cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                              stream, nullptr, extra);
}

CUresult LoadCompilers() { return CUDA_SUCCESS; }  // the server's driver has them

// --- TOOLS_RUNTIME_CALLBACK_HOOKS: flag arrays that tell the runtime which callbacks a tool wants.

// Indexed by callback id (up to 522 in CUDA 13.0) as 4-byte entries; the counts are entries.
constexpr size_t kCallFlags = 1024;
constexpr size_t kModuleFlags = 14;
uint32_t call_flags[kCallFlags];
uint32_t module_flags[kModuleFlags];

CUresult Ignored() { return CUDA_SUCCESS; }

void CallFlags(uint32_t** flags, size_t* count) {
  *flags = call_flags;
  *count = kCallFlags;
}

void ModuleFlags(uint32_t** flags, size_t* count) {
  *flags = module_flags;
  *count = kModuleFlags;
}

CUresult ContextId(CUcontext context, uint64_t* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = 0;
  if (context != nullptr) ContextUniqueId(context, id);
  return CUDA_SUCCESS;
}

// --- TOOLS_TLS, CONTEXT_CHECKS.

CUresult ThreadContext(CUcontext* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return hand::cuCtxGetCurrent(context);
}

// No context of ours wraps another. The inner one is left as it is: with a null there cublasCreate
// fails.
CUresult IsWrapped(CUcontext, uint32_t* wrapped, CUcontext*) {
  *wrapped = 0;
  return CUDA_SUCCESS;
}

uint32_t GlobalFlag() { return 0; }

// --- INTEGRITY_CHECK.

CUresult CheckIntegrity(uint32_t version, uint64_t seconds, uint64_t result[2]) {
  std::vector<IntegrityDevice> devices(static_cast<size_t>(DeviceCount()));
  for (size_t i = 0; i < devices.size(); ++i) {
    auto device = static_cast<CUdevice>(i);
    uint8_t uuid[16] = {};
    DeviceUuid(device, uuid);
    std::memcpy(&devices[i].uuid, uuid, sizeof(uuid));
    DeviceAttribute(device, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, &devices[i].pci_domain);
    DeviceAttribute(device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &devices[i].pci_bus);
    DeviceAttribute(device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, &devices[i].pci_device);
  }
  IntegrityInputs inputs{
      .driver_version = static_cast<uint32_t>(DriverVersion()),
      .version = version,
      .process = static_cast<uint32_t>(getpid()),
      .thread = static_cast<uint32_t>(pthread_self()),
      .runtime_table = reinterpret_cast<uint64_t>(RuntimeInterfaceTable()),
      .integrity_table = reinterpret_cast<uint64_t>(IntegrityTable()),
      .integrity_function = reinterpret_cast<uint64_t>(IntegrityTable()[1]),
      .seconds = seconds,
  };
  AnswerIntegrityCheck(inputs, devices, result);
  return CUDA_SUCCESS;
}

}  // namespace

const void* const* RuntimeInterfaceTable() {
  static const auto table = [] {
    auto t = RefusingTable<13>();
    t[1] = Slot(&LoadWrapper);
    t[2] = Slot(&PrimaryContext);
    t[6] = Slot(&LoadWrapperWithItems);
    t[7] = Slot(&UnregisterNotice);
    t[8] = Slot(&LoadContainer);
    t[9] = Slot(&LaunchWithExtra);
    t[12] = Slot(&LoadCompilers);
    return t;
  }();
  return table.data();
}

const void* const* RuntimeHooksTable() {
  static const auto table = [] {
    auto t = RefusingTable<7>();
    t[1] = Slot(&Ignored);
    t[2] = Slot(&CallFlags);
    t[3] = Slot(&Ignored);
    t[4] = Slot(&ContextId);
    t[5] = Slot(&Ignored);
    t[6] = Slot(&ModuleFlags);
    return t;
  }();
  return table.data();
}

const void* const* ToolsThreadTable() {
  static const auto table = [] {
    auto t = RefusingTable<3>();
    t[1] = Slot(&Ignored);
    t[2] = Slot(&ThreadContext);
    return t;
  }();
  return table.data();
}

// Has no size word; its end is a null.
const void* const* ContextStorageTable() {
  static const std::array<const void*, 4> table = {
      Slot(&PutContextStorage), Slot(&DeleteContextStorage), Slot(&GetContextStorage), nullptr};
  return table.data();
}

const void* const* ContextChecksTable() {
  static const auto table = [] {
    auto t = RefusingTable<15>();
    t[2] = Slot(&IsWrapped);
    t[3] = Slot(&GlobalFlag);
    return t;
  }();
  return table.data();
}

const void* const* IntegrityTable() {
  static const auto table = [] {
    auto t = RefusingTable<3>();
    t[1] = Slot(&CheckIntegrity);
    t[2] = Slot(&Ignored);
    return t;
  }();
  return table.data();
}

}  // namespace longwire::shim
