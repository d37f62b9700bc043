#include "server/worker/support/down_writer.h"

#include <algorithm>
#include <cstring>

#include "server/worker/support/host_memory.h"
#include "server/worker/support/log_line.h"
#include "wire/limits.h"
#include "wire/rings/pieces.h"
#include "wire/switches.h"

namespace longwire::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Bulk data waits while this much is queued; 8 MiB more than fills the ring again at once.
constexpr size_t kBulkQueueBytes = size_t{8} << 20;
// Replies, progress and errors of a client that does not read: past this the session is over.
constexpr size_t kMaxQueueBytes = kMaxAnswerBytes;
// More than this does not wait for another record of this kind: bytes of a large copy leave piece
// by piece, the last one with the copy's end.
constexpr size_t kMaxTogether = size_t{16} << 10;
constexpr size_t kTextPiece = size_t{64} << 10;

template <class T>
std::span<const std::byte> AsBytes(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

wire::DownHeader HeaderOf(wire::DownKind kind) {
  wire::DownHeader header{};
  header.kind = static_cast<uint16_t>(kind);
  return header;
}

void Fill(std::byte* to, const wire::DownHeader& header, std::span<const std::byte> first,
          std::span<const std::byte> second) {
  std::memcpy(to, &header, sizeof(header));
  to += sizeof(header);
  if (!first.empty()) std::memcpy(to, first.data(), first.size());
  to += first.size();
  if (!second.empty()) std::memcpy(to, second.data(), second.size());
  to += second.size();
  std::memset(to, 0, wire::AlignRecord(header.bytes) - header.bytes);
}

}  // namespace

DownWriter::DownWriter(std::shared_ptr<wire::RingMemory> memory, HostMemory* host_memory)
    : host_memory_(host_memory), producer_(std::move(memory)), thread_([this] { Drain(); }) {}

