#include "server/worker/transfer/host_segment.h"

#include <fcntl.h>

#include <algorithm>

#include "base/memory_sizes.h"
#include "server/worker/support/log_line.h"
#include "wire/guards.h"

namespace longwire::worker {
namespace {

const bool kChecksParts = !wire::GuardIsOff("host_segment");

// Addresses for the segment: behind what is taken of a window, or at its end. Not everything that
// is free in the program is free here: the driver has reservations of its own.
std::vector<uint64_t> PlacesIn(const wire::Window& window, std::span<const wire::Window> taken,
                               uint64_t bytes) {
  constexpr uint64_t kBoundary = uint64_t{1} << 30;
  uint64_t first = std::max(window.base, kBoundary);  // never where null pointers lead
  for (const wire::Window& other : taken) {
    const bool inside = other.base >= window.base && other.base - window.base < window.bytes;
    if (inside) first = std::max(first, other.base + other.bytes);
  }
  first = base::RoundUp(first, kBoundary);
  const uint64_t end = base::RoundDown(window.base + window.bytes, kBoundary);
  if (first > end || bytes > end - first) return {};
  return {first, base::RoundDown(end - bytes, kBoundary)};
}

// The bytes from the first to the last that a place of MakePlace covers.
uint64_t Span(const CopyPlace& place) {
  uint64_t slices = (place.slices - 1) * place.pitch * place.height;
  return slices + (place.rows - 1) * place.pitch + place.width_bytes;
}

}  // namespace

void HostSegment::Make(uint64_t bytes) {
  bytes = bytes / kPart * kPart;
  if (bytes == 0) return;
  file_ = wire::MakeSegment("longwire-pinned", bytes);
  if (file_.valid()) mapping_ = wire::SegmentMapping::Map(file_.get(), bytes);
  if (mapping_ != nullptr) return;
  file_.Reset();
  LogLine("no segment for pinned memory of %llu bytes: its copies go through the rings",
          static_cast<unsigned long long>(bytes));
}

void HostSegment::Place(std::span<const wire::Window> free, std::span<const wire::Window> taken) {
  if (mapping_ == nullptr) return;
  for (const wire::Window& window : free) {
    for (uint64_t address : PlacesIn(window, taken, bytes())) {
      auto placed = wire::SegmentMapping::MapAt(file_.get(), bytes(), address);
      if (placed == nullptr) continue;
      mapping_ = std::move(placed);
      base_ = address;
      return;
    }
  }
  LogLine(
      "no addresses are free here and in the program for %llu bytes of pinned memory: kernels "
      "reach it through copies",
      static_cast<unsigned long long>(bytes()));
}

CUresult HostSegment::Pin(uint64_t offset, uint64_t bytes) {
  std::byte* part = mapping_->data() + offset;
  const unsigned mapped = base_ != 0 ? CU_MEMHOSTREGISTER_DEVICEMAP : 0;
  CUresult result = driver_.cuMemHostRegister_v2(part, bytes, CU_MEMHOSTREGISTER_PORTABLE | mapped);
  if (result != CUDA_SUCCESS || mapped == 0) return result;
  CUdeviceptr address = 0;
  result = driver_.cuMemHostGetDevicePointer_v2(&address, part, 0);
  if (result == CUDA_SUCCESS && address == base_ + offset) return CUDA_SUCCESS;
  driver_.cuMemHostUnregister(part);
  return result != CUDA_SUCCESS ? result : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult HostSegment::Add(uint64_t offset, uint64_t bytes) {
  bool inside = bytes != 0 && offset % kPart == 0 && bytes % kPart == 0 &&
                offset <= this->bytes() && bytes <= this->bytes() - offset;
  if (!inside) return CUDA_ERROR_INVALID_VALUE;
  {
    base::MutexLock lock(mutex_);
    auto next = parts_.lower_bound(offset);
    bool overlaps = next != parts_.end() && next->first < offset + bytes;
    if (next != parts_.begin()) {
      auto before = std::prev(next);
      overlaps |= before->first + before->second > offset;
    }
    if (overlaps) return CUDA_ERROR_INVALID_VALUE;
    if (!host_memory_.Take(HostUse::kPinned, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    parts_[offset] = bytes;
  }
  CUresult result = Pin(offset, bytes);
  if (result == CUDA_SUCCESS) return result;
  LogLine("the driver does not pin %llu bytes of the segment: error %d",
          static_cast<unsigned long long>(bytes), result);
  host_memory_.Give(HostUse::kPinned, bytes);
  base::MutexLock lock(mutex_);
  parts_.erase(offset);
  return result;
}

CUresult HostSegment::Remove(uint64_t offset) {
  uint64_t bytes = 0;
  {
    base::MutexLock lock(mutex_);
    auto found = parts_.find(offset);
    if (found == parts_.end()) return CUDA_ERROR_INVALID_VALUE;
    bytes = found->second;
  }
  CUresult result = driver_.cuMemHostUnregister(mapping_->data() + offset);
  fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
  host_memory_.Give(HostUse::kPinned, bytes);
  // Only now may it be a part again.
  base::MutexLock lock(mutex_);
  parts_.erase(offset);
  return result;
}

bool HostSegment::Find(const calls::Place& place, uint64_t bytes, CopyPlace* made) {
  if (bytes == 0 || !MakePlace(place, nullptr, bytes, made)) return false;
  // What is left of MakePlace's bounds cannot overflow; the place itself begins at its address.
  if (made->x_bytes != 0 || made->y != 0 || made->z != 0) return false;
  uint64_t span = Span(*made);
  base::MutexLock lock(mutex_);
  auto after = parts_.upper_bound(place.address);
  bool within = false;
  if (after != parts_.begin()) {
    auto [start, size] = *std::prev(after);
    uint64_t from = place.address - start;
    within = from <= size && span <= size - from;
  }
  if (!within && kChecksParts) return false;
  if (mapping_ == nullptr) return false;
  made->host = mapping_->data() + place.address;
  made->address = 0;
  return true;
}

std::byte* HostSegment::FindSlot(uint64_t offset, uint64_t bytes) {
  calls::Place place;
  place.address = offset;
  place.width_bytes = place.pitch = bytes;
  place.rows = place.slices = place.height = 1;
  CopyPlace made;
  return Find(place, bytes, &made) ? made.host : nullptr;
}

}  // namespace longwire::worker
