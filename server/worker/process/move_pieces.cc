#include "server/worker/process/move_pieces.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

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

CUresult MovePieces::CopyIn(CUdeviceptr to, size_t number, size_t offset, size_t bytes) {
  return driver_.cuMemcpyHtoD_v2(to, piece(number).subspan(offset, bytes).data(), bytes);
}

bool MovePieces::Offer(int stream) {
  if (!kShares || !memory_.valid()) return false;
  iovec part{const_cast<uint64_t*>(&kOffer), sizeof(kOffer)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int descriptor = memory_.get();
  std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(descriptor));
  return sendmsg(stream, &header, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(kOffer);
}

wire::Descriptor MovePieces::Offered(int stream) {
  uint64_t offer = 0;
  iovec part{&offer, sizeof(offer)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  ssize_t got = -1;
  do {
    got = recvmsg(stream, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  wire::Descriptor memory;
  cmsghdr* rights = got < 0 ? nullptr : CMSG_FIRSTHDR(&header);
  if (rights != nullptr && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS &&
      rights->cmsg_len == CMSG_LEN(sizeof(int))) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(rights), sizeof(descriptor));
    memory.Reset(wire::AboveStandard(descriptor));
  }
  const bool good = kShares && got == sizeof(offer) && offer == kOffer && memory.valid() &&
                    wire::IsSegment(memory.get(), kAllBytes);
  return good ? std::move(memory) : wire::Descriptor();
}

}  // namespace longwire::worker
