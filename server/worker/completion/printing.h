// Whether a session's kernels may print. The driver brings device printf's text out when the host
// waits for a stream, so the worker has to do that at each end of a stream's work before it tells
// anybody; where no kernel can print it tells at once. What prints calls the function vprintf,
// whose name stands in the code's symbols.
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
  // Code that will be loaded: PTX, a cubin, or a fat binary of both. What cannot be read, or is
  // more than is worth reading, counts as printing.
  void Loads(std::span<const std::byte> image);
  bool possible() const { return possible_.load(); }

 private:
  bool Names(std::span<const char> image) LONGWIRE_REQUIRES(mutex_);
  // Takes the code's bytes off what is left to be searched.
  static bool NamesPlain(std::span<const char> code, size_t* left);

  std::atomic<bool> possible_{wire::IsSwitchedOff("quiet-ends")};
  base::Mutex mutex_{base::ranks::kPrinting};
  // Bytes of code that are still searched.
  size_t left_ LONGWIRE_GUARDED_BY(mutex_) = size_t{8} << 20;
};

}  // namespace longwire::worker
