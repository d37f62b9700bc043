// Objects of the program that graphs keep alive: counted, and destroyed by a function of the
// program, on a thread of its own, when nobody refers to them any more.
#pragma once

#include <atomic>
#include <map>
#include <memory>

#include "softgpu/driver/state/driver.h"

namespace softgpu {

struct UserObject : std::enable_shared_from_this<UserObject> {
  void* pointer = nullptr;
  CUhostFn destroy = nullptr;
  std::atomic<uint64_t> references{0};

  void Retain(uint64_t count) { references += count; }
  // Precondition: at least `count` references are held.
  void Release(uint64_t count);
};

// What one graph refers to. A copy refers to the same again.
class UserReferences {
 public:
  UserReferences() = default;
  UserReferences(const UserReferences& other) { *this = other; }
  UserReferences& operator=(const UserReferences& other);
  ~UserReferences();

  // References that the caller has taken.
  void Add(const std::shared_ptr<UserObject>& object, uint64_t count) { counts_[object] += count; }
  // False if the graph has fewer than `count` references to the object.
  bool Remove(const std::shared_ptr<UserObject>& object, uint64_t count);

 private:
  std::map<std::shared_ptr<UserObject>, uint64_t> counts_;
};

}  // namespace softgpu
