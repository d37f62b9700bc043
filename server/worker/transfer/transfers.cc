#include "server/worker/transfer/transfers.h"

#include <algorithm>
#include <cstring>

#include "wire/guards.h"
#include "wire/limits.h"

namespace longwire::worker {
namespace {

const bool kChecksSizes = !wire::GuardIsOff("sizes");

// Copies whose bytes may come before their record: each thread of a client has one at most.
constexpr size_t kMaxEarly = 65536;

// Copies that are known: as many as the streams' queues hold, and those whose bytes never came.
constexpr size_t kMaxCopies = size_t{1} << 19;

// What an image takes beside its bytes, and a piece of a copy.
constexpr size_t kPlaceBytes = 192;
constexpr size_t kPieceBytes = 160;

// True if `bytes` from `offset` on lie within what a copy of `announced` bytes was said to be.
bool IsInside(uint64_t offset, uint64_t bytes, uint64_t announced) {
  return !kChecksSizes || (offset <= announced && bytes <= announced - offset);
}

}  // namespace

bool Transfers::ExpectCopy(uint64_t transfer, uint64_t bytes) {
  base::MutexLock lock(mutex_);
  if (transfer == 0 || copies_.size() >= kMaxCopies) return false;
  auto [place, added] = copies_.try_emplace(transfer);
  Copy& copy = place->second;
  if (!added && copy.announced) return false;
  if (!added) --early_;
  copy.announced = true;
  copy.bytes = bytes;
  return true;
}

void Transfers::BeginLanding(uint64_t transfer, const std::shared_ptr<Stream>& stream) {
  {
    base::MutexLock lock(mutex_);
    auto found = copies_.find(transfer);
    if (found != copies_.end()) found->second.stream = stream;
  }
  if (uses_.lands) uses_.lands();
}

bool Transfers::Take(uint64_t transfer, Piece* piece, bool* wrong) {
  base::MutexLock lock(mutex_);
  auto found = copies_.find(transfer);
  *wrong = found == copies_.end();
  if (*wrong || found->second.pieces.empty()) return false;
  Copy& copy = found->second;
  const Piece& front = copy.pieces.front();
  // What came before the record was not held against it yet.
  *wrong = front.offset > copy.bytes || front.size > copy.bytes - front.offset;
  if (*wrong) return false;
  *piece = std::move(copy.pieces.front());
  copy.pieces.pop_front();
  return true;
}

void Transfers::PutBack(uint64_t transfer, Piece piece) {
  base::MutexLock lock(mutex_);
  auto found = copies_.find(transfer);
  if (found != copies_.end()) found->second.pieces.push_front(std::move(piece));
}

void Transfers::Used(const Piece& piece) {
  if (piece.kept) {
    base::MutexLock lock(mutex_);
    Keep(-static_cast<int64_t>(piece.size + kPieceBytes));
  }
  if (!piece.credited) uses_.credit(piece.size);
}

void Transfers::Drop(Copy& copy, const Piece& piece, uint64_t* credit) {
  if (piece.kept) Keep(-static_cast<int64_t>(piece.size + kPieceBytes));
  if (!piece.credited) *credit += piece.size;
  if (piece.pinned.data != nullptr) uses_.release(copy.stream.get(), piece.pinned);
}

void Transfers::EraseIfDone(uint64_t transfer, const Copy& copy) {
  if (copy.finished && copy.landing == 0 && copy.arrived >= copy.bytes) copies_.erase(transfer);
}

void Transfers::FinishCopy(uint64_t transfer) {
  uint64_t credit = 0;
  {
    base::MutexLock lock(mutex_);
    auto found = copies_.find(transfer);
    if (found == copies_.end()) return;
    Copy& copy = found->second;
    for (Piece& piece : copy.pieces) Drop(copy, piece, &credit);
    copy.pieces.clear();
    copy.finished = true;
    EraseIfDone(transfer, copy);
  }
  if (credit != 0) uses_.credit(credit);
  if (uses_.lands) uses_.lands();
}

bool Transfers::Revise(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes) {
  base::MutexLock lock(mutex_);
  auto found = copies_.find(transfer);
  if (found == copies_.end()) return true;
  Copy& copy = found->second;
  if (copy.announced && !IsInside(offset, bytes.size(), copy.bytes)) return false;
  if (copy.settled) return true;
  for (Piece& piece : copy.pieces) {
    uint64_t from = std::max(offset, piece.offset);
    uint64_t to = std::min(offset + bytes.size(), piece.offset + piece.size);
    if (from >= to) continue;
    std::byte* data = piece.pinned.data != nullptr ? piece.pinned.data : piece.bytes.data();
    std::memcpy(data + (from - piece.offset), bytes.data() + (from - offset), to - from);
  }
  return true;
}

void Transfers::PullInstead(uint64_t transfer) {
  uint64_t credit = 0;
  {
    base::MutexLock lock(mutex_);
    auto found = copies_.find(transfer);
    if (found == copies_.end() || found->second.settled || found->second.finished) return;
    Copy& copy = found->second;
    for (Piece& piece : copy.pieces) {
      copy.arrived -= piece.size;
      Drop(copy, piece, &credit);
    }
    copy.pieces.clear();
    copy.pulled = true;
  }
  if (credit != 0) uses_.credit(credit);
}

bool Transfers::Settle(uint64_t transfer) {
  base::MutexLock lock(mutex_);
  auto found = copies_.find(transfer);
  if (found == copies_.end()) return false;
  found->second.settled = true;
  return found->second.pulled;
}

void Transfers::Attach(uint64_t transfer, const std::shared_ptr<TransferTarget>& target) {
  base::MutexLock lock(mutex_);
  targets_[transfer] = target;
}

void Transfers::Detach(uint64_t transfer) {
  base::MutexLock lock(mutex_);
  targets_.erase(transfer);
}

void Transfers::PutAway(Stream* stream, std::span<const std::byte> bytes, Way way, Piece* piece) {
  if (way == Way::kSlot) {
    piece->pinned = {const_cast<std::byte*>(bytes.data()), bytes.size(), StagingBlock::kSlot};
  } else if (stream != nullptr && uses_.acquire(*stream, bytes.size(), &piece->pinned)) {
    std::memcpy(piece->pinned.data, bytes.data(), bytes.size());
  } else {
    piece->bytes.assign(bytes.begin(), bytes.end());
  }
}

bool Transfers::ArrivedCopy(uint64_t transfer, Copy& copy, uint64_t offset,
                            std::span<const std::byte> bytes, Way way, uint64_t* credit) {
  if (copy.announced && !IsInside(offset, bytes.size(), copy.bytes)) return false;
  copy.arrived += bytes.size();
  Piece piece;
  piece.offset = offset;
  piece.size = bytes.size();
  if (!copy.finished) {
    if (kept_ > limits_.uploads) return false;  // the client sends without credit
    // Past this a blocked stream's copies hold credit.
    piece.credited = kept_ < limits_.uploads - limits_.window;
    if (!piece.credited) *credit = 0;
    Keep(static_cast<int64_t>(bytes.size() + kPieceBytes));
    // Several lanes copy at once, so not under the lock.
    ++copy.landing;
    std::shared_ptr<Stream> stream = copy.stream;
    mutex_.Unlock();
    PutAway(stream.get(), bytes, way, &piece);
    mutex_.Lock();
    --copy.landing;
    if (way == Way::kBridge) Note(bytes.size(), &piece);
    if (copy.finished) {
      Drop(copy, piece, credit);
    } else if (piece.pinned.data != nullptr) {
      // First: it holds what those in ordinary memory wait for.
      copy.pieces.push_front(std::move(piece));
    } else {
      copy.pieces.push_back(std::move(piece));
    }
  } else if (way == Way::kSlot) {
    PutAway(nullptr, bytes, way, &piece);
    uses_.release(nullptr, piece.pinned);
  }
  EraseIfDone(transfer, copy);
  return true;
}

void Transfers::Note(size_t bytes, Piece* piece) {
  uses_.figures.Received(bytes);
  if (piece->pinned.data == nullptr) uses_.figures.TookOrdinaryMemory();
  piece->stored = BridgeFigures::Clock::now();
}

Transfers::Landed Transfers::MayLand(uint64_t transfer, uint64_t offset, uint64_t bytes,
                                     std::shared_ptr<Stream>* stream) {
  base::MutexLock lock(mutex_);
  auto found = copies_.find(transfer);
  if (found == copies_.end() || !found->second.announced) return Landed::kNotYet;
  Copy& copy = found->second;
  if (!IsInside(offset, bytes, copy.bytes)) return Landed::kWrong;
  if (copy.finished) {
    copy.arrived += bytes;
    EraseIfDone(transfer, copy);
    return Landed::kTaken;
  }
  if (copy.stream == nullptr) return Landed::kNotYet;
  // What is on its way to the device counts, too.
  if (copy.stream->staging_blocks.load() * bytes >= limits_.window) return Landed::kNotYet;
  ++copy.landing;
  *stream = copy.stream;
  return Landed::kTaken;
}

void Transfers::Landing(uint64_t transfer, Piece piece) {
  uint64_t credit = 0;
  base::MutexLock lock(mutex_);
  auto found = copies_.find(transfer);
  if (found == copies_.end()) return;  // `landing` has kept it
  Copy& copy = found->second;
  --copy.landing;
  if (piece.pinned.data != nullptr) {
    copy.arrived += piece.size;
    if (copy.finished) {
      Drop(copy, piece, &credit);
    } else {
      copy.pieces.push_back(std::move(piece));
    }
  }
  EraseIfDone(transfer, copy);
}

Transfers::Landed Transfers::Land(uint64_t transfer, uint64_t offset,
                                  std::span<const std::byte> bytes) {
  std::shared_ptr<Stream> stream;
  const Landed landed = MayLand(transfer, offset, bytes.size(), &stream);
  if (stream == nullptr) return landed;
  Piece piece;
  piece.offset = offset;
  piece.size = bytes.size();
  piece.credited = true;
  piece.kept = false;
  const bool there = uses_.acquire(*stream, bytes.size(), &piece.pinned);
  if (there) {
    const auto begun = BridgeFigures::Clock::now();
    std::memcpy(piece.pinned.data, bytes.data(), bytes.size());
    Note(bytes.size(), &piece);
    uses_.figures.Add(BridgeFigures::kStore, piece.stored - begun);
  }
  Landing(transfer, std::move(piece));
  return there ? Landed::kTaken : Landed::kNotYet;
}

Transfers::Copy* Transfers::FindCopy(uint64_t transfer, Way way, bool* refused) {
  auto found = copies_.find(transfer);
  if (found != copies_.end()) return &found->second;
  if (way == Way::kLog) return nullptr;
  *refused = transfer == 0 || early_ >= kMaxEarly;
  if (*refused) return nullptr;
  ++early_;
  return &copies_[transfer];
}

bool Transfers::Arrived(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes,
                        Way way) {
  uint64_t credit = bytes.size();
  std::shared_ptr<TransferTarget> target;  // may be the last to hold it: let go after the lock
  {
    base::MutexLock lock(mutex_);
    bool refused = false;
    Copy* copy = FindCopy(transfer, way, &refused);
    bool taken = copy != nullptr
                     ? ArrivedCopy(transfer, *copy, offset, bytes, way, &credit)
                     : !refused && ArrivedOther(transfer, offset, bytes, &target, &credit);
    if (!taken) return false;
  }
  if (credit != 0) uses_.credit(credit);
  return true;
}

bool Transfers::ArrivedOther(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes,
                             std::shared_ptr<TransferTarget>* target, uint64_t* credit) {
  if (auto found = targets_.find(transfer); found != targets_.end()) {
    *target = found->second.lock();
    if (*target == nullptr) return true;
    if (!IsInside(offset, bytes.size(), (*target)->bytes)) return false;
    std::memcpy((*target)->data + offset, bytes.data(), bytes.size());
    (*target)->received += bytes.size();
    return true;
  }
  *credit = 0;  // images are outside the client's window
  return ArrivedImage(transfer, offset, bytes);
}

bool Transfers::ArrivedImage(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes) {
  auto [place, added] = images_.try_emplace(transfer);
  ArrivingImage& arriving = place->second;
  Image& image = arriving.image;
  if (added) {
    image.share = HostMemory::Share(uses_.host_memory, HostUse::kImages);
    if (!image.share.Resize(kPlaceBytes)) return false;
  }
  if (arriving.refused) return true;
  const size_t before = image.bytes.size();
  const size_t needed = before + bytes.size() + kPadding;
  if (offset != before || needed > wire::kMaxImageBytes + kPadding) return false;
  if (needed > image.bytes.capacity()) {
    // A half more, so that not every piece moves it.
    size_t room = needed + before / 2;
    if (!image.share.Resize(kPlaceBytes + room) && !image.share.Resize(kPlaceBytes + needed)) {
      image.bytes = std::vector<std::byte>();
      image.share.Resize(kPlaceBytes);
      arriving.refused = true;
      image_arrived_.NotifyAll();
      return true;
    }
    image.bytes.reserve(std::max<size_t>(image.share.bytes() - kPlaceBytes, needed));
  }
  image.bytes.insert(image.bytes.end(), bytes.begin(), bytes.end());
  image_arrived_.NotifyAll();
  return true;
}

void Transfers::ExpectImage(uint64_t transfer, uint64_t bytes, HostMemory::Share share) {
  base::MutexLock lock(mutex_);
  auto [place, added] = images_.try_emplace(transfer);
  if (!added) return;  // its bytes came without being asked for
  Image& image = place->second.image;
  image.share = std::move(share);
  image.bytes.reserve(bytes + kPadding);
}

CUresult Transfers::TakeImage(uint64_t transfer, uint64_t bytes, Image* image) {
  base::MutexLock lock(mutex_);
  return TakeWholeImage(transfer, bytes, image);
}

bool Transfers::HasImage(uint64_t transfer, uint64_t bytes) const {
  auto found = images_.find(transfer);
  return found != images_.end() &&
         (found->second.refused || found->second.image.bytes.size() >= bytes);
}

CUresult Transfers::WaitForImage(uint64_t transfer, uint64_t bytes, Image* image) {
  base::MutexLock lock(mutex_);
  while (!stopped_ && !HasImage(transfer, bytes)) image_arrived_.Wait(lock);
  return stopped_ ? CUDA_ERROR_INVALID_IMAGE : TakeWholeImage(transfer, bytes, image);
}

CUresult Transfers::TakeWholeImage(uint64_t transfer, uint64_t bytes, Image* image) {
  auto found = images_.find(transfer);
  if (found == images_.end()) return CUDA_ERROR_INVALID_IMAGE;
  ArrivingImage arrived = std::move(found->second);
  images_.erase(found);
  if (arrived.refused) return CUDA_ERROR_OUT_OF_MEMORY;
  if (arrived.image.bytes.size() != bytes) return CUDA_ERROR_INVALID_IMAGE;
  *image = std::move(arrived.image);
  image->bytes.resize(bytes + kPadding);
  return CUDA_SUCCESS;
}

void Transfers::Keep(int64_t bytes) {
  kept_ += static_cast<uint64_t>(bytes);
  uses_.host_memory.Set(HostUse::kUploads, kept_);
}

bool Transfers::IsIdle() {
  base::MutexLock lock(mutex_);
  // Parts of graphs are targets as long as they live; their bytes come while a launch is under way.
  return copies_.empty() && images_.empty() && kept_ == 0;
}

void Transfers::Stop() {
  base::MutexLock lock(mutex_);
  stopped_ = true;
  image_arrived_.NotifyAll();
}

}  // namespace longwire::worker
