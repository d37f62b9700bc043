// Holds pages of the program's memory: for some microseconds every access to them waits, of its
// threads and of system calls alike, so whatever is read or changed meanwhile is so at once for all
// of them (docs/decisions/0096-held-pages.md).
//
// The page tables of the ranges are moved elsewhere, and what faults in the meantime waits for a
// userfaultfd. No byte is copied and no write is lost. A thread of its own does it, with a stack
// and a table of descriptors that are no one else's: the program may have registered the stack of
// whoever asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace longwire::shim {

struct PageRange {
  uint64_t address = 0, bytes = 0;
  // It may lie in a shared mapping, which nobody else reads or writes meanwhile.
  bool may_be_shared = false;
};

// A range of whole pages in one mapping, and where it is meanwhile.
struct HeldRange {
  uint64_t address = 0, bytes = 0, place = 0;
  bool shared = false;
};

class HeldView {
 public:
  explicit HeldView(std::span<const HeldRange> ranges) : ranges_(ranges) {}
  // Where the byte at the address is meanwhile, and with it the rest of its page. It must be held.
  std::byte* At(uint64_t address) const {
    size_t low = 0;
    for (size_t high = ranges_.size(); high - low > 1;) {
      const size_t middle = (low + high) / 2;
      (ranges_[middle].address <= address ? low : high) = middle;
    }
    return reinterpret_cast<std::byte*>(address - ranges_[low].address + ranges_[low].place);
  }

 private:
  std::span<const HeldRange> ranges_;  // by address
};

// Runs while pages are held. Pages of the program's may have what malloc gives, and whatever else
// lies beside registered memory: so it must touch nothing but its stack, `own` and what that points
// to, all in private_memory.h's memory, and must not allocate, lock, or wait.
using HeldBody = void (*)(const HeldView& held, void* own);

enum class HeldFor { kReading, kWriting };

// kNotNow: some page is not private memory, is protected, locked or not there. kNever: the system
// does not let the process. The memory is then as before.
enum class HoldResult { kDone, kNotNow, kNever };

// Holds the pages of all ranges at once. The caller may hold locks without a rank.
HoldResult WhileHeld(std::span<const PageRange> ranges, HeldFor use, HeldBody body, void* own);

// Whether the system lets the process; found out at the first call.
bool MayHoldPages();

}  // namespace longwire::shim
