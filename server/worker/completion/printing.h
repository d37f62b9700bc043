// Whether a session's kernels may print. The driver writes device printf's text when the host waits
// for a stream. So the worker waits for each stream that has drained before it reports that; where
// no kernel can print, it reports at once. Code that prints calls the function vprintf, whose name
// is among its symbols.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "wire/switches.h"

namespace longwire::worker {

class Printing {
 public:
  // Called before code is loaded: PTX, a cubin, or a fat binary of both. Code that cannot be read,
  // or exceeds the number of bytes to search, counts as printing.
  void Loads(std::span<const std::byte> image);
  bool possible() const { return possible_.load(); }

 private:
  bool Names(std::span<const char> image) LONGWIRE_REQUIRES(mutex_);
  // Subtracts the code's bytes from *left.
  static bool NamesPlain(std::span<const char> code, size_t* left);

  std::atomic<bool> possible_{wire::IsSwitchedOff("quiet-ends")};
  base::Mutex mutex_{base::ranks::kPrinting};
  // Bytes of code that are still searched.
  size_t left_ LONGWIRE_GUARDED_BY(mutex_) = size_t{8} << 20;
};

}  // namespace longwire::worker
