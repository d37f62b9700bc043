// cuGetProcAddress and the private tables.
#include <algorithm>
#include <cstring>

#include "base/try.h"
#include "client-shim/context/current_context.h"
#include "client-shim/tables/export_tables.h"
#include "longwire/proc_table.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

constexpr cuuint64_t kLegacyStream = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
constexpr cuuint64_t kPerThreadStream = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
constexpr int kPerThreadMode = 2;  // in the table

struct Found {
  void* function = nullptr;
  bool known = false;
};

// The variant with the highest introduction up to the version asked for.
Found Look(const char* symbol, int version, int mode) {
  std::span<const ProcEntry> table = ProcTable();
  auto first = std::lower_bound(
      table.begin(), table.end(), symbol,
      [](const ProcEntry& entry, const char* name) { return strcmp(entry.name, name) < 0; });
  Found found;
  int best = -1;
  for (auto entry = first; entry != table.end() && strcmp(entry->name, symbol) == 0; ++entry) {
    found.known = true;
    if (entry->mode != mode || entry->introduced > version || entry->introduced <= best) continue;
    best = entry->introduced;
    found.function = entry->function;
  }
  return found;
}

}  // namespace

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  if (symbol == nullptr || pfn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pfn = nullptr;
  auto status = [&](CUdriverProcAddressQueryResult value) {
    if (symbolStatus != nullptr) *symbolStatus = value;
  };
  status(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  if (flags > (kLegacyStream | kPerThreadStream) || cudaVersion > DriverVersion()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Found found;
  if ((flags & kPerThreadStream) != 0) found = Look(symbol, cudaVersion, kPerThreadMode);
  // Functions without streams have no form for per-thread streams.
  if (found.function == nullptr) found = Look(symbol, cudaVersion, 0);
  *pfn = found.function;
  if (found.function != nullptr) {
    status(CU_GET_PROC_ADDRESS_SUCCESS);
  } else if (found.known) {
    status(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  }
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  CUdriverProcAddressQueryResult status;
  LONGWIRE_TRY(hand::cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, &status));
  return pfn != nullptr && *pfn == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult cuGetExportTable(const void** ppExportTable, const CUuuid* pExportTableId) {
  if (ppExportTable == nullptr || pExportTableId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return FindExportTable(ppExportTable, pExportTableId);
}

}  // namespace longwire::shim::hand
