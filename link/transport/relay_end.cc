#include "link/transport/relay_end.h"

#include <algorithm>
#include <cstring>

#include "wire/limits.h"

namespace longwire::transport {

RelayEnd::RelayEnd(std::shared_ptr<wire::RingMemory> incoming,
                   std::shared_ptr<wire::RingMemory> outgoing)
    : incoming_(incoming),
      outgoing_(outgoing),
      outgoing_shared_(std::move(outgoing)),
      // Often enough that the far end never waits long for room, rarely enough to cost nothing.
      ack_step_(incoming->bytes() / 8) {
  ack_sent_ = incoming_.released();
}

WireResult RelayEnd::StartEpoch(uint32_t epoch, uint64_t position) {
  if (epoch <= epoch_) return WireResult::kFatal;
  if (position < outgoing_.released() || position > outgoing_.cursor()) return WireResult::kFatal;
  epoch_ = epoch;
  outgoing_.Release(position);
  outgoing_.Rewind(position);
  skip_ = 0;
  return WireResult::kOk;
}

WireResult RelayEnd::Begin(const FrameHeader& header, size_t bytes) {
  if (header.epoch != epoch_ || bytes > wire::kMaxBatchBytes) return WireResult::kFatal;
  if (header.ack > outgoing_.cursor()) return WireResult::kFatal;
  outgoing_.Release(header.ack);
  if (bytes == 0) return WireResult::kOk;
  if (header.position > incoming_.written()) return WireResult::kFatal;
  skip_ = std::min<uint64_t>(incoming_.written() - header.position, bytes);
  return WireResult::kOk;
}

size_t RelayEnd::Place(std::span<const std::byte> bytes) {
  size_t skipped = std::min<uint64_t>(skip_, bytes.size());
  skip_ -= skipped;
  bytes = bytes.subspan(skipped);
  size_t room = std::min(incoming_.space(), bytes.size());
  std::byte* to = room == 0 ? nullptr : incoming_.Reserve(room);
  if (to == nullptr) return skipped;
  std::memcpy(to, bytes.data(), room);
  incoming_.Commit(room);
  return skipped + room;
}

bool RelayEnd::Next(Batch* batch) {
  std::span<const std::byte> bytes = outgoing_.Available();
  uint64_t ack = incoming_.released();
  if (bytes.empty() && ack - ack_sent_ < ack_step_) return false;
  batch->bytes = bytes.first(std::min(bytes.size(), wire::kMaxBatchBytes));
  batch->header = {outgoing_.cursor(), ack, epoch_, 0};
  outgoing_.Advance(batch->bytes.size());
  ack_sent_ = ack;
  return true;
}

FrameHeader RelayEnd::ControlHeader(uint32_t flags) {
  ack_sent_ = incoming_.released();
  return {outgoing_.cursor(), ack_sent_, epoch_, flags};
}

bool RelayEnd::AckMayBecomeDue() { return incoming_.written() - ack_sent_ >= ack_step_; }

}  // namespace longwire::transport
