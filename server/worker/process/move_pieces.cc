#include "server/worker/process/move_pieces.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "server/worker/support/log_line.h"
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
  CUresult result = driver_.cuMemHostRegister_v2(data_, kAllBytes, CU_MEMHOSTREGISTER_PORTABLE);
  pinned_ = result == CUDA_SUCCESS;
  if (!pinned_) LogLine("memory for a move is not pinned (error %d): it takes longer", result);
  result = driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) stream_ = nullptr;
  for (CUevent& event : events_) {
    if (stream_ == nullptr) break;
    if (driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS) continue;
    event = nullptr;
    driver_.cuStreamDestroy_v2(stream_);
    stream_ = nullptr;
  }
}

MovePieces::~MovePieces() {
  (void)WaitForAll();
  for (CUevent event : events_) {
    if (event != nullptr) driver_.cuEventDestroy_v2(event);
  }
  if (stream_ != nullptr) driver_.cuStreamDestroy_v2(stream_);
  if (pinned_) driver_.cuMemHostUnregister(data_);
}

CUresult MovePieces::BeginOut(size_t number, CUdeviceptr from, size_t bytes) {
  std::byte* to = piece(number).data();
  return stream_ == nullptr ? driver_.cuMemcpyDtoH_v2(to, from, bytes)
                            : driver_.cuMemcpyDtoHAsync_v2(to, from, bytes, stream_);
}

CUresult MovePieces::BeginIn(CUdeviceptr to, size_t number, size_t offset, size_t bytes) {
  const std::byte* from = piece(number).subspan(offset, bytes).data();
  return stream_ == nullptr ? driver_.cuMemcpyHtoD_v2(to, from, bytes)
                            : driver_.cuMemcpyHtoDAsync_v2(to, from, bytes, stream_);
}

CUresult MovePieces::Mark(size_t number) {
  if (stream_ == nullptr) return CUDA_SUCCESS;
  marked_[number] = true;
  return driver_.cuEventRecord(events_[number], stream_);
}

CUresult MovePieces::Wait(size_t number) {
  if (!marked_[number]) return CUDA_SUCCESS;
  marked_[number] = false;
  return driver_.cuEventSynchronize(events_[number]);
}

bool MovePieces::IsDone(size_t number) {
  return !marked_[number] || driver_.cuEventQuery(events_[number]) != CUDA_ERROR_NOT_READY;
}

CUresult MovePieces::WaitForAll() {
  marked_.fill(false);
  return stream_ == nullptr ? CUDA_SUCCESS : driver_.cuStreamSynchronize(stream_);
}

bool MovePieces::Offer(int stream) {
  if (!kShares || !pinned_ || !memory_.valid()) return false;
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
