// Staging blocks for streams' copies: takes them and returns them.
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
    std::function<void()> grow;   // runs Staging::Grow on another thread
    std::function<void()> freed;  // a block came back; any thread
  };
  explicit StreamStaging(Uses uses) : uses_(std::move(uses)) {}

  // Takes a block for a copy in the stream. Any thread. False if none is free: more are then
  // allocated, up to the limit, and the log thread is woken when a block is free.
  bool Acquire(Stream& stream, size_t bytes, StagingBlock* block);
  void Release(Stream& stream, const StagingBlock& block);
  // Returns a staging block or a slot. `stream`: the stream that took the block, if any.
  void ReleaseBlock(Stream* stream, const StagingBlock& block);

 private:
  Uses uses_;
};

}  // namespace longwire::worker