DownWriter::~DownWriter() {
  {
    base::MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.NotifyAll();
  producer_.memory().PokeProducer();
  thread_.join();
}

bool DownWriter::WriteToRing(const wire::DownHeader& header, std::span<const std::byte> first,
                             std::span<const std::byte> second) {
  size_t bytes = wire::AlignRecord(header.bytes);
  if (together_ && unpublished_ != 0 && unpublished_ + bytes > kMaxTogether) Publish();
  std::byte* room = producer_.Reserve(bytes);
  if (room == nullptr) return false;
  Fill(room, header, first, second);
  producer_.Add(bytes);
  unpublished_ += bytes;
  return true;
}

void DownWriter::Reopen(std::shared_ptr<wire::RingMemory> memory) {
  base::MutexLock lock(mutex_);
  producer_ = wire::RingProducer(std::move(memory));
  muted_ = false;
}

bool DownWriter::HasWrittenAll() {
  PayCredit();
  base::MutexLock lock(mutex_);
  return queue_.empty() && unpublished_ == 0;
}

void DownWriter::CountQueued() {
  if (host_memory_ != nullptr) host_memory_->Set(HostUse::kAnswers, queued_bytes_);
}

void DownWriter::Publish() {
  unpublished_ = 0;
  producer_.Publish();
}

DownWriter::Together::Together(DownWriter& writer) : writer_(writer) {
  static const bool off = wire::IsSwitchedOff("joined-ends");
  base::MutexLock lock(writer_.mutex_);
  writer_.together_ = !off;
}

DownWriter::Together::~Together() {
  base::MutexLock lock(writer_.mutex_);
  writer_.together_ = false;
  if (writer_.unpublished_ != 0) writer_.Publish();
}

void DownWriter::Write(wire::DownHeader header, std::span<const std::byte> first,
                       std::span<const std::byte> second, bool may_wait) {
  size_t bytes = sizeof(header) + first.size() + second.size();
  if (bytes > wire::kMaxRecordBytes) {
    LogLine("a record of %zu bytes is too large for the down log and was dropped", bytes);
    return;
  }
  header.bytes = static_cast<uint32_t>(bytes);
  base::MutexLock lock(mutex_);
  if (producer_.memory().closed() || muted_) return;
  WriteOwed();
  if (queue_.empty() && WriteToRing(header, first, second)) {
    if (!together_) Publish();
    return;
  }
  // The queue's thread has the producer from here on.
  if (unpublished_ != 0) Publish();
  while (may_wait && queued_bytes_ >= kBulkQueueBytes && !stop_) changed_.Wait(lock);
  if (queued_bytes_ > kMaxQueueBytes) {
    LogLine("the client does not read its answers (%zu bytes wait): session over", queued_bytes_);
    producer_.memory().Close(999);  // CUDA_ERROR_UNKNOWN
    return;
  }
  Queue(header, first, second);
}

void DownWriter::Queue(const wire::DownHeader& header, std::span<const std::byte> first,
                       std::span<const std::byte> second) {
  std::vector<std::byte> record(wire::AlignRecord(header.bytes));
  Fill(record.data(), header, first, second);
  queued_bytes_ += record.size();
  CountQueued();
  queue_.push_back(std::move(record));
  changed_.NotifyAll();
}

void DownWriter::Drain() {
  base::MutexLock lock(mutex_);
  while (true) {
    while (!stop_ && queue_.empty()) changed_.Wait(lock);
    if (stop_) return;
    size_t bytes = queue_.front().size();
    std::byte* room = producer_.Reserve(bytes);
    if (room == nullptr) {
      if (producer_.memory().closed()) {
        queue_.clear();
        queued_bytes_ = 0;
        CountQueued();
        changed_.NotifyAll();
        continue;
      }
      lock.Unlock();
      producer_.WaitForSpace(bytes, steady_clock::now() + milliseconds(100));
      lock.Lock();
      continue;
    }
    std::memcpy(room, queue_.front().data(), bytes);
    producer_.Commit(bytes);
    queue_.pop_front();
    queued_bytes_ -= bytes;
    CountQueued();
    changed_.NotifyAll();
  }
}

bool DownWriter::Rest() {
  base::MutexLock lock(mutex_);
  if (queue_.empty()) producer_.GiveBack();
  return !producer_.WorthGivingBack();
}

void DownWriter::CloseAfterFlush(uint32_t code, milliseconds limit) {
  base::MutexLock lock(mutex_);
  const auto deadline = steady_clock::now() + limit;
  while (!queue_.empty() && !producer_.memory().closed()) {
    if (!changed_.WaitUntil(lock, deadline)) break;
  }
  if (unpublished_ != 0) Publish();  // another thread's end waits for what comes with it
  producer_.memory().Close(code);
}

void DownWriter::Reply(uint64_t position, int32_t code, std::span<const std::byte> payload) {
  wire::DownHeader header = HeaderOf(wire::DownKind::kReply);
  header.code = code;
  header.position = position;
  if (payload.size() > wire::kMaxRecordBytes - sizeof(header)) {
    LogLine("an answer of %zu bytes does not fit into a record", payload.size());
    header.code = 1;  // CUDA_ERROR_INVALID_VALUE
    payload = {};
  }
  Write(header, payload, {}, false);
}

void DownWriter::Progress(uint64_t stream, uint64_t position) {
  wire::DownHeader header = HeaderOf(wire::DownKind::kProgress);
  header.position = position;
  Write(header, AsBytes(stream), {}, false);
}

void DownWriter::Data(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes) {
  wire::DownHeader header = HeaderOf(wire::DownKind::kData);
  const size_t most = wire::LogPiece(bytes.size());
  while (!bytes.empty()) {
    auto piece = bytes.first(std::min(bytes.size(), most));
    uint64_t place[2] = {transfer, offset};
    Write(header, AsBytes(place), piece, true);
    offset += piece.size();
    bytes = bytes.subspan(piece.size());
  }
}

void DownWriter::Mirror(uint64_t mirror, std::span<const std::byte> delta) {
  Write(HeaderOf(wire::DownKind::kMirror), AsBytes(mirror), delta, true);
}

void DownWriter::Landing(uint64_t transfer, uint64_t bytes) {
  Write(HeaderOf(wire::DownKind::kLanding), AsBytes(transfer), AsBytes(bytes), false);
}

void DownWriter::Pull(uint64_t transfer) {
  Write(HeaderOf(wire::DownKind::kPull), AsBytes(transfer), {}, false);
}

void DownWriter::HostFunction(uint64_t ticket) {
  Write(HeaderOf(wire::DownKind::kHostFunction), AsBytes(ticket), {}, false);
}

void DownWriter::Release(uint64_t transfer, uint64_t ticket) {
  Write(HeaderOf(wire::DownKind::kRelease), AsBytes(transfer), AsBytes(ticket), false);
}

void DownWriter::Error(uint64_t position, int32_t code, uint16_t flags, uint32_t context,
                       std::string_view text) {
  wire::DownHeader header = HeaderOf(wire::DownKind::kError);
  header.flags = flags;
  header.code = code;
  header.position = position;
  Write(header, AsBytes(context), std::as_bytes(std::span(text.data(), text.size())), false);
}

void DownWriter::Text(uint16_t flags, std::span<const std::byte> bytes) {
  wire::DownHeader header = HeaderOf(wire::DownKind::kText);
  header.flags = flags;
  while (!bytes.empty()) {
    auto piece = bytes.first(std::min(bytes.size(), kTextPiece));
    Write(header, piece, {}, true);
    bytes = bytes.subspan(piece.size());
  }
}

void DownWriter::HoldCredit(uint64_t bytes) {
  base::MutexLock lock(mutex_);
  held_credit_ = wire::IsSwitchedOff("joined-credits") ? 0 : bytes;
}

void DownWriter::Credit(uint64_t bytes) {
  base::MutexLock lock(mutex_);
  if (producer_.memory().closed() || muted_) return;
  owed_credit_ += bytes;
  if (owed_credit_ < held_credit_) return;
  WriteOwed();
  if (!together_ && unpublished_ != 0) Publish();
}

uint64_t DownWriter::Backlog() {
  base::MutexLock lock(mutex_);
  return producer_.memory().kept() + unpublished_ + queued_bytes_;
}

bool DownWriter::OwesCredit() {
  base::MutexLock lock(mutex_);
  return owed_credit_ != 0;
}

void DownWriter::PayCredit() {
  base::MutexLock lock(mutex_);
  if (producer_.memory().closed() || muted_) return;
  WriteOwed();
  if (!together_ && unpublished_ != 0) Publish();
}

void DownWriter::WriteOwed() {
  if (owed_credit_ == 0) return;
  wire::DownHeader header = HeaderOf(wire::DownKind::kCredit);
  header.bytes = sizeof(header) + sizeof(owed_credit_);
  if (!queue_.empty() || !WriteToRing(header, AsBytes(owed_credit_), {})) {
    // The queue's thread has the producer from here on.
    if (unpublished_ != 0) Publish();
    Queue(header, AsBytes(owed_credit_), {});
  }
  owed_credit_ = 0;
}

void DownWriter::Slot(uint64_t offset) {
  Write(HeaderOf(wire::DownKind::kSlot), AsBytes(offset), {}, false);
}

void DownWriter::Reclaim(const wire::ReclaimRequest& request) {
  Write(HeaderOf(wire::DownKind::kReclaim), AsBytes(request), {}, false);
}

}  // namespace longwire::worker
