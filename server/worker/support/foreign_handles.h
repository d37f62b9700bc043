// Driver objects whose ids the worker mints (arrays, graph nodes, pools and so on): what
// generated calls create and name. An id carries no address; its type is checked at each use.
#pragma once

#include <cstdint>
#include <mutex>
#include <typeindex>
#include <unordered_map>

namespace longwire::worker {

class ForeignHandles {
 public:
  static constexpr size_t kMaxHandles = size_t{1} << 22;

  // 0 if the table is full or the handle null. The same object gets the same id again.
  template <class Handle>
  uint64_t Mint(Handle handle) {
    return Mint(reinterpret_cast<void*>(handle), typeid(Handle));
  }
  template <class Handle>
  bool Find(uint64_t id, Handle* handle) const {
    void* found = Find(id, typeid(Handle));
    if (found == nullptr) return false;
    *handle = reinterpret_cast<Handle>(found);
    return true;
  }
  // The object is gone, or nobody may use it any more: its id is wrong from then on, and another
  // object that the driver puts in its place gets another one. Nothing happens if it is not known.
  void Forget(uint64_t id) {
    std::lock_guard lock(mutex_);
    auto found = by_id_.find(id);
    if (found == by_id_.end()) return;
    by_object_.erase(found->second.object);
    by_id_.erase(found);
  }
  // 0 if it has none.
  uint64_t IdOf(void* object) const {
    std::lock_guard lock(mutex_);
    auto found = by_object_.find(object);
    return found == by_object_.end() ? 0 : found->second;
  }
  void ForgetObject(void* object) {
    std::lock_guard lock(mutex_);
    auto found = by_object_.find(object);
    if (found == by_object_.end()) return;
    by_id_.erase(found->second);
    by_object_.erase(found);
  }

 private:
  struct Entry {
    void* object;
    std::type_index type;
  };
  uint64_t Mint(void* object, std::type_index type) {
    std::lock_guard lock(mutex_);
    if (object == nullptr || by_id_.size() >= kMaxHandles) return 0;
    auto [place, added] = by_object_.try_emplace(object, next_);
    // Where another object was once: the id of that one stays wrong.
    if (!added && by_id_.at(place->second).type != type) {
      by_id_.erase(place->second);
      place->second = next_;
      added = true;
    }
    if (added) by_id_.emplace(next_++, Entry{object, type});
    return place->second;
  }
  void* Find(uint64_t id, std::type_index type) const {
    std::lock_guard lock(mutex_);
    auto found = by_id_.find(id);
    if (found == by_id_.end() || found->second.type != type) return nullptr;
    return found->second.object;
  }

  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Entry> by_id_;
  std::unordered_map<void*, uint64_t> by_object_;
  uint64_t next_ = uint64_t{1} << 63;  // the client's own ids stay below
};

}  // namespace longwire::worker
