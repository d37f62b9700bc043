#include "tests/fuzz/strict_handles.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace longwire::fuzz {

Handles& Handles::All() {
  static auto* handles = new Handles();
  return *handles;
}

Address Handles::Make(const void* type, Address owner) {
  base::MutexLock lock(mutex_);
  next_ += 16;
  known_[next_] = {type, owner};
  return next_;
}

void Handles::Expect(Address handle, const void* type, const char* function) {
  base::MutexLock lock(mutex_);
  if (handle == 0) return;
  auto found = known_.find(handle);
  if (found != known_.end() && found->second.type == type) return;
  const char* what = found == known_.end() ? "nobody has" : "is of another type";
  std::fprintf(stderr, "%s was given the handle %#zx, which %s\n", function, handle, what);
  std::abort();
}

void Handles::End(Address handle) {
  if (handle == 0) return;  // owns what nobody owns
  base::MutexLock lock(mutex_);
  known_.erase(handle);
  std::erase_if(known_, [&](const auto& entry) { return entry.second.owner == handle; });
}

void Handles::Clear() {
  base::MutexLock lock(mutex_);
  known_.clear();
}

Pinned& Pinned::All() {
  static auto* pinned = new Pinned();
  return *pinned;
}

void* Pinned::Allocate(size_t bytes) {
  void* memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  base::MutexLock lock(mutex_);
  ranges_[reinterpret_cast<Address>(memory)] = {bytes, true};
  return memory;
}

void Pinned::Free(void* memory) {
  base::MutexLock lock(mutex_);
  if (ranges_.erase(reinterpret_cast<Address>(memory)) != 0) std::free(memory);
}

void Pinned::Add(const void* memory, size_t bytes) {
  base::MutexLock lock(mutex_);
  ranges_[reinterpret_cast<Address>(memory)] = {bytes, false};
}

void Pinned::Remove(const void* memory) {
  base::MutexLock lock(mutex_);
  ranges_.erase(reinterpret_cast<Address>(memory));
}

bool Pinned::Has(Address address, size_t bytes) {
  base::MutexLock lock(mutex_);
  auto range = ranges_.upper_bound(address);
  if (range == ranges_.begin()) return false;
  --range;
  uint64_t offset = address - range->first;
  return offset <= range->second.bytes && bytes <= range->second.bytes - offset;
}

void Pinned::Use(const void* memory, size_t bytes, bool writes, const char* function) {
  if (bytes == 0) return;
  if (!Has(reinterpret_cast<Address>(memory), bytes)) {
    std::fprintf(stderr, "%s was given %zu bytes of the host's at %p, which are not pinned\n",
                 function, bytes, memory);
    std::abort();
  }
  auto* data = static_cast<volatile char*>(const_cast<void*>(memory));
  for (size_t i = 0; i < bytes; i += 512) {
    char read = data[i];
    if (writes) data[i] = read;
  }
  char last = data[bytes - 1];
  if (writes) data[bytes - 1] = last;
}

void Pinned::Clear() {
  base::MutexLock lock(mutex_);
  for (auto& [address, range] : ranges_) {
    if (range.ours) std::free(reinterpret_cast<void*>(address));
  }
  ranges_.clear();
}

}  // namespace longwire::fuzz
