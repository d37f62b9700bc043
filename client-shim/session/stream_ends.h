// What must not happen any more once a call of a stream has finished: its bytes do not come later,
// are not asked for later, and its function does not run later, for the program may have freed what
// they use. A server that keeps the rules has done all of it before it reports the progress.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace longwire::shim {

struct Ending {
  enum class Kind { kDownload, kUpload, kHostFunction, kGraphWrites, kGraphReads };
  Kind kind;
  uint64_t id = 0;  // of the transfer, or the function's ticket
};

class StreamEnds {
 public:
  // It ends with the call at this position.
  void Add(uint64_t stream, uint64_t position, const Ending& ending) LONGWIRE_EXCLUDES(mutex_);
  // All that ends with the stream's calls up to this position, once.
  std::vector<Ending> Take(uint64_t stream, uint64_t position) LONGWIRE_EXCLUDES(mutex_);

 private:
  std::atomic<size_t> count_{0};
  base::Mutex mutex_{base::ranks::kStreamEnds};
  std::multimap<std::pair<uint64_t, uint64_t>, Ending> by_place_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::shim
