// The handles that the strict driver has given out, each of one type, and its memory of the host's.
#pragma once

#include <cstdint>
#include <map>

#include "base/mutex.h"

namespace longwire::fuzz {

using Address = std::uintptr_t;

class Handles {
 public:
  static Handles& All();

  // `type` tells types apart. What belongs to `owner` (0: nothing) ends with it.
  Address Make(const void* type, Address owner = 0);
  // Ends the process for a handle that is not known as one of this type. Null is for the driver to
  // refuse.
  void Expect(Address handle, const void* type, const char* function);
  void End(Address handle);
  void Clear();

 private:
  struct Handle {
    const void* type = nullptr;
    Address owner = 0;
  };
  base::Mutex mutex_;
  std::map<Address, Handle> known_ LONGWIRE_GUARDED_BY(mutex_);
  Address next_ LONGWIRE_GUARDED_BY(mutex_) = 0x7000'0000'0000;
};

// Memory of the worker's that the driver knows: allocated or registered there.
class Pinned {
 public:
  static Pinned& All();

  void* Allocate(size_t bytes);
  void Free(void* memory);
  void Add(const void* memory, size_t bytes);
  void Remove(const void* memory);
  bool Has(Address address, size_t bytes);
  // Ends the process unless all of it is known, and reads or writes it.
  void Use(const void* memory, size_t bytes, bool writes, const char* function);
  // Frees what was left.
  void Clear();

 private:
  struct Range {
    size_t bytes = 0;
    bool ours = false;
  };
  base::Mutex mutex_;
  std::map<Address, Range> ranges_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::fuzz
