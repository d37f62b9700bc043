// Driver objects whose ids the worker chooses (arrays, graph nodes, pools and so on), for generated
// calls. An id is not an address; its type is checked at each use.
#pragma once

#include <cstdint>
#include <typeindex>
#include <unordered_map>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "wire/open.h"

namespace longwire::worker {

class ForeignHandles {
 public:
  static constexpr size_t kMaxHandles = size_t{1} << 22;

  // Before the first one: ids of this space (wire::kHandleSpace).
  void BeginAt(uint64_t space) {
    base::MutexLock lock(mutex_);
    next_ = wire::kFirstHandle + space * wire::kHandlesOfSpace;
  }
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
  // Makes an id invalid: its object was destroyed or may not be used any more. A later object with
  // the same handle gets another id. An unknown id is ignored.
  void Forget(uint64_t id) {
    base::MutexLock lock(mutex_);
    auto found = by_id_.find(id);
    if (found == by_id_.end()) return;
    by_object_.erase(found->second.object);
    by_id_.erase(found);
  }
  // 0 if the handle has no id.
  uint64_t IdOf(void* object) const {
    base::MutexLock lock(mutex_);
    auto found = by_object_.find(object);
    return found == by_object_.end() ? 0 : found->second;
  }
  void ForgetObject(void* object) {
    base::MutexLock lock(mutex_);
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
    base::MutexLock lock(mutex_);
    if (object == nullptr || by_id_.size() >= kMaxHandles) return 0;
    auto [place, added] = by_object_.try_emplace(object, next_);
    // An earlier object had this handle; its id stays invalid.
    if (!added && by_id_.at(place->second).type != type) {
      by_id_.erase(place->second);
      place->second = next_;
      added = true;
    }
    if (added) by_id_.emplace(next_++, Entry{object, type});
    return place->second;
  }
  void* Find(uint64_t id, std::type_index type) const {
    base::MutexLock lock(mutex_);
    auto found = by_id_.find(id);
    if (found == by_id_.end() || found->second.type != type) return nullptr;
    return found->second.object;
  }

  mutable base::Mutex mutex_{base::ranks::kForeignHandles};
  std::unordered_map<uint64_t, Entry> by_id_ LONGWIRE_GUARDED_BY(mutex_);
  std::unordered_map<void*, uint64_t> by_object_ LONGWIRE_GUARDED_BY(mutex_);
  uint64_t next_ LONGWIRE_GUARDED_BY(mutex_) = wire::kFirstHandle;
};

}  // namespace longwire::worker
