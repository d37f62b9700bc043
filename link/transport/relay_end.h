// One end of a session's connection: a ring that receives the far end's log (incoming) and a ring
// whose log is sent there (outgoing). Numbers bytes by position, acknowledges them, drops
// duplicates and refuses gaps. Independent of gRPC; never reads records. Not thread-safe: the
// caller locks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "link/transport/frame.h"
#include "link/transport/message_stream.h"
#include "wire/rings/ring.h"

namespace longwire::transport {

class RelayEnd {
 public:
  RelayEnd(std::shared_ptr<wire::RingMemory> incoming, std::shared_ptr<wire::RingMemory> outgoing);

  // A connection starts (first or resumed). The far end has received the outgoing log up to
  // `position`, from where it is sent again, and has consumed it up to `consumed`; the bytes
  // between still fill its ring. kFatal when the bytes from `position` on are not in the ring.
  WireResult StartEpoch(uint32_t epoch, uint64_t position, uint64_t consumed);
  uint32_t epoch() const { return epoch_; }
  // Goes on where another process's relay ended: that had this epoch, and may have sent all that
  // the outgoing ring holds. Before the first StartEpoch.
  void Inherit(uint32_t epoch);

  // How many unacknowledged bytes of its log the far end can keep (it stops when that is full, so
  // it needs acknowledgements in time), how many of ours it can store, and the PackingFlags it
  // takes.
  void SetFarEnd(uint64_t kept_bytes, uint64_t room_bytes, uint32_t packing = 0);
  // Changes the PackingFlags of what is sent from now on. Received frames may use the new ones or
  // the former ones, since some can be on their way.
  void ChangePacking(uint32_t packing);
  uint32_t sends_packed() const { return sends_packed_; }
  uint32_t takes_packed() const { return takes_packed_; }

  // Puts a received frame's bytes into the incoming ring, without those received before. kFatal for
  // another epoch, a gap, more bytes than fit, or an acknowledgement of unsent bytes.
  WireResult Take(const ReceivedFrame& frame);

  struct Batch {
    FrameHeader header;
    std::span<const std::byte> bytes;  // in the outgoing ring; kept until the far end has them
  };
  // The next batch to send: bytes of the log, or an acknowledgement that is due. False when there
  // is none. A batch counts as sent once it was returned.
  bool Next(Batch* batch);

  // An acknowledgement that need not be due.
  FrameHeader Acknowledgement();
  // A header for a control frame. The far end takes no acknowledgement from such a
  // frame, so what is due stays due.
  FrameHeader ControlHeader(uint32_t flags) const;

  uint64_t received() const { return incoming_.written(); }
  uint64_t consumed() { return incoming_.released(); }  // of what was received
  uint64_t sent() const { return outgoing_.cursor(); }
  uint64_t delivered() const { return outgoing_.released(); }
  size_t kept_bytes() const { return outgoing_shared_->bytes(); }
  size_t room_bytes() { return incoming_.memory().bytes(); }
  // False while the far end has no room for more bytes.
  bool FarEndHasRoom() const { return outgoing_.cursor() - far_consumed_ < far_room_; }
  // True when the far end may be waiting for an acknowledgement that no event will announce: the
  // caller has to poll for it.
  bool AckMayBecomeDue();
  // Call it after an idle time: acknowledges all that was consumed, so that the far end keeps
  // nothing, and returns the rings' memory to the system. The outgoing ring's producer is asked to
  // do so for its ring. Pays after much was moved (WorthResting).
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
  size_t ack_step_;  // consumed bytes after which an acknowledgement is sent
  uint32_t epoch_ = 0;
  uint64_t ack_sent_ = 0;
  uint64_t rest_asked_at_ = 0;  // outgoing cursor when its producer was last asked to rest
  bool rests_ = false;          // nothing has moved since Rest
  uint64_t far_room_;
  uint64_t far_consumed_ = 0;
  uint32_t sends_packed_ = 0;
  uint32_t takes_packed_ = 0;
};

}  // namespace longwire::transport
