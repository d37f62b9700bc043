#include "probe/spans.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "probe/helpers.h"
#include "probe/include/longwire/probe.h"

namespace longwire::probe {

size_t SpansIn(const policy::MapShape& map, const void* contents, const Totals& totals,
               std::span<Span> found, uint64_t* lost) {
  *lost = 0;
  if (map.type != LW_SPANS) return 0;
  uint64_t put = 0;
  std::memcpy(&put, contents, sizeof(put));
  const uint64_t held = std::min<uint64_t>(put, map.entries);
  *lost = put - held;
  for (size_t i = 0; i < std::min<size_t>(held, found.size()); ++i) {
    std::array<uint64_t, 4> record;
    static_assert(sizeof(record) == kRecordBytes);
    std::memcpy(record.data(), static_cast<const char*>(contents) + (i + 1) * kRecordBytes,
                kRecordBytes);
    const std::string* kernel = totals.KernelOf(record[0]);
    found[i] = {kernel == nullptr ? "?" : kernel->c_str(), record[1], record[2], record[3]};
  }
  return held;
}

}  // namespace longwire::probe
