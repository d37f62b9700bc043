#include "softgpu/engine/memory/host_ranges.h"

namespace softgpu {
namespace {

constexpr uint64_t kFirstCapacity = 64;

}  // namespace

// What is stored with release follows the odd version; what is read with acquire comes before the
// second look at the version.
void HostRanges::Put(Table& table, uint64_t at, uint64_t address, uint64_t bytes) {
  table.ranges[at].address.store(address, std::memory_order_release);
  table.ranges[at].bytes.store(bytes, std::memory_order_release);
}

HostRanges::Table* HostRanges::Grown() {
  Table* old = table_.load();
  const uint64_t count = old == nullptr ? 0 : old->count.load();
  if (old != nullptr && count < old->ranges.size()) return old;
  tables_.push_back(std::make_unique<Table>(old == nullptr ? kFirstCapacity : 2 * count));
  Table* larger = tables_.back().get();
  for (uint64_t i = 0; i < count; ++i) {
    Put(*larger, i, old->ranges[i].address.load(), old->ranges[i].bytes.load());
  }
  larger->count.store(count);
  table_.store(larger, std::memory_order_release);
  return larger;
}

void HostRanges::Add(uint64_t address, uint64_t bytes) {
  Table& table = *Grown();
  version_.fetch_add(1);
  uint64_t at = table.count.load();
  for (; at > 0 && table.ranges[at - 1].address.load() > address; --at) {
    Put(table, at, table.ranges[at - 1].address.load(), table.ranges[at - 1].bytes.load());
  }
  Put(table, at, address, bytes);
  table.count.fetch_add(1, std::memory_order_release);
  version_.fetch_add(1, std::memory_order_release);
}

void HostRanges::Remove(uint64_t address) {
  Table* table = table_.load();
  if (table == nullptr) return;
  const uint64_t count = table->count.load();
  uint64_t at = 0;
  while (at < count && table->ranges[at].address.load() != address) ++at;
  if (at == count) return;
  version_.fetch_add(1);
  for (; at + 1 < count; ++at) {
    Put(*table, at, table->ranges[at + 1].address.load(), table->ranges[at + 1].bytes.load());
  }
  table->count.store(count - 1, std::memory_order_release);
  version_.fetch_add(1, std::memory_order_release);
}

bool HostRanges::Find(const Table& table, uint64_t address, uint64_t bytes) {
  uint64_t low = 0, high = table.count.load(std::memory_order_acquire);
  while (low < high) {  // the first range behind the address
    const uint64_t middle = low + (high - low) / 2;
    if (table.ranges[middle].address.load(std::memory_order_acquire) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return false;
  const Range& range = table.ranges[low - 1];
  const uint64_t within = address - range.address.load(std::memory_order_acquire);
  const uint64_t size = range.bytes.load(std::memory_order_acquire);
  return within <= size && bytes <= size - within;
}

bool HostRanges::Hold(uint64_t address, uint64_t bytes) const {
  while (true) {
    const uint64_t before = version_.load(std::memory_order_acquire);
    const Table* table = table_.load(std::memory_order_acquire);
    if (table == nullptr) return false;
    const bool held = Find(*table, address, bytes);
    if (before % 2 == 0 && version_.load(std::memory_order_acquire) == before) return held;
  }
}

}  // namespace softgpu
