// Reads a stream ahead into memory of its user, in a thread of its own, while that copies what is
// there. The thread makes no call of the driver's.
#pragma once

#include <cstddef>
#include <span>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace longwire::worker {

class EarlyReads {
 public:
  EarlyReads(int stream, std::span<std::byte> memory) : stream_(stream), memory_(memory) {}
  // Nothing more can be read of the stream then, which is a socket.
  ~EarlyReads();
  EarlyReads(const EarlyReads&) = delete;
  EarlyReads& operator=(const EarlyReads&) = delete;

  // False: the system starts no thread.
  [[nodiscard]] bool Start();
  // What comes next, up to `most` bytes, in one piece: at least `least` of them where they do not
  // end at the memory's end. Empty once the stream is broken, or has ended.
  std::span<const std::byte> Next(size_t least, size_t most);
  // The first `bytes` of those are no longer needed.
  void Used(size_t bytes);

 private:
  void Serve();

  const int stream_;
  const std::span<std::byte> memory_;
  base::Mutex mutex_{base::ranks::kEarlyReads};
  base::CondVar changed_;
  // Positions in all that is read; in the memory they are modulo its size.
  size_t read_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  size_t used_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  bool ended_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool stops_ LONGWIRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace longwire::worker
