// Staging for the copies of streams, and the way back of the blocks that such copies used.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "server/worker/transfer/staging.h"

namespace longwire::worker {

class DownWriter;
class HostSegment;
struct Stream;

class StreamStaging {
 public:
  struct Uses {
    Staging& staging;
    HostSegment& host_segment;
    DownWriter& down;
    std::function<void()> grow;  // has Staging::Grow run on another thread
  };
  explicit StreamStaging(Uses uses) : uses_(std::move(uses)) {}

  // Staging for a copy in the stream, from any thread. False if none is free: then more is made,
  // within its bound, and the log thread is woken when there is some.
  bool Acquire(Stream& stream, size_t bytes, StagingBlock* block);
  void Release(Stream& stream, const StagingBlock& block);
  // The same for a block of either kind; `stream`: whose staging it is, if it is any.
  void ReleaseBlock(Stream* stream, const StagingBlock& block);

 private:
  Uses uses_;
};

}  // namespace longwire::worker
