#include "client-shim/mirror/one_word.h"

#include <algorithm>
#include <atomic>

#include "base/memory_sizes.h"
#include "client-shim/mirror/mirror_table.h"
#include "client-shim/support/own_memory.h"
#include "wire/limits.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kLine = 64;
// Copied at a time.
constexpr uint64_t kBatchBytes = wire::kLookBytes;

}  // namespace

std::vector<std::vector<MirrorPart>> BatchesOf(std::span<const MirrorPart> parts) {
  std::vector<std::vector<MirrorPart>> batches(1);
  uint64_t room = kBatchBytes;
  for (MirrorPart part : parts) {
    while (part.bytes != 0) {
      if (room < kLine) {
        batches.emplace_back();
        room = kBatchBytes;
      }
      uint64_t bytes = part.bytes;
      if (bytes > room) {
        const uint64_t address = part.mirror->range.address + part.offset;
        bytes = room - (address + room) % kLine;
      }
      if (bytes == 0) {
        room = 0;
        continue;
      }
      batches.back().push_back({part.mirror, part.offset, bytes});
      part.offset += bytes;
      part.bytes -= bytes;
      room = bytes < room ? room - bytes : 0;
    }
  }
  return batches;
}

bool ProgramCopy::Make(std::span<const MirrorPart> parts) {
  uint64_t all = kLine;
  for (const MirrorPart& part : parts) all += part.bytes + 2 * kLine;
  bytes_.resize(all);
  from_.clear();
  to_.clear();
  ranges_.clear();
  uint64_t at = base::RoundUp(reinterpret_cast<uint64_t>(bytes_.data()), kLine);
  for (const MirrorPart& part : parts) {
    const uint64_t address = part.mirror->range.address + part.offset, bytes = part.bytes;
    auto* place = reinterpret_cast<std::byte*>(at + address % kLine);
    from_.push_back({reinterpret_cast<void*>(address), bytes});
    to_.push_back({place, bytes});
    ranges_.push_back({{place, bytes}, part.mirror->shadow + part.offset, address});
    at = base::RoundUp(at + address % kLine + bytes, kLine);
  }
  // The copies before this one are complete, and what is read later is read later.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool read = ReadOwnMemory(from_, to_);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return read;
}

OneWord::Found OneWord::FindFirst(std::span<const Batch> batches, size_t* batch,
                                  wire::ChangedWord* word) {
  Found found = Found::kNone;
  for (size_t i = 0; i < batches.size(); ++i) {
    if (!first_.Make(batches[i])) return Found::kUnreadable;
    wire::ChangedWord here;
    const wire::Difference difference = wire::FindDifference(first_.ranges(), &here);
    if (difference == wire::Difference::kNone) continue;
    if (difference == wire::Difference::kMore || found == Found::kWord) return Found::kMore;
    found = Found::kWord;
    *batch = i;
    *word = here;
  }
  return found;
}

OneWord::Found OneWord::Find(std::span<const MirrorPart> parts, Mirror** mirror,
                             wire::ChangedWord* word) {
  const std::vector<Batch> batches = BatchesOf(parts);
  size_t batch = 0;
  const Found found = FindFirst(batches, &batch, word);
  if (found != Found::kWord) return found;
  for (size_t i = 0; i < batches.size(); ++i) {
    if (!second_.Make(batches[i])) return Found::kUnreadable;
    wire::ChangedWord none;
    const bool same =
        i == batch ? wire::Confirms(second_.ranges(), *word)
                   : wire::FindDifference(second_.ranges(), &none) == wire::Difference::kNone;
    if (!same) return Found::kMore;
  }
  const MirrorPart& part = batches[batch][word->range];
  *mirror = part.mirror;
  word->offset += part.offset;
  return Found::kWord;
}

}  // namespace longwire::shim
