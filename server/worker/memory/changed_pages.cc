#include "server/worker/memory/changed_pages.h"

#include <algorithm>
#include <bit>

#include "base/memory_sizes.h"

namespace longwire::worker {
namespace {

constexpr uint64_t kPage = base::kPageBytes;
constexpr uint64_t kBits = 64;

}  // namespace

ChangedPages::ChangedPages(uint64_t bytes)
    : pages_((bytes + kPage - 1) / kPage), bits_((pages_ + kBits - 1) / kBits, ~uint64_t{0}) {}

void ChangedPages::Mark(uint64_t offset, uint64_t bytes) {
  for (uint64_t page = offset / kPage; page * kPage < offset + bytes && page < pages_; ++page) {
    bits_[page / kBits] |= uint64_t{1} << page % kBits;
  }
}

uint64_t ChangedPages::Next(uint64_t page) const {
  for (; page < pages_; page = (page / kBits + 1) * kBits) {
    const uint64_t left = bits_[page / kBits] >> page % kBits;
    if (left != 0) return std::min(pages_, page + static_cast<uint64_t>(std::countr_zero(left)));
  }
  return pages_;
}

bool ChangedPages::Take(uint64_t page) {
  bits_[page / kBits] &= ~(uint64_t{1} << page % kBits);
  const bool zeros = page >= zeros_from_;
  zeros_from_ = std::max(zeros_from_, page + 1);
  return zeros;
}

}  // namespace longwire::worker
