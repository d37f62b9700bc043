#include "link/transport/grpc_stream.h"

#include <grpc/slice.h>

#include <cstring>

#include "link/transport/ring_at_once.h"

namespace longwire::transport {
namespace {

// Up to here a copy costs less than the bookkeeping of a slice that refers to the ring.
constexpr size_t kCopyBytes = 4096;

// A peer that does not let a call end in time is cut off.
constexpr int64_t kFinishMs = 1'000;

void DropKeep(void* keep) { delete static_cast<std::shared_ptr<void>*>(keep); }

grpc::ByteBuffer BuildMessage(const FrameHeader& header, std::span<const std::byte> bytes,
                              std::shared_ptr<void> keep) {
  bool copy = bytes.size() <= kCopyBytes;
  grpc_slice head = grpc_slice_malloc(sizeof(header) + (copy ? bytes.size() : 0));
  uint8_t* to = GRPC_SLICE_START_PTR(head);
  std::memcpy(to, &header, sizeof(header));
  if (copy && !bytes.empty()) std::memcpy(to + sizeof(header), bytes.data(), bytes.size());
  grpc::Slice slices[2] = {grpc::Slice(head, grpc::Slice::STEAL_REF), grpc::Slice()};
  if (copy) return grpc::ByteBuffer(slices, 1);
  slices[1] = grpc::Slice(const_cast<std::byte*>(bytes.data()), bytes.size(), DropKeep,
                          new std::shared_ptr<void>(std::move(keep)));
  return grpc::ByteBuffer(slices, 2);
}

gpr_timespec TimeOf(wire::Deadline deadline) {
  if (deadline == wire::Deadline{}) return gpr_time_0(GPR_CLOCK_MONOTONIC);
  if (deadline == wire::Deadline::max()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  auto left = deadline - std::chrono::steady_clock::now();
  int64_t nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(std::max<int64_t>(nanoseconds, 0), GPR_TIMESPAN));
}

}  // namespace

std::string ControlBody(const ReceivedFrame& frame) {
  std::string body;
  if (frame.bytes > kMaxControlBytes) return body;
  for (std::span<const std::byte> part : frame.body) {
    body.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  return body;
}

template <class Stream>
GrpcStream<Stream>::~GrpcStream() {
  Drain();
}

template <class Stream>
void GrpcStream<Stream>::Drain() {
  {
    base::MutexLock lock(wake_mutex_);
    if (drained_) return;
    drained_ = true;
  }
  alarm_.Cancel();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

template <class Stream>
void GrpcStream<Stream>::StartRead() {
  reading_ = true;
  stream_->Read(&read_buffer_, TagOf(kReadTag));
}

template <class Stream>
void GrpcStream<Stream>::StartWrite(const FrameHeader& header, std::span<const std::byte> bytes,
                                    std::shared_ptr<void> keep) {
  stream_->Write(BuildMessage(header, bytes, std::move(keep)), TagOf(kWriteTag));
}

template <class Stream>
bool GrpcStream<Stream>::ParseFrame() {
  received_.body.clear();
  if (slices_ == nullptr) slices_ = std::make_shared<std::vector<grpc::Slice>>();
  slices_->clear();
  if (!read_buffer_.Dump(slices_.get()).ok()) return false;
  size_t header_bytes = 0;
  size_t total = 0;
  auto* header = reinterpret_cast<std::byte*>(&received_.header);
  for (const grpc::Slice& slice : *slices_) {
    std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(slice.begin()),
                                     slice.size());
    size_t take = std::min(bytes.size(), sizeof(FrameHeader) - header_bytes);
    std::memcpy(header + header_bytes, bytes.data(), take);
    header_bytes += take;
    bytes = bytes.subspan(take);
    total += bytes.size();
    if (!bytes.empty()) received_.body.push_back(bytes);
  }
  received_.bytes = total;
  return header_bytes == sizeof(FrameHeader) && total <= wire::kMaxBatchBytes;
}

template <class Stream>
MessageStream::Event GrpcStream<Stream>::Wait(wire::Deadline deadline) {
  if (deadline != wire::Deadline{}) base::AssertNoRankedLockHeld();
  void* tag = nullptr;
  bool ok = false;
  auto status = queue_.AsyncNext(&tag, &ok, TimeOf(deadline));
  if (status == grpc::CompletionQueue::TIMEOUT) return Event::kNone;
  if (status == grpc::CompletionQueue::SHUTDOWN) return Event::kBroken;
  switch (static_cast<Tag>(reinterpret_cast<intptr_t>(tag))) {
    case kReadTag:
      reading_ = false;
      return ok && ParseFrame() ? Event::kRead : Event::kBroken;
    case kWriteTag:
      if (ok) return Event::kWritten;
      // The call is over; the peer's last frame may still be unread, and the read reports the end.
      return reading_ ? Event::kNone : Event::kBroken;
    case kWakeTag: {
      base::MutexLock lock(wake_mutex_);
      wake_set_ = false;
      return Event::kWoken;
    }
    default:
      return ok ? Event::kWoken : Event::kBroken;
  }
}

template <class Stream>
void GrpcStream<Stream>::Wake() {
  base::MutexLock lock(wake_mutex_);
  if (drained_ || wake_set_) return;
  wake_set_ = true;
  RingAtOnce(&alarm_, &queue_, TagOf(kWakeTag));
}

template class GrpcStream<ClientReaderWriter>;
template class GrpcStream<ServerReaderWriter>;

std::unique_ptr<ClientStream> ClientStream::Connect(const std::shared_ptr<grpc::Channel>& channel,
                                                    std::chrono::milliseconds timeout,
                                                    const char* method) {
  auto self = std::make_unique<ClientStream>();
  grpc::GenericStub stub(channel);
  self->stream_ = stub.PrepareCall(&self->context_, method, &self->queue_);
  self->stream_->StartCall(TagOf(kStartTag));
  if (self->Wait(std::chrono::steady_clock::now() + timeout) != Event::kWoken) {
    self->End(true);
    return nullptr;
  }
  return self;
}

template <class Stream>
bool GrpcStream<Stream>::AwaitFinish() {
  base::AssertNoRankedLockHeld();
  auto limit =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(kFinishMs, GPR_TIMESPAN));
  void* tag = nullptr;
  bool ok = false;
  while (queue_.AsyncNext(&tag, &ok, limit) == grpc::CompletionQueue::GOT_EVENT) {
    if (tag == TagOf(kFinishTag)) return true;
  }
  return false;
}

std::string ClientStream::End(bool cancel) {
  if (cancel) context_.TryCancel();
  grpc::Status status;
  stream_->Finish(&status, TagOf(kFinishTag));
  // The server ends the call by itself once it has read our last frame or sent its own.
  if (!AwaitFinish()) context_.TryCancel();
  Drain();
  code_ = status.error_code();
  return status.ok() || cancel ? std::string() : status.error_message();
}

std::string ServerStream::End(bool cancel) {
  if (cancel) {
    context_.TryCancel();
  } else {
    stream_->Finish(status_, TagOf(kFinishTag));
    if (!AwaitFinish()) context_.TryCancel();
  }
  Drain();
  return {};
}

}  // namespace longwire::transport
