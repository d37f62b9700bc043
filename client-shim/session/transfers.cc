#include "client-shim/session/transfers.h"

#include <algorithm>

#include "client-shim/support/own_memory.h"
#include "wire/guards.h"

namespace longwire::shim {
namespace {

// Calls piece(address, bytes) for each contiguous run of the packed range [offset, offset + bytes).
template <class Piece>
void ForEachRun(const HostPlace& place, uint64_t offset, uint64_t bytes, Piece piece) {
  bool dense_rows = place.pitch == place.width || place.rows == 1;
  bool dense = dense_rows && (place.slices == 1 || place.slice_pitch == place.width * place.rows);
  while (bytes > 0) {
    uint64_t row = offset / place.width;
    uint64_t column = offset % place.width;
    std::byte* address = place.base + (row / place.rows) * place.slice_pitch +
                         (row % place.rows) * place.pitch + column;
    uint64_t run = place.width - column;
    if (dense) {
      run = bytes;
    } else if (dense_rows) {
      run = place.width * place.rows - offset % (place.width * place.rows);
    }
    run = std::min(run, bytes);
    piece(address, run);
    offset += run;
    bytes -= run;
  }
}

}  // namespace

void HostPlace::Scatter(uint64_t offset, std::span<const std::byte> packed) const {
  const std::byte* from = packed.data();
  ForEachRun(*this, offset, packed.size(), [&](std::byte* address, uint64_t bytes) {
    CopyToProgram(from, address, bytes);
    from += bytes;
  });
}

void HostPlace::Gather(uint64_t offset, std::span<std::byte> packed) const {
  std::byte* to = packed.data();
  ForEachRun(*this, offset, packed.size(), [&](std::byte* address, uint64_t bytes) {
    CopyFromProgram(address, to, bytes);
    to += bytes;
  });
}

void Transfers::ExpectDownload(uint64_t transfer, const HostPlace& place, bool persistent) {
  base::MutexLock lock(mutex_);
  Entry& entry = downloads_[transfer];
  entry.place = place;
  entry.missing = place.bytes();
  entry.persistent = persistent;
}

bool Transfers::DownloadIsInUse(uint64_t transfer) const {
  auto found = downloads_.find(transfer);
  return found != downloads_.end() && found->second.users != 0;
}

bool Transfers::HasLanded(uint64_t transfer, uint64_t bytes) const {
  auto found = downloads_.find(transfer);
  if (found == downloads_.end()) return true;
  // More than there is never comes: whoever waits is to see that (CanLand).
  return found->second.landed >= bytes || bytes > found->second.place.bytes();
}

bool Transfers::CanLand(uint64_t transfer, uint64_t bytes) {
  base::MutexLock lock(mutex_);
  auto found = downloads_.find(transfer);
  return found == downloads_.end() || bytes <= found->second.place.bytes();
}

void Transfers::DropDownload(uint64_t transfer) {
  base::MutexLock lock(mutex_);
  while (DownloadIsInUse(transfer)) landed_.Wait(lock);
  downloads_.erase(transfer);
}

bool Transfers::AwaitsBytes() {
  base::MutexLock lock(mutex_);
  return std::ranges::any_of(downloads_, [](const auto& entry) {
    return !entry.second.persistent && entry.second.missing != 0;
  });
}

bool Transfers::MayArrive(Entry& entry, uint64_t offset, uint64_t bytes) const {
  static const bool guard_off = wire::GuardIsOff("arrivals");
  uint64_t total = entry.place.bytes();
  const bool fits = offset <= total && bytes <= total - offset;
  if (!fits) return wire::kPlantedBug;
  if (guard_off) return true;
  return entry.persistent ? GraphsWrite() : entry.came.Take(offset, bytes);
}

bool Transfers::Arrive(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes) {
  base::MutexLock lock(mutex_);
  auto found = downloads_.find(transfer);
  if (found == downloads_.end()) return true;  // dropped: nobody wants the bytes any more
  Entry& entry = found->second;
  if (!MayArrive(entry, offset, bytes.size())) return false;
  // Without the lock, so that several lanes write at once; the entry stays while it has writers.
  HostPlace place = entry.place;
  ++entry.users;
  lock.Unlock();
  place.Scatter(offset, bytes);
  lock.Lock();
  --entry.users;
  entry.landed += bytes.size();
  entry.missing -= std::min<uint64_t>(entry.missing, bytes.size());
  if (entry.missing == 0 && !entry.persistent && entry.users == 0) downloads_.erase(transfer);
  landed_.NotifyAll();
  return true;
}

bool Transfers::WaitLanded(uint64_t transfer, uint64_t bytes,
                           std::chrono::steady_clock::time_point deadline) {
  base::MutexLock lock(mutex_);
  while (!HasLanded(transfer, bytes)) {
    if (!landed_.WaitUntil(lock, deadline)) return HasLanded(transfer, bytes);
  }
  return true;
}

bool Transfers::FindDownload(uint64_t transfer, HostPlace* place) {
  base::MutexLock lock(mutex_);
  auto found = downloads_.find(transfer);
  if (found == downloads_.end()) return false;
  *place = found->second.place;
  return true;
}

void Transfers::OfferImage(uint64_t transfer, const HostPlace& place) {
  base::MutexLock lock(mutex_);
  images_[transfer] = {place, false, false};
}

void Transfers::WithdrawImage(uint64_t transfer) {
  base::MutexLock lock(mutex_);
  while (images_[transfer].being_read) image_read_.Wait(lock);
  images_.erase(transfer);
}

bool Transfers::TakeImage(uint64_t transfer, HostPlace* place) {
  base::MutexLock lock(mutex_);
  auto found = images_.find(transfer);
  if (found == images_.end() || found->second.taken) return false;
  *place = found->second.place;
  found->second.taken = found->second.being_read = true;
  return true;
}

void Transfers::ImageRead(uint64_t transfer) {
  base::MutexLock lock(mutex_);
  images_[transfer].being_read = false;
  image_read_.NotifyAll();
}

}  // namespace longwire::shim
