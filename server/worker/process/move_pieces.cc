#include "server/worker/process/move_pieces.h"

#include <sys/socket.h>

#include <utility>

#include "server/worker/process/stream_files.h"
#include "wire/switches.h"

namespace longwire::worker {
namespace {

const bool kShares = !wire::IsSwitchedOff("shared-moves");

// The whole offer beside its descriptor.
constexpr uint64_t kOffer = MovePieces::kAllBytes;

}  // namespace

wire::Descriptor MovePieces::MakeShared() { return wire::MakeSegment("longwire-move", kAllBytes); }

MovePieces::MovePieces(const DriverTable& driver, wire::Descriptor memory)
    : driver_(driver), memory_(std::move(memory)) {
  if (memory_.valid()) mapping_ = wire::SegmentMapping::Map(memory_.get(), kAllBytes);
  if (mapping_ == nullptr) {
    memory_.Reset();
    own_.resize(kAllBytes);
  }
  data_ = mapping_ != nullptr ? mapping_->data() : own_.data();
}

CUresult MovePieces::CopyOut(size_t number, CUdeviceptr from, size_t bytes) {
  return driver_.cuMemcpyDtoH_v2(piece(number).data(), from, bytes);
}

CUresult MovePieces::CopyIn(CUdeviceptr to, std::span<const std::byte> from) {
  return driver_.cuMemcpyHtoD_v2(to, from.data(), from.size());
}

bool MovePieces::Offer(int stream) {
  if (!kShares || !memory_.valid()) return false;
  const auto offer = std::as_bytes(std::span(&kOffer, 1));
  return SendWithFile(stream, offer, memory_.get(), MSG_DONTWAIT) == sizeof(kOffer);
}

wire::Descriptor MovePieces::Offered(int stream) {
  uint64_t offer = 0;
  wire::Descriptor memory;
  const auto bytes = std::as_writable_bytes(std::span(&offer, 1));
  const ssize_t got = ReceiveWithFile(stream, bytes, &memory, MSG_DONTWAIT);
  const bool good = kShares && got == sizeof(offer) && offer == kOffer && memory.valid() &&
                    wire::IsSegment(memory.get(), kAllBytes);
  return good ? std::move(memory) : wire::Descriptor();
}

}  // namespace longwire::worker
