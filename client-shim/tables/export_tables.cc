#include "client-shim/tables/export_tables.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/connect/options.h"
#include "client-shim/tables/table.h"

namespace longwire::shim {
namespace {

using Uuid = std::array<uint8_t, 16>;

consteval uint8_t Digit(char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<uint8_t>(digit - '0');
  if (digit >= 'a' && digit <= 'f') return static_cast<uint8_t>(digit - 'a' + 10);
  throw "not a hexadecimal digit";
}

// The bytes of an id in the order in which they lie in memory.
consteval Uuid Id(const char (&text)[33]) {
  Uuid id{};
  for (size_t i = 0; i < id.size(); ++i) {
    id[i] = static_cast<uint8_t>(Digit(text[2 * i]) << 4 | Digit(text[2 * i + 1]));
  }
  return id;
}

struct KnownTable {
  Uuid id;
  const char* name;
  const void* const* (*table)();  // null: refused
};

// Sorted by id; docs/private-tables.md says who asks for each and why some are refused.
constexpr KnownTable kKnown[] = {
    {Id("0ca50b8c1004929a89a7d0df10e77286"), "CTX_CREATE_BYPASS", nullptr},
    {Id("127d4831ee3357449742b8447b7a2364"), "of profilers", nullptr},
    {Id("1734dc26800d47458726c0f1e7dd8bca"), "CLUSTER", &ClusterTable},
    {Id("195bcbf4d67d024aacc51d29cea631ae"), "HEAP_ACCESS", nullptr},
    {Id("21318c60971432488ca641ff7324c8f2"), "TOOLS_CONTEXT", &ToolsContextTable},
    {Id("263e88607cd2614392f6bbd5006dfa7e"), "CONTEXT_CHECKS", &ContextChecksTable},
    {Id("2c8e0ad80710ab4e90dd54719fe5f74b"), "of profilers", nullptr},
    {Id("42d85a8123f6cb478298f6e78a3aecdc"), "TOOLS_TLS", &ToolsThreadTable},
    {Id("6bd5fb6c5bf4e74a8987d93912fd9df9"), "CUDART_INTERFACE", &RuntimeInterfaceTable},
    {Id("6e163fbeb958444d835ce182aff1991e"), "TOOLS_MODULE", &ToolsModuleTable},
    {Id("7cb63f9b9ca48e42a484beb66e6aed7f"), "of profilers", nullptr},
    {Id("7f9212d6261ddd4d8af638dd1aeb10ae"), "DLSS", nullptr},
    {Id("9af0707b8e2dd84c8e4eb994c82ddc35"), "OPTICAL_FLOW", nullptr},
    {Id("a094798c2e742e7493f20800200c0a66"), "TOOLS_RUNTIME_CALLBACK_HOOKS", &RuntimeHooksTable},
    {Id("a31746d15475ef4eaeb6dfb1476add6c"), "of profilers", nullptr},
    {Id("a6b1ff99ecc4c94f92f91928663d5585"), "of profilers", nullptr},
    {Id("b10541e1f7c7c74a9f64f223be99f1e2"), "DEVICE_EXTENDED_RT", nullptr},
    {Id("bfdb432dbf3c5a4a945eb34029e81e75"), "of profilers", nullptr},
    {Id("c693336e1121df11a8c368f355d89593"), "CONTEXT_LOCAL_STORAGE", &ContextStorageTable},
    {Id("cc529e945c4e9d46837c9625868334e4"), "of debuggers", nullptr},
    {Id("d4082055bde6704b8d34ba123c66e1f2"), "INTEGRITY_CHECK", &IntegrityTable},
    {Id("d7bd8af8e7acca4abdbcfb1f1b3fcf33"), "of profilers", nullptr},
    {Id("da9151d33ae6cc41a5c04f26d533e328"), "JIT_CACHE", &CompileCacheTable},
    {Id("dd9e98a4f410484499b0e2aeb7b432b5"), "HYBRID_CUDART", nullptr},
    {Id("f8cff95121468b4eb9e2fb469e7c0dd9"), "LOG", nullptr},
};

static_assert(std::ranges::is_sorted(kKnown, {}, &KnownTable::id));

// LOG is asked for by every copy of the runtime, before it has anything to say.
bool IsWorthALine(const KnownTable* known) {
  return known == nullptr || std::strcmp(known->name, "LOG") != 0;
}

// CUPTI asks for several.
bool IsOfProfilers(const KnownTable* known) {
  return known != nullptr && std::strcmp(known->name, "of profilers") == 0;
}

// One line for each of the first few tables: a program may ask again and again.
void ReportRefusal(const Uuid& id, const KnownTable* known) {
  constexpr size_t kReported = 16;
  static base::Mutex mutex{base::ranks::kRefusedTables};
  static std::array<Uuid, kReported> reported LONGWIRE_GUARDED_BY(mutex);
  static size_t count LONGWIRE_GUARDED_BY(mutex) = 0;
  if (!IsWorthALine(known) || !ProcessOptions().log) return;
  base::MutexLock lock(mutex);
  auto end = reported.begin() + count;
  if (count == kReported || std::find(reported.begin(), end, id) != end) return;
  reported[count++] = id;
  std::string text;
  for (uint8_t byte : id) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  if (IsOfProfilers(known)) {
    static std::atomic<bool> said{false};
    if (said.exchange(true)) return;
    // As what is refused by name: longwire doctor --explain lists it.
    Say("CUPTI is not supported: no records of kernels, copies and calls come to profilers "
        "(torch.profiler, Nsight), since they arise in the driver's process, on the server; "
        "longwire trace -o FILE shows them");
  } else if (known == nullptr) {
    Say("the program asks the driver for an unknown private table, %s: it is refused",
        text.c_str());
  } else {
    Say("the program asks the driver for the private table %s (%s): it is refused", text.c_str(),
        known->name);
  }
}

}  // namespace

CUresult FindExportTable(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  Uuid wanted;
  std::memcpy(wanted.data(), id, wanted.size());
  const auto* found = std::ranges::lower_bound(kKnown, wanted, {}, &KnownTable::id);
  bool known = found != std::end(kKnown) && found->id == wanted;
  if (!known || found->table == nullptr) {
    ReportRefusal(wanted, known ? found : nullptr);
    return CUDA_ERROR_NOT_FOUND;
  }
  *table = found->table();
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim
