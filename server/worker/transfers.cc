#include "server/worker/transfers.h"

#include <cstring>

#include "wire/guards.h"
#include "wire/limits.h"

namespace longwire::worker {
namespace {

const bool kChecksSizes = !wire::GuardIsOff("sizes");

// True if `bytes` from `offset` on lie within what a copy of `announced` bytes was said to be.
bool IsInside(uint64_t offset, uint64_t bytes, uint64_t announced) {
  return !kChecksSizes || (offset <= announced && bytes <= announced - offset);
}

}  // namespace

bool Transfers::ExpectCopy(uint64_t transfer, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (transfer == 0) return false;
  auto [place, added] = copies_.try_emplace(transfer);
  place->second.bytes = bytes;
  return added;
}

Transfers::Piece* Transfers::Front(uint64_t transfer, uint64_t offset, bool* wrong) {
  std::lock_guard lock(mutex_);
  auto found = copies_.find(transfer);
  *wrong = found == copies_.end();
  if (*wrong || found->second.pieces.empty()) return nullptr;
  Piece& piece = found->second.pieces.front();
  *wrong = piece.offset != offset;
  return *wrong ? nullptr : &piece;  // only the log thread takes pieces out
}

void Transfers::PopFront(uint64_t transfer) {
  uint64_t credit = 0;
  {
    std::lock_guard lock(mutex_);
    auto found = copies_.find(transfer);
    if (found == copies_.end() || found->second.pieces.empty()) return;
    Piece& piece = found->second.pieces.front();
    kept_ -= piece.bytes.size();
    if (!piece.credited) credit = piece.bytes.size();
    found->second.pieces.pop_front();
  }
  if (credit != 0) credit_(credit);
}

void Transfers::FinishCopy(uint64_t transfer) {
  uint64_t credit = 0;
  {
    std::lock_guard lock(mutex_);
    auto found = copies_.find(transfer);
    if (found == copies_.end()) return;
    Copy& copy = found->second;
    for (Piece& piece : copy.pieces) {
      kept_ -= piece.bytes.size();
      if (!piece.credited) credit += piece.bytes.size();
    }
    copy.pieces.clear();
    copy.finished = true;
    if (copy.arrived >= copy.bytes) copies_.erase(found);
  }
  if (credit != 0) credit_(credit);
}

void Transfers::AttachGraph(const std::shared_ptr<GraphPart>& part) {
  std::lock_guard lock(mutex_);
  graphs_[part->read.transfer] = part;
}

void Transfers::DetachGraph(uint64_t transfer) {
  std::lock_guard lock(mutex_);
  graphs_.erase(transfer);
}

bool Transfers::ArrivedCopy(Copy& copy, uint64_t offset, std::span<const std::byte> bytes) {
  if (!IsInside(offset, bytes.size(), copy.bytes)) return false;
  copy.arrived += bytes.size();
  if (copy.finished) return true;
  if (kept_ > limits_.uploads) return false;  // the client sends without credit
  Piece piece;
  piece.offset = offset;
  piece.bytes.assign(bytes.begin(), bytes.end());
  // Past this a blocked stream's copies hold credit.
  piece.credited = kept_ < limits_.uploads - limits_.window;
  kept_ += bytes.size();
  copy.pieces.push_back(std::move(piece));
  return true;
}

bool Transfers::Arrived(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes) {
  bool credit = true;
  std::shared_ptr<GraphPart> part;  // may be the last to hold it: let go after the lock
  {
    std::lock_guard lock(mutex_);
    if (auto found = copies_.find(transfer); found != copies_.end()) {
      Copy& copy = found->second;
      if (!ArrivedCopy(copy, offset, bytes)) return false;
      credit = copy.finished || copy.pieces.back().credited;
      if (copy.finished && copy.arrived >= copy.bytes) copies_.erase(found);
    } else if (auto graph = graphs_.find(transfer); graph != graphs_.end()) {
      part = graph->second.lock();
      if (part != nullptr) {
        GraphCopy& copy = part->read;
        if (!IsInside(offset, bytes.size(), copy.bytes)) return false;
        std::memcpy(copy.data + offset, bytes.data(), bytes.size());
        copy.received += bytes.size();
      }
    } else {
      auto& image = images_[transfer];
      if (offset != image.size() || bytes.size() > wire::kMaxImageBytes - image_bytes_) {
        return false;
      }
      image.insert(image.end(), bytes.begin(), bytes.end());
      image_bytes_ += bytes.size();
      credit = false;  // images are outside the client's window
    }
  }
  if (credit && !bytes.empty()) credit_(bytes.size());
  return true;
}

bool Transfers::TakeImage(uint64_t transfer, uint64_t bytes, std::vector<std::byte>* image) {
  std::lock_guard lock(mutex_);
  auto found = images_.find(transfer);
  if (found == images_.end()) return false;
  *image = std::move(found->second);
  images_.erase(found);
  image_bytes_ -= image->size();
  if (image->size() != bytes) return false;
  image->resize(image->size() + kPadding);
  return true;
}

}  // namespace longwire::worker
