// A block's memory takes the place of the start of a larger one's: what a program asks for when it
// copies all of a buffer to the start of a larger one and frees it.
#include <algorithm>
#include <utility>

#include "mempool/lease_sizes.h"
#include "mempool/pool.h"

namespace longwire::mempool {
namespace {

// The number of smaller blocks at whose ends a block's chunks may be cut: each costs a chunk.
constexpr size_t kMaxSeams = 4;
// What is much smaller than a new block hardly grows into it.
constexpr uint64_t kLeastShare = 16;

}  // namespace

std::vector<uint64_t> Pool::SeamsOf(uint64_t bytes) const {
  std::vector<uint64_t> sizes;
  for (auto& [address, block] : blocks_.table()) {
    bool smaller = block.bytes < bytes && block.bytes >= bytes / kLeastShare;
    if (!block.idle && smaller) sizes.push_back(block.bytes);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  // The larger ones: most of a buffer that grows is what it was.
  if (sizes.size() > kMaxSeams) sizes.erase(sizes.begin(), sizes.end() - kMaxSeams);
  return sizes;
}

std::vector<Chunk> Pool::Arrange(std::vector<Chunk> chunks, uint64_t missing) const {
  uint64_t bytes = missing;
  for (const Chunk& chunk : chunks) bytes += chunk.bytes;
  std::stable_sort(chunks.begin(), chunks.end(),
                   [](const Chunk& a, const Chunk& b) { return a.bytes > b.bytes; });
  std::vector<Chunk> order;
  auto lease = [&](uint64_t more) {
    for (uint64_t size : LeaseSizes(more)) order.push_back({0, size});
    missing -= more;
  };
  uint64_t at = 0;
  for (uint64_t seam : SeamsOf(bytes)) {
    std::vector<Chunk> before, behind;
    uint64_t left = seam - at;
    for (const Chunk& chunk : chunks) {
      bool fits = chunk.bytes <= left;
      if (fits) left -= chunk.bytes;
      (fits ? before : behind).push_back(chunk);
    }
    if (left > missing) continue;
    order.insert(order.end(), before.begin(), before.end());
    lease(left);
    chunks = std::move(behind);
    at = seam;
  }
  order.insert(order.end(), chunks.begin(), chunks.end());
  lease(missing);
  return order;
}

bool Pool::PlanMove(uint64_t from, uint64_t to, Exchange* exchange) {
  Block* source = blocks_.InUse(from);
  Block* target = blocks_.InUse(to);
  if (source == nullptr || target == nullptr || source == target) return false;
  if (source->bytes > target->bytes) return false;
  exchange->map = source->chunks;
  exchange->spares = spares_;
  size_t count = 0;
  for (uint64_t bytes = 0; bytes < source->bytes; ++count) bytes += target->chunks[count].bytes;
  uint64_t replaced = 0;
  for (size_t i = 0; i < count; ++i) replaced += target->chunks[i].bytes;
  if (replaced == source->bytes) {
    exchange->unmap = replaced;
    auto seam = target->chunks.begin() + static_cast<ptrdiff_t>(count);
    exchange->spares.Add({target->chunks.begin(), seam});
    exchange->kept.assign(seam, target->chunks.end());
    return true;
  }
  // No chunk of it ends there: the rest is put together anew.
  exchange->unmap = target->bytes;
  exchange->spares.Add(target->chunks);
  uint64_t missing = target->bytes - source->bytes;
  for (Chunk chunk; missing > 0; missing -= chunk.bytes) {
    if (!exchange->spares.TakeUpTo(missing, &chunk)) return false;
    exchange->map.push_back(chunk);
  }
  return true;
}

bool Pool::CanMove(uint64_t from, uint64_t to, uint64_t* moved) {
  Exchange exchange;
  if (!PlanMove(from, to, &exchange)) return false;
  *moved = blocks_.InUse(from)->bytes;
  return true;
}

bool Pool::Move(uint64_t from, uint64_t to) {
  Exchange exchange;
  if (!PlanMove(from, to, &exchange)) return false;
  uint64_t moved = blocks_.InUse(from)->bytes;
  if (device_.Remap({to, exchange.unmap}, exchange.map, moved) != kDone) return false;
  blocks_.Remove(from);
  device_.Unmap({from, moved});
  blocks_.Remove(to);
  exchange.map.insert(exchange.map.end(), exchange.kept.begin(), exchange.kept.end());
  blocks_.Add(to, std::move(exchange.map));
  spares_ = std::move(exchange.spares);
  return true;
}

}  // namespace longwire::mempool
