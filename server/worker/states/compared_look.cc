#include "server/worker/states/compared_look.h"

#include <algorithm>
#include <cstring>

#include "base/memory_sizes.h"
#include "wire/guards.h"
#include "wire/live/mirror_state.h"

namespace longwire::worker {
namespace {

constexpr uint64_t kShadowPage = base::kPageBytes;
// What one block of threads compares at a time.
constexpr uint64_t kTileBlocks = 1024;
// Room for changes at first, and what comes with the head.
constexpr uint64_t kFirstBlocks = 32 << 10, kBlocksWithHead = 4 << 10;
// What a step looks through for what the device does not have.
constexpr uint64_t kBytesAStep = uint64_t{64} << 20;

// As the kernels have them (compare_kernels.h).
struct ComparedHead {
  uint64_t wanted = 0;
  uint64_t compared = 0;
  uint64_t found[6] = {};  // by each pass
};
static_assert(StateTurns::kPasses <= 6);
struct Tile {
  uint64_t address = 0, shadow = 0, blocks = 0;
};

uint64_t FirstBlock(const ComparedLook::Part& part) {
  return base::RoundDown(part.mirror->address, kBlockBytes);
}
uint64_t BlocksOf(const ComparedLook::Part& part) {
  const uint64_t end = base::RoundUp(part.mirror->address + part.bytes, kBlockBytes);
  return (end - FirstBlock(part)) / kBlockBytes;
}

// The blocks of a page of the mirror's shadow, as entries for the device. Where the device has
// zeros, blocks of zeros are left out.
void AppendPage(const ComparedLook::Part& part, uint64_t page, bool zeros,
                std::vector<BlockEntry>* entries) {
  const Mirror& mirror = *part.mirror;
  const uint64_t begin = mirror.address + page * kShadowPage;
  const uint64_t end = mirror.address + std::min((page + 1) * kShadowPage, mirror.bytes);
  for (uint64_t at = base::RoundDown(begin, kBlockBytes); at < end; at += kBlockBytes) {
    BlockEntry entry;
    const uint64_t from = std::max(at, mirror.address);
    const uint64_t to = std::min(at + kBlockBytes, mirror.address + mirror.bytes);
    std::memcpy(entry.bytes.data() + (from - at), mirror.shadow->data() + (from - mirror.address),
                to - from);
    if (zeros && entry.bytes == BlockEntry{}.bytes) continue;
    entry.address = mirror.device_shadow->address + (at - FirstBlock(part));
    entries->push_back(entry);
  }
}

}  // namespace

ComparedLook::ComparedLook(std::vector<Part> parts)
    : parts_(std::move(parts)), expected_(kFirstBlocks) {
  std::ranges::sort(parts_, {}, [](const Part& part) { return part.mirror->address; });
  for (const Part& part : parts_) {
    tiles_ += (BlocksOf(part) + kTileBlocks - 1) / kTileBlocks;
    all_blocks_ += BlocksOf(part);
  }
  tables_ = sizeof(ComparedHead) + tiles_ * sizeof(Tile);
}

std::vector<std::shared_ptr<Mirror>> ComparedLook::mirrors() const {
  std::vector<std::shared_ptr<Mirror>> all;
  for (const Part& part : parts_) all.push_back(part.mirror);
  return all;
}

uint64_t ComparedLook::BufferBytes() const { return tables_ + expected_ * sizeof(BlockEntry); }

StateTurns::Comparison ComparedLook::Fill(std::span<std::byte> buffer) {
  capacity_ = (buffer.size() - tables_) / sizeof(BlockEntry);
  const ComparedHead head;
  std::memcpy(buffer.data(), &head, sizeof(head));
  std::byte* at = buffer.data() + sizeof(head);
  std::vector<BlockEntry> entries;
  uint64_t looked = 0;
  bool more = false;
  for (const Part& part : parts_) {
    Mirror& mirror = *part.mirror;
    const uint64_t shadow = mirror.device_shadow->address;
    for (uint64_t block = 0; block < BlocksOf(part); block += kTileBlocks) {
      const Tile tile{FirstBlock(part) + block * kBlockBytes, shadow + block * kBlockBytes,
                      std::min(kTileBlocks, BlocksOf(part) - block)};
      std::memcpy(at, &tile, sizeof(tile));
      at += sizeof(tile);
    }
    if (std::exchange(mirror.device_shadow->fresh, false)) {
      mirror.changed_pages = std::make_unique<ChangedPages>(mirror.bytes);
    }
    ChangedPages& pages = *mirror.changed_pages;
    for (uint64_t page = pages.Next(0); page < pages.pages() && !more; page = pages.Next(page)) {
      more = looked >= kBytesAStep || entries.size() + kShadowPage / kBlockBytes + 1 > capacity_;
      if (!more) AppendPage(part, page, pages.Take(page), &entries);
      looked += kShadowPage;
    }
  }
  std::ranges::copy(std::as_bytes(std::span(entries)), buffer.data() + tables_);
  StateTurns::Comparison comparison;
  comparison.up = tables_ + entries.size() * sizeof(BlockEntry);
  comparison.patches = entries.size();
  comparison.entries = tables_;
  if (more) return comparison;
  comparison.tiles = tiles_;
  comparison.head = sizeof(ComparedHead);
  comparison.down = std::min(kBlocksWithHead, capacity_) * sizeof(BlockEntry);
  return comparison;
}

ComparedLook::Found ComparedLook::Read(std::span<const std::byte> buffer) {
  static const bool looks_again = !wire::GuardIsOff("second_look");
  ComparedHead head;
  std::memcpy(&head, buffer.data(), sizeof(head));
  if (head.compared != all_blocks_) return Found::kBroken;
  // Little of it is compared within a turn: then the last time alone is one moment.
  const bool in_turn = all_blocks_ * kBlockBytes <= bytes_in_a_turn;
  converged_ = head.found[StateTurns::kPasses - 1] == 0 || in_turn || !looks_again;
  wanted_ = head.wanted;
  there_ = std::min(wanted_, capacity_);
  return there_ == 0 ? Found::kNothing : Found::kEntries;
}

// The newest of each block, by address.
std::vector<BlockEntry> ComparedLook::Blocks(std::span<const std::byte> buffer) const {
  std::vector<BlockEntry> blocks(there_);
  std::ranges::copy(buffer.subspan(tables_, there_ * sizeof(BlockEntry)),
                    std::as_writable_bytes(std::span(blocks)).begin());
  std::ranges::stable_sort(blocks, {}, &BlockEntry::address);
  size_t kept = 0;
  for (const BlockEntry& block : blocks) {
    if (kept == 0 || blocks[kept - 1].address != block.address) ++kept;
    blocks[kept - 1] = block;
  }
  blocks.resize(kept);
  return blocks;
}

bool ComparedLook::IsState(bool* again) {
  const bool same = std::ranges::all_of(
      parts_, [](const Part& part) { return part.mirror->pulls.done == part.pulls; });
  const uint64_t most = wire::kChangedBytes / kBlockBytes;
  // What has no room is found once more by each pass.
  const uint64_t blocks = std::min(wanted_, all_blocks_);
  *again = same && wanted_ > capacity_ && expected_ < std::min(blocks, most);
  if (*again) expected_ = std::min(blocks, most);
  return same && converged_ && wanted_ <= capacity_;
}

void ComparedLook::Forget(const std::vector<BlockEntry>& blocks) {
  for (const Part& part : parts_) {
    EachStretch(part, blocks, [](Mirror& mirror, uint64_t offset, std::span<const std::byte> is) {
      mirror.NoteChange(offset, is.size());
    });
  }
}

}  // namespace longwire::worker
