#include "client-shim/transfers.h"

#include <algorithm>
#include <cstring>

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
    std::memcpy(address, from, bytes);
    from += bytes;
  });
}

void HostPlace::Gather(uint64_t offset, std::span<std::byte> packed) const {
  std::byte* to = packed.data();
  ForEachRun(*this, offset, packed.size(), [&](std::byte* address, uint64_t bytes) {
    std::memcpy(to, address, bytes);
    to += bytes;
  });
}

void Transfers::ExpectDownload(uint64_t transfer, const HostPlace& place, bool persistent) {
  std::lock_guard<std::mutex> lock(mutex_);
  downloads_[transfer] = {place, place.bytes(), persistent};
}

void Transfers::DropDownload(uint64_t transfer) {
  std::lock_guard<std::mutex> lock(mutex_);
  downloads_.erase(transfer);
}

bool Transfers::Arrive(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = downloads_.find(transfer);
  if (found == downloads_.end()) return true;  // dropped: nobody wants the bytes any more
  Entry& entry = found->second;
  uint64_t total = entry.place.bytes();
  if (offset > total || bytes.size() > total - offset) return false;
  entry.place.Scatter(offset, bytes);
  entry.missing -= std::min<uint64_t>(entry.missing, bytes.size());
  if (entry.missing == 0 && !entry.persistent) downloads_.erase(found);
  return true;
}

bool Transfers::FindDownload(uint64_t transfer, HostPlace* place) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = downloads_.find(transfer);
  if (found == downloads_.end()) return false;
  *place = found->second.place;
  return true;
}

void Transfers::OfferUpload(uint64_t transfer, const HostPlace& place, bool persistent) {
  std::lock_guard<std::mutex> lock(mutex_);
  uploads_[transfer] = {place, place.bytes(), persistent};
}

void Transfers::DropUpload(uint64_t transfer) {
  std::lock_guard<std::mutex> lock(mutex_);
  uploads_.erase(transfer);
}

bool Transfers::FindUpload(uint64_t transfer, HostPlace* place) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = uploads_.find(transfer);
  if (found == uploads_.end()) return false;
  *place = found->second.place;
  if (!found->second.persistent) uploads_.erase(found);
  return true;
}

}  // namespace longwire::shim
