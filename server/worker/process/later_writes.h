// Writes to a stream in a thread of its own, in order, while its user copies what comes next. The
// thread makes no call of the driver's.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace longwire::worker {

class LaterWrites {
 public:
  explicit LaterWrites(int stream) : stream_(stream) {}
  // What was not begun is not written; what was is waited for.
  ~LaterWrites();
  LaterWrites(const LaterWrites&) = delete;
  LaterWrites& operator=(const LaterWrites&) = delete;

  // Without it, or if the system starts no thread, writes happen at once.
  void Start();
  // All are false once the stream is broken.
  bool Write(std::vector<std::byte> bytes);
  // From where they are, until they are written: Flush, or the next piece that is given back.
  bool WriteFrom(std::span<const std::byte> bytes);
  // All of it that is to be written was said: it may be used again once that is written.
  bool GiveBack(size_t piece);
  // Takes pieces that may be used again; with `wait` at least one, if any was given back.
  bool TakeWritten(std::vector<size_t>* pieces, bool wait);
  // Waits until all is written.
  bool Flush();

 private:
  struct Item {
    std::vector<std::byte> own;
    std::span<const std::byte> bytes;
    std::optional<size_t> piece;  // not bytes, but this is given back
  };
  bool Add(Item item);
  void Serve();
  void Done(const Item& item, bool written) LONGWIRE_REQUIRES(mutex_);

  const int stream_;
  base::Mutex mutex_{base::ranks::kLaterWrites};
  base::CondVar changed_;
  std::deque<Item> items_ LONGWIRE_GUARDED_BY(mutex_);  // the first is being written
  std::vector<size_t> written_ LONGWIRE_GUARDED_BY(mutex_);
  size_t pieces_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // given back, and not written yet
  bool broken_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool stops_ LONGWIRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace longwire::worker
