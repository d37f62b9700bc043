// One end of a session's connection: a ring into which the far end's log is put (incoming) and a
// ring whose log is sent there (outgoing). Numbers, acknowledges, drops what came twice, refuses
// gaps. Knows nothing of gRPC and never looks into records. Not thread-safe: the caller locks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "link/transport/frame.h"
#include "wire/ring.h"

namespace longwire::transport {

class RelayEnd {
 public:
  RelayEnd(std::shared_ptr<wire::RingMemory> incoming, std::shared_ptr<wire::RingMemory> outgoing);

  // A connection starts (first or resumed): the far end has `position` of the outgoing log, which
  // is sent again from there. kFatal when those bytes are not kept any more or not written yet.
  WireResult StartEpoch(uint32_t epoch, uint64_t position);
  uint32_t epoch() const { return epoch_; }

  // Takes a received frame's header; its `bytes` bytes of log follow by Place. Bytes that are here
  // already are skipped. kFatal for another epoch, a gap or an acknowledgement of unsent bytes.
  WireResult Begin(const FrameHeader& header, size_t bytes);
  // Puts as much of `bytes` as fits into the incoming ring; returns how much it took (or skipped).
  size_t Place(std::span<const std::byte> bytes);

  struct Batch {
    FrameHeader header;
    std::span<const std::byte> bytes;  // in the outgoing ring; kept until the far end has them
  };
  // The next thing to send: bytes of the log, or an acknowledgement that is due. False when there
  // is nothing. Taken batches count as sent.
  bool Next(Batch* batch);

  // A header for a frame without bytes of the log.
  FrameHeader ControlHeader(uint32_t flags);

  uint64_t received() const { return incoming_.written(); }
  uint64_t sent() const { return outgoing_.cursor(); }
  // True when the far end may be short of room and so waits for an acknowledgement that nothing
  // but time will make us look for.
  bool AckMayBecomeDue();
  bool OutgoingIsEmpty() { return outgoing_.Available().empty(); }

  wire::RingProducer& incoming() { return incoming_; }
  wire::RingMemory& outgoing_memory() { return outgoing_.memory(); }
  std::shared_ptr<wire::RingMemory> outgoing_shared() const { return outgoing_shared_; }

 private:
  size_t AckStep() const { return ack_step_; }

  wire::RingProducer incoming_;
  wire::RingConsumer outgoing_;
  std::shared_ptr<wire::RingMemory> outgoing_shared_;
  size_t ack_step_;
  uint32_t epoch_ = 0;
  uint64_t ack_sent_ = 0;
  uint64_t skip_ = 0;  // bytes of the frame being placed that are here already
};

}  // namespace longwire::transport
