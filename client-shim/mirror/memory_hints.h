// The program's hints on the use of managed memory (cuMemAdvise, cuMemPrefetchAsync), for each
// page. They are only returned when the program asks for them.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <set>

#include "base/memory_sizes.h"

namespace longwire::shim {

struct Hints {
  bool read_mostly = false;
  CUmemLocation preferred{};  // type 0: none
  CUmemLocation prefetched{};
  std::set<int> accessed_by;  // devices; CU_DEVICE_CPU
};

class MemoryHints {
 public:
  // Changes the hints of the pages that [address, address + bytes) touches.
  template <class Change>
  void Update(uint64_t address, uint64_t bytes, Change change) {
    auto end = Split(base::RoundUp(address + bytes, base::kPageBytes));
    for (auto at = Split(base::RoundDown(address, base::kPageBytes)); at != end; ++at)
      change(at->second);
  }

  // As cuMemRangeGetAttribute: the hint that all pages of the range have in common.
  CUresult Query(uint64_t address, uint64_t bytes, CUmem_range_attribute attribute, void* data,
                 size_t data_bytes) const;

 private:
  using Map = std::map<uint64_t, Hints>;  // from this address to the next entry's

  // The entry that starts there.
  Map::iterator Split(uint64_t address) {
    auto after = from_.upper_bound(address);
    Hints hints = after == from_.begin() ? Hints{} : std::prev(after)->second;
    return from_.try_emplace(address, std::move(hints)).first;
  }
  Hints Common(uint64_t address, uint64_t bytes) const;

  Map from_;
};

}  // namespace longwire::shim
