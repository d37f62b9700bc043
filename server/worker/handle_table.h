// Objects of a session by id. Ids come from the client and are never used again; a look-up of an
// unknown id gives nullptr. Any thread may use a table.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace longwire::worker {

template <class T>
class HandleTable {
 public:
  // A client's program that leaks handles meets this before the worker's memory does.
  static constexpr size_t kMaxHandles = size_t{1} << 22;

  std::shared_ptr<T> Find(uint64_t id) const {
    std::shared_lock lock(mutex_);
    auto found = objects_.find(id);
    return found == objects_.end() ? nullptr : found->second;
  }
  // False if the id is 0 or taken, or the table is full.
  bool Insert(uint64_t id, std::shared_ptr<T> object) {
    std::unique_lock lock(mutex_);
    if (id == 0 || objects_.size() >= kMaxHandles) return false;
    return objects_.emplace(id, std::move(object)).second;
  }
  std::shared_ptr<T> Take(uint64_t id) {
    std::unique_lock lock(mutex_);
    auto found = objects_.find(id);
    if (found == objects_.end()) return nullptr;
    auto object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  std::vector<std::shared_ptr<T>> All() const {
    std::shared_lock lock(mutex_);
    std::vector<std::shared_ptr<T>> all;
    all.reserve(objects_.size());
    for (auto& [id, object] : objects_) all.push_back(object);
    return all;
  }
  size_t size() const {
    std::shared_lock lock(mutex_);
    return objects_.size();
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<T>> objects_;
};

}  // namespace longwire::worker
