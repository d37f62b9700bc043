// One end of a session's connection: a ring into which the far end's log is put (incoming) and a
// ring whose log is sent there (outgoing). Numbers, acknowledges, drops what came twice, refuses
// gaps. Knows nothing of gRPC and never looks into records. Not thread-safe: the caller locks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "link/transport/frame.h"
#include "link/transport/message_stream.h"
#include "wire/ring.h"

namespace longwire::transport {

class RelayEnd {
 public:
  RelayEnd(std::shared_ptr<wire::RingMemory> incoming, std::shared_ptr<wire::RingMemory> outgoing);

  // A connection starts (first or resumed): the far end has `position` of the outgoing log, which
  // is sent again from there, and has `consumed` of it: what lies between still takes its room.
  // kFatal when those bytes are not kept any more or not written yet.
  WireResult StartEpoch(uint32_t epoch, uint64_t position, uint64_t consumed);
  uint32_t epoch() const { return epoch_; }

  // How much of its log the far end can keep (it waits when that is full, so acknowledgements have
  // to come often enough for it), how much of ours it can take, and how packed (PackingFlags).
  void SetFarEnd(uint64_t kept_bytes, uint64_t room_bytes, uint32_t packing = 0);
  // How packed may be what goes there from now on, and what comes from there beside what might
  // before: it may be on its way.
  void ChangePacking(uint32_t packing);
  uint32_t sends_packed() const { return sends_packed_; }
  uint32_t takes_packed() const { return takes_packed_; }

  // Puts a received frame's bytes into the incoming ring, except those that are here already.
  // kFatal for another epoch, a gap, more than there is room for, or an acknowledgement of unsent
  // bytes.
  WireResult Take(const ReceivedFrame& frame);

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
  uint64_t consumed() { return incoming_.released(); }  // of what was received
  uint64_t sent() const { return outgoing_.cursor(); }
  uint64_t delivered() const { return outgoing_.released(); }
  size_t kept_bytes() const { return outgoing_shared_->bytes(); }
  size_t room_bytes() { return incoming_.memory().bytes(); }
  // False while the far end has no room for more bytes.
  bool FarEndHasRoom() const { return outgoing_.cursor() - far_consumed_ < far_room_; }
  // True when the far end may be short of room and so waits for an acknowledgement that nothing
  // but time will make us look for.
  bool AckMayBecomeDue();
  // Nothing has come or gone for a while: the far end is told all that was consumed, so that it
  // keeps nothing, and memory of the rings is given back. What was sent lies in a ring that
  // somebody else writes: who does is told. Worth it after much came or went.
  void Rest();
  bool WorthResting() const;
  bool OutgoingIsEmpty() { return outgoing_.Available().empty(); }

  wire::RingProducer& incoming() { return incoming_; }
  wire::RingMemory& outgoing_memory() { return outgoing_.memory(); }
  std::shared_ptr<wire::RingMemory> outgoing_shared() const { return outgoing_shared_; }

 private:
  wire::RingProducer incoming_;
  wire::RingConsumer outgoing_;
  std::shared_ptr<wire::RingMemory> outgoing_shared_;
  size_t ack_step_;  // bytes consumed after which the far end is told without being asked
  uint32_t epoch_ = 0;
  uint64_t ack_sent_ = 0;
  uint64_t told_at_ = 0;  // outgoing cursor when its producer was told to rest
  bool rests_ = false;    // nothing has moved since Rest
  uint64_t far_room_;
  uint64_t far_consumed_ = 0;
  uint32_t sends_packed_ = 0;
  uint32_t takes_packed_ = 0;
};

}  // namespace longwire::transport
