#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/reason.h"
#include "base/start_thread.h"
#include "server/daemon/checkpoints/checkpoint_file.h"
#include "server/daemon/checkpoints/checkpoint_format.h"
#include "server/protocol/message.h"

namespace longwire::daemon {
namespace {

// Pieces that wait for each of the two threads.
constexpr size_t kWaitingPieces = 8;
// After these bytes the disk begins with them, so that little is left at the end.
constexpr uint64_t kWriteBack = uint64_t{8} << 20;

std::span<const std::byte> BytesOf(const void* data, size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

}  // namespace

CheckpointWriter::CheckpointWriter(int file, const std::optional<CheckpointKey>& key,
                                   uint64_t limit)
    : file_(file), limit_(limit), to_seal_(kWaitingPieces), to_write_(kWaitingPieces) {
  head_ = {kCheckpointFormat, moving::kVersion, key.has_value(), {}, LONGWIRE_VERSION};
  if (getrandom(head_.salt.data(), head_.salt.size(), 0) !=
      static_cast<ssize_t>(head_.salt.size())) {
    Fail("the system has no random bytes");
    return;
  }
  if (key) cipher_ = std::make_unique<PieceCipher>(*key, head_.salt);
  PackedHead packed;
  packed.sealed = head_.sealed;
  packed.salt.assign(head_.salt.begin(), head_.salt.end());
  packed.writer = head_.writer;
  const std::vector<std::byte> head = message::Pack(packed);
  const auto bytes = static_cast<uint32_t>(head.size());
  WriteAll(BytesOf(kCheckpointMagic.data(), kCheckpointMagic.size()));
  WriteAll(BytesOf(&bytes, sizeof(bytes)));
  WriteAll(head);
  if (!Chain(head, &chain_)) Fail("the digest cannot be computed");
  if (!base::StartThread(&sealer_, [this] { SealPieces(); }) ||
      !base::StartThread(&writer_, [this] { WritePieces(); })) {
    Fail("the system starts no more threads: " + base::Reason(errno));
  }
}

CheckpointWriter::~CheckpointWriter() { End(true); }

void CheckpointWriter::End(bool drops) {
  to_seal_.Close(drops);
  if (sealer_.joinable()) sealer_.join();
  to_write_.Close(drops);
  if (writer_.joinable()) writer_.join();
}

// The first problem counts. Nobody waits for room in the queues any more.
void CheckpointWriter::Fail(const std::string& problem) {
  {
    base::MutexLock lock(mutex_);
    if (problem_.empty()) problem_ = problem;
  }
  to_seal_.Close(true);
  to_write_.Close(true);
}

bool CheckpointWriter::IsGood() {
  base::MutexLock lock(mutex_);
  return problem_.empty();
}

bool CheckpointWriter::WriteAll(std::span<const std::byte> bytes) {
  if (bytes.size() > limit_ - written_) {
    Fail("the file would have more than " + std::to_string(limit_ >> 20) +
         " MiB, which is what is left for it (checkpoint_own_bytes)");
    return false;
  }
  written_ += bytes.size();
  while (!bytes.empty()) {
    ssize_t written = write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      Fail("the file cannot be written: " + base::Reason(errno));
      return false;
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

std::span<std::byte> CheckpointWriter::Space() {
  constexpr size_t kSize = sizeof(uint32_t);
  if (frame_.empty()) {
    // With room for what is put behind the content.
    frame_.reserve(kSize + kCheckpointPiece + kTagBytes + sizeof(Digest));
    frame_.resize(kSize + kCheckpointPiece);
    used_ = 0;
  }
  return std::span(frame_).subspan(kSize + used_);
}

bool CheckpointWriter::Filled(size_t bytes) {
  used_ += bytes;
  if (used_ == kCheckpointPiece) PassOn();
  return IsGood();
}

void CheckpointWriter::PassOn() {
  frame_.resize(sizeof(uint32_t) + used_);
  std::memcpy(frame_.data(), &used_, sizeof(used_));
  (void)to_seal_.Push(std::exchange(frame_, {}));
  used_ = 0;
}

bool CheckpointWriter::Write(std::span<const std::byte> bytes) {
  while (IsGood() && !bytes.empty()) {
    const std::span<std::byte> space = Space();
    const size_t part = std::min(bytes.size(), space.size());
    std::memcpy(space.data(), bytes.data(), part);
    bytes = bytes.subspan(part);
    Filled(part);
  }
  return IsGood();
}

// A thread: encrypts and hashes, which needs what came before.
void CheckpointWriter::SealPieces() {
  std::vector<std::byte> frame;
  while (to_seal_.Pop(&frame)) {
    const size_t size = frame.size() - sizeof(uint32_t);
    if (cipher_) frame.resize(frame.size() + kTagBytes);
    auto body = std::span(frame).subspan(sizeof(uint32_t));
    if (cipher_ && !cipher_->Seal(chain_, size == 0, body.first(size), body.subspan(size))) {
      return Fail("it cannot be encrypted");
    }
    if (!Chain(frame, &chain_)) return Fail("the digest cannot be computed");
    const auto digest = BytesOf(chain_.data(), chain_.size());
    frame.insert(frame.end(), digest.begin(), digest.end());
    if (!to_write_.Push(std::move(frame))) return;
  }
}

// Another one: the disk works while the next pieces are hashed.
void CheckpointWriter::WritePieces() {
  std::vector<std::byte> frame;
  uint64_t begun = 0;  // bytes that the disk has begun with
  while (to_write_.Pop(&frame)) {
    if (!WriteAll(frame)) return;
    if (written_ - begun < kWriteBack) continue;
    // Only advice: whether it is on the disk the end tells.
    (void)sync_file_range(file_, static_cast<off_t>(begun), static_cast<off_t>(written_ - begun),
                          SYNC_FILE_RANGE_WRITE);
    begun = written_;
  }
}

bool CheckpointWriter::Finish(std::string* sentence) {
  if (IsGood()) {
    if (used_ != 0) PassOn();
    Space();
    PassOn();  // a piece of no bytes is the end
  }
  End(false);
  if (IsGood() && fsync(file_) != 0) {
    Fail("the file cannot be written: " + base::Reason(errno));
  }
  base::MutexLock lock(mutex_);
  *sentence = problem_;
  return problem_.empty();
}

}  // namespace longwire::daemon
