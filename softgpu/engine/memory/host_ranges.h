// Host memory outside the arena that kernels may access: what a program has registered. Kernels ask
// for each access, from many threads, so the table is read without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace softgpu {

class HostRanges {
 public:
  // By one thread at a time. The ranges do not overlap.
  void Add(uint64_t address, uint64_t bytes);
  void Remove(uint64_t address);

  // True if one range holds all of [address, address + bytes).
  bool Hold(uint64_t address, uint64_t bytes) const;

 private:
  struct Range {
    std::atomic<uint64_t> address{0};
    std::atomic<uint64_t> bytes{0};
  };
  // Sorted by address.
  struct Table {
    explicit Table(uint64_t capacity) : ranges(capacity) {}
    std::atomic<uint64_t> count{0};
    std::vector<Range> ranges;
  };
  static void Put(Table& table, uint64_t at, uint64_t address, uint64_t bytes);
  static bool Find(const Table& table, uint64_t address, uint64_t bytes);
  Table* Grown();

  // Odd while the table changes; who has read meanwhile reads again.
  std::atomic<uint64_t> version_{0};
  std::atomic<Table*> table_{nullptr};
  // All there were, each twice as large as the last: somebody may still read an old one.
  std::vector<std::unique_ptr<Table>> tables_;
};

}  // namespace softgpu
