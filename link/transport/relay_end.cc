#include "link/transport/relay_end.h"

#include <algorithm>
#include <cstring>

#include "wire/guards.h"
#include "wire/limits.h"
#include "wire/rings/pieces.h"

namespace longwire::transport {

namespace {

// Often enough that the far end never waits long for room, rarely enough to cost nothing.
constexpr size_t kStepsPerRing = 8;
constexpr size_t kUnknownFarRing = size_t{64} << 10;  // the smallest there is

const bool kChecksEpoch = !wire::GuardIsOff("epoch");
const bool kChecksBounds = !wire::GuardIsOff("bounds");
const bool kDropsDuplicates = !wire::kPlantedBug && !wire::GuardIsOff("dedupe");

}  // namespace

RelayEnd::RelayEnd(std::shared_ptr<wire::RingMemory> incoming,
                   std::shared_ptr<wire::RingMemory> outgoing)
    : incoming_(std::move(incoming)),
      outgoing_(outgoing),
      outgoing_shared_(std::move(outgoing)),
      ack_step_(kUnknownFarRing / kStepsPerRing),
      far_room_(kUnknownFarRing) {
  ack_sent_ = incoming_.released();
}

WireResult RelayEnd::StartEpoch(uint32_t epoch, uint64_t position, uint64_t consumed) {
  if (epoch <= epoch_) return WireResult::kFatal;
  if (position < outgoing_.released() || position > outgoing_.cursor()) return WireResult::kFatal;
  if (consumed < far_consumed_ || consumed > position) return WireResult::kFatal;
  epoch_ = epoch;
  outgoing_.Release(position);
  outgoing_.Rewind(position);
  far_consumed_ = consumed;
  return WireResult::kOk;
}

void RelayEnd::Inherit(uint32_t epoch) {
  epoch_ = epoch;
  incoming_.memory().ReplaceProducer();
  outgoing_.memory().ReplaceConsumer();
  outgoing_.Advance(outgoing_.Available().size());
}

void RelayEnd::SetFarEnd(uint64_t kept_bytes, uint64_t room_bytes, uint32_t packing) {
  kept_bytes = std::max<uint64_t>(kept_bytes, kUnknownFarRing);
  ack_step_ = std::min<uint64_t>(kept_bytes, incoming_.memory().bytes()) / kStepsPerRing;
  far_room_ = std::max<uint64_t>(room_bytes, kUnknownFarRing);
  sends_packed_ = takes_packed_ = packing;
}

void RelayEnd::ChangePacking(uint32_t packing) {
  sends_packed_ = packing;
  takes_packed_ |= packing;
}

WireResult RelayEnd::Take(const ReceivedFrame& frame) {
  const FrameHeader& header = frame.header;
  if (header.epoch != epoch_ && kChecksEpoch) return WireResult::kFatal;
  if (frame.bytes > wire::kMaxBatchBytes && kChecksBounds) return WireResult::kFatal;
  if (header.ack > outgoing_.cursor()) return WireResult::kFatal;
  outgoing_.Release(header.ack);
  far_consumed_ = std::max(far_consumed_, header.ack);
  if (frame.bytes == 0) return WireResult::kOk;
  rests_ = false;
  if (header.position > incoming_.written()) return WireResult::kFatal;
  uint64_t skip = std::min<uint64_t>(incoming_.written() - header.position, frame.bytes);
  if (!kDropsDuplicates) skip = 0;
  size_t fresh = frame.bytes - skip;
  std::byte* to = fresh == 0 ? nullptr : incoming_.Reserve(fresh);
  if (to == nullptr) return fresh == 0 ? WireResult::kOk : WireResult::kFatal;
  size_t unpublished = 0;
  for (std::span<const std::byte> part : frame.body) {
    size_t skipped = std::min<uint64_t>(skip, part.size());
    skip -= skipped;
    const size_t bytes = part.size() - skipped;
    std::memcpy(to, part.data() + skipped, bytes);
    to += bytes;
    incoming_.Add(bytes);
    unpublished += bytes;
    // Who reads the ring begins with this while the rest is copied.
    if (unpublished < wire::kPublishedBytes || !wire::MovesPieceByPiece()) continue;
    incoming_.Publish();
    unpublished = 0;
  }
  if (unpublished != 0) incoming_.Publish();
  return WireResult::kOk;
}

bool RelayEnd::Next(Batch* batch) {
  std::span<const std::byte> bytes = outgoing_.Available();
  uint64_t ack = incoming_.released();
  uint64_t in_far_room = outgoing_.cursor() - far_consumed_;
  uint64_t room = far_room_ - std::min(far_room_, in_far_room);
  bytes = bytes.first(std::min<uint64_t>({bytes.size(), wire::kMaxBatchBytes, room}));
  size_t step = rests_ ? 1 : ack_step_;
  if (bytes.empty() && ack - ack_sent_ < step) return false;
  if (!bytes.empty()) rests_ = false;
  batch->bytes = bytes;
  batch->header = {outgoing_.cursor(), ack, epoch_, 0};
  outgoing_.Advance(batch->bytes.size());
  ack_sent_ = ack;
  return true;
}

FrameHeader RelayEnd::Acknowledgement() {
  ack_sent_ = incoming_.released();
  return {outgoing_.cursor(), ack_sent_, epoch_, 0};
}

FrameHeader RelayEnd::ControlHeader(uint32_t flags) const {
  return {outgoing_.cursor(), ack_sent_, epoch_, flags};
}

bool RelayEnd::WorthResting() const {
  bool sent_much = outgoing_.cursor() - rest_asked_at_ >= wire::kWorthGivingBack;
  return wire::RingsGiveBack() && (sent_much || incoming_.WorthGivingBack());
}

void RelayEnd::Rest() {
  rests_ = true;
  incoming_.GiveBack();
  bool nothing_kept = OutgoingIsEmpty() && outgoing_.released() == outgoing_.cursor();
  if (!nothing_kept || outgoing_.cursor() - rest_asked_at_ < wire::kWorthGivingBack) return;
  rest_asked_at_ = outgoing_.cursor();
  incoming_.TellToRest();
}

bool RelayEnd::AckMayBecomeDue() { return incoming_.written() - ack_sent_ >= ack_step_; }

}  // namespace longwire::transport
