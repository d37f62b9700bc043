// What the relay needs of a connection: whole messages, one read and one write at a time, and one
// queue of events to poll or to wait for. Implemented over gRPC, and by a test.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "link/transport/frame.h"
#include "wire/rings/ring.h"

namespace longwire::transport {

// A received frame. `body` views memory that the stream keeps until its next StartRead.
struct ReceivedFrame {
  FrameHeader header;
  std::vector<std::span<const std::byte>> body;
  size_t bytes = 0;  // of the body
};

class MessageStream {
 public:
  enum class Event { kNone, kRead, kWritten, kWoken, kBroken };

  virtual ~MessageStream() = default;

  // One read at a time; kRead reports that received() is valid.
  virtual void StartRead() = 0;
  virtual const ReceivedFrame& received() const = 0;
  // Keeps what the body of received() views: for as long as this lives, not for longer.
  virtual std::shared_ptr<const void> KeepReceived() = 0;
  // One write at a time; kWritten reports that the next may start. `bytes` is not copied when it is
  // large: it stays readable for as long as `keep` lives, which the stream holds until it is sent.
  virtual void StartWrite(const FrameHeader& header, std::span<const std::byte> bytes,
                          std::shared_ptr<void> keep) = 0;
  // The next event; kNone at the deadline. Deadline{} polls. One thread at a time.
  virtual Event Wait(wire::Deadline deadline) = 0;
  // Makes the waiting thread return with kWoken. From any thread.
  virtual void Wake() = 0;
  // Ends the stream for good, at once if `cancel`, and waits until no operation is under way.
  // Returns the peer's message about the end; empty when that was orderly.
  virtual std::string End(bool cancel) = 0;
};

// The body of a small frame in one piece; empty if it is too large to be a control frame's.
std::string ControlBody(const ReceivedFrame& frame);

}  // namespace longwire::transport
