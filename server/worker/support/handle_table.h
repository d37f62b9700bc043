// Objects of a session by id. Ids come from the client and are never used again; a look-up of an
// unknown id gives nullptr. Any thread may use a table.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace longwire::worker {

template <class T>
class HandleTable {
 public:
  // Bounds the memory of a worker whose program leaks handles.
  static constexpr size_t kMaxHandles = size_t{1} << 22;

  std::shared_ptr<T> Find(uint64_t id) const {
    base::MutexLock lock(mutex_);
    auto found = objects_.find(id);
    return found == objects_.end() ? nullptr : found->second;
  }
  // False if the id is 0 or taken, or the table is full.
  bool Insert(uint64_t id, std::shared_ptr<T> object) {
    base::MutexLock lock(mutex_);
    if (id == 0 || objects_.size() >= kMaxHandles) return false;
    // If the id is taken, the object is destroyed after the lock is released: it may take others.
    return objects_.try_emplace(id, std::move(object)).second;
  }
  std::shared_ptr<T> Take(uint64_t id) {
    base::MutexLock lock(mutex_);
    auto found = objects_.find(id);
    if (found == objects_.end()) return nullptr;
    auto object = std::move(found->second);
    objects_.erase(found);
    taken_.fetch_add(1, std::memory_order_release);
    return object;
  }
  // Number of objects taken out until now.
  uint64_t taken() const { return taken_.load(std::memory_order_acquire); }
  std::vector<std::shared_ptr<T>> All() const {
    base::MutexLock lock(mutex_);
    std::vector<std::shared_ptr<T>> all;
    all.reserve(objects_.size());
    for (auto& [id, object] : objects_) all.push_back(object);
    return all;
  }
  size_t size() const {
    base::MutexLock lock(mutex_);
    return objects_.size();
  }

 private:
  mutable base::Mutex mutex_{base::ranks::kWorkerHandleTable};
  std::unordered_map<uint64_t, std::shared_ptr<T>> objects_ LONGWIRE_GUARDED_BY(mutex_);
  std::atomic<uint64_t> taken_{0};
};

// One thread's cache of look-ups in a table. A hit takes neither a lock nor a reference, which
// would cost a launch a tenth of a microsecond.
template <class T>
class FoundLately {
 public:
  explicit FoundLately(const HandleTable<T>& table) : table_(table) {}

  // Null for unknown ids, also for objects that were taken out. Valid until the next call.
  const std::shared_ptr<T>& Find(uint64_t id) {
    Entry& entry = entries_[id % kEntries];
    uint64_t taken = table_.taken();
    if (entry.object == nullptr || entry.id != id || entry.taken != taken) {
      entry = {id, taken, table_.Find(id)};
    }
    return entry.object;
  }

 private:
  static constexpr size_t kEntries = 64;
  struct Entry {
    uint64_t id = 0;
    uint64_t taken = 0;
    std::shared_ptr<T> object;
  };
  const HandleTable<T>& table_;
  std::array<Entry, kEntries> entries_;
};

}  // namespace longwire::worker
