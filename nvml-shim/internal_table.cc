// The private table that nvidia-smi asks for, without which it does not start. As release 580 was
// seen to use it: the first word is the table's size in bytes, the others are functions, of which
// four are needed. The rest answer that they are not supported and look at no argument.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "nvml-shim/state.h"

namespace longwire::nvml {
namespace {

constexpr std::array<unsigned char, 16> kTable = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                                  0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};
constexpr size_t kSlots = 512;  // more than were seen in use
constexpr size_t kDeviceByIndexSlot = 81;
constexpr size_t kProcessesSlot = 213;  // that compute
constexpr size_t kGraphicsSlot = 214;   // that draw
constexpr size_t kMpsSlot = 215;        // that share a context

struct NamedProcess {
  nvmlProcessDetail_v1_t process;
  char name[4096];
};
static_assert(sizeof(NamedProcess) == 4128);

nvmlReturn_t NotSupported() { return NVML_ERROR_NOT_SUPPORTED; }

nvmlReturn_t DeviceByIndex(unsigned index, nvmlDevice_t* device) {
  View view;
  nvmlReturn_t result = Look(&view);
  if (result != NVML_SUCCESS) return result;
  if (device == nullptr || index >= view->devices.size()) return NVML_ERROR_INVALID_ARGUMENT;
  *device = HandleOf(index);
  return NVML_SUCCESS;
}

// *count is the room at first. A caller that has too little gets what fits.
nvmlReturn_t Processes(nvmlDevice_t device, unsigned* count, NamedProcess* to) {
  Seen seen;
  nvmlReturn_t result = Find(device, &seen);
  if (result != NVML_SUCCESS) return result;
  if (count == nullptr || (to == nullptr && *count != 0)) return NVML_ERROR_INVALID_ARGUMENT;
  const std::vector<wire::ViewedProcess>& processes = seen.device->processes;
  *count = std::min(*count, static_cast<unsigned>(processes.size()));
  for (unsigned i = 0; i < *count; ++i) {
    to[i].process = {processes[i].pid, processes[i].memory, NVML_NO_INSTANCE, NVML_NO_INSTANCE, 0};
    to[i].name[processes[i].program.copy(to[i].name, sizeof(to[i].name) - 1)] = '\0';
  }
  return NVML_SUCCESS;
}

nvmlReturn_t NoProcesses(nvmlDevice_t device, unsigned* count, NamedProcess*) {
  Seen seen;
  nvmlReturn_t result = Find(device, &seen);
  if (result != NVML_SUCCESS) return result;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  return NVML_SUCCESS;
}

std::array<const void*, kSlots> MakeTable() {
  std::array<const void*, kSlots> table;
  table.fill(reinterpret_cast<const void*>(&NotSupported));
  table[0] = reinterpret_cast<const void*>(sizeof(table));
  table[kDeviceByIndexSlot] = reinterpret_cast<const void*>(&DeviceByIndex);
  table[kProcessesSlot] = reinterpret_cast<const void*>(&Processes);
  table[kGraphicsSlot] = reinterpret_cast<const void*>(&NoProcesses);
  table[kMpsSlot] = reinterpret_cast<const void*>(&NoProcesses);
  return table;
}

}  // namespace

NVML_EXPORT nvmlReturn_t nvmlInternalGetExportTable(const void** table, const unsigned char* id) {
  static const std::array<const void*, kSlots> known = MakeTable();
  if (table == nullptr || id == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (!std::equal(kTable.begin(), kTable.end(), id)) return NVML_ERROR_NOT_FOUND;
  *table = known.data();
  return NVML_SUCCESS;
}

}  // namespace longwire::nvml
