// Swapping chunks to host memory and back. A swapped chunk keeps its number and its worker, but has
// no device memory.
#include <algorithm>
#include <utility>

#include "server/keeper/chunk_pool.h"
#include "wire/guards.h"

namespace longwire::keeper {

std::vector<Region> ChunkPool::Movable(uint64_t worker, bool later) const {
  std::vector<Region> movable;
  auto holder = workers_.find(worker);
  // A worker with borrowed chunks may be using them together with their owner.
  if (holder == workers_.end() || !holder->second.borrowed.empty()) return movable;
  // What was promised stays on the device.
  uint64_t stays = PromisedTo(worker) - std::min(PromisedTo(worker), ChargedTo(worker));
  if (wire::GuardIsOff("promises")) stays = 0;
  for (uint64_t id : holder->second.lent) {
    const Chunk& chunk = chunks_.at(id);
    bool here = chunk.place == Place::kHere || (later && chunk.place == Place::kComing);
    const bool kept = here && stays != 0;
    if (kept) stays -= std::min(stays, chunk.bytes);
    if (!here || kept || chunk.shared || chunk.adopted) continue;
    movable.push_back({id, worker, chunk.bytes});
  }
  return movable;
}

std::vector<Region> ChunkPool::Away(uint64_t worker) const {
  std::vector<Region> away;
  auto holder = workers_.find(worker);
  if (holder == workers_.end()) return away;
  for (uint64_t id : holder->second.lent) {
    const Chunk& chunk = chunks_.at(id);
    if (chunk.place == Place::kAway) away.push_back({id, worker, chunk.bytes});
  }
  return away;
}

std::vector<SwapJob> ChunkPool::Leave(uint64_t worker, std::span<const uint64_t> chunks) {
  std::vector<SwapJob> jobs;
  auto holder = workers_.find(worker);
  if (holder == workers_.end()) return jobs;
  for (uint64_t id : chunks) {
    if (!holder->second.lent.contains(id)) continue;
    Chunk& chunk = chunks_.at(id);
    if (chunk.place != Place::kHere || chunk.shared || chunk.adopted) continue;
    chunk.host = host_.Take(worker, chunk.bytes);
    // Without room in host memory the chunk stays on the device until its worker needs it.
    chunk.place = chunk.host.empty() ? Place::kAway : Place::kLeaving;
    if (chunk.host.empty()) continue;
    ++holder->second.moving;
    leaving_ += chunk.bytes;
    jobs.push_back({SwapJob::Kind::kOut, id, chunk.handle, chunk.bytes, chunk.host});
    for (HostPart& part : chunk.host) part.clear = false;  // that is done on the way out
  }
  return jobs;
}

int ChunkPool::CreateAgain(Chunk& chunk) {
  while (created_ + chunk.bytes > lendable_) {
    // The other idle bytes are being scrubbed and will be free soon.
    if (!ReleaseOneIdle()) return kOutOfMemory;
  }
  int code = device_.Create(chunk.bytes, &chunk.handle);
  // The driver has less than was assumed: contexts of workers, or other programs, use memory.
  while (code == kOutOfMemory && ReleaseOneIdle()) {
    code = device_.Create(chunk.bytes, &chunk.handle);
  }
  if (code != kSuccess) chunk.handle = 0;
  if (code == kSuccess) created_ += chunk.bytes;
  return code;
}

std::vector<SwapJob> ChunkPool::ComeBack(std::span<const Region> order, bool all,
                                         LeaseInProgress* lease) {
  std::vector<SwapJob> jobs;
  uint64_t need = 0;
  for (const Region& region : order) {
    if (chunks_.at(region.id).handle == 0) need += region.bytes;
  }
  lease->lacks = need - std::min(need, FreeToComeBack(lease->worker));
  if (all && lease->lacks != 0) return jobs;
  Worker& holder = workers_.at(lease->worker);
  for (const Region& region : order) {
    Chunk& chunk = chunks_.at(region.id);
    bool copied = chunk.handle == 0;
    if (copied && (chunk.bytes > FreeToComeBack(lease->worker) || CreateAgain(chunk) != kSuccess)) {
      lease->lacks = std::max(lease->lacks, chunk.bytes);
      continue;
    }
    lease->chunks.push_back(region.id);
    chunk.place = copied ? Place::kComing : Place::kHere;
    ++version_;
    if (!copied) continue;
    ++holder.moving;
    coming_ += chunk.bytes;
    holder.leased += chunk.bytes;
    holder.leased_peak = std::max(holder.leased_peak, holder.leased);
    holder.swapped -= chunk.bytes;
    leased_ += chunk.bytes;
    leased_peak_ = std::max(leased_peak_, leased_);
    swapped_ -= chunk.bytes;
    jobs.push_back({SwapJob::Kind::kBack, region.id, chunk.handle, chunk.bytes, chunk.host});
  }
  return jobs;
}

bool ChunkPool::Moved(const SwapJob& job, uint64_t* lost) {
  auto found = chunks_.find(job.chunk);
  if (found == chunks_.end()) return true;
  Chunk& chunk = found->second;
  ++version_;
  bool out = job.kind == SwapJob::Kind::kOut;
  (out ? leaving_ : coming_) -= chunk.bytes;
  if (auto holder = workers_.find(chunk.worker); holder != workers_.end()) --holder->second.moving;
  if (chunk.dropped) {
    EraseDropped(job.chunk);
    return true;
  }
  if (!out || job.code != kSuccess) host_.Free(chunk.worker, std::exchange(chunk.host, {}));
  chunk.place = out ? Place::kAway : Place::kHere;
  if (job.code != kSuccess) {
    *lost = chunk.worker;
    return out;  // on its way out nothing is lost: it is still on the device
  }
  LogEvent(out ? MemoryEventKind::kSwapOut : MemoryEventKind::kSwapIn, chunk.worker, chunk.bytes);
  if (!out) return true;
  device_.Release(std::exchange(chunk.handle, 0));
  created_ -= chunk.bytes;
  leased_ -= chunk.bytes;
  swapped_ += chunk.bytes;
  Worker& holder = workers_.at(chunk.worker);
  holder.leased -= chunk.bytes;
  holder.swapped += chunk.bytes;
  return true;
}

bool ChunkPool::MayShow(uint64_t worker, uint64_t id) const {
  auto holder = workers_.find(worker);
  return holder != workers_.end() && holder->second.lent.contains(id) &&
         chunks_.at(id).place == Place::kHere;
}

// Only of memory that nobody else has.
std::optional<SwapJob> ChunkPool::StartFill(uint64_t worker, uint64_t id) {
  if (!MayShow(worker, id) && !(wire::GuardIsOff("own_fills") && chunks_.contains(id))) return {};
  Chunk& chunk = chunks_.at(id);
  if (chunk.shared || chunk.adopted) return {};
  chunk.place = Place::kComing;
  ++workers_[worker].moving;
  SwapJob job{SwapJob::Kind::kFill, id, chunk.handle, chunk.bytes};
  job.worker = worker;
  return job;
}

void ChunkPool::EndFill(const SwapJob& job) {
  if (auto holder = workers_.find(job.worker); holder != workers_.end()) --holder->second.moving;
  auto found = chunks_.find(job.chunk);
  if (found == chunks_.end()) return;
  found->second.place = Place::kHere;
  if (found->second.dropped) return EraseDropped(job.chunk);
  if (job.code == kSuccess) LogEvent(MemoryEventKind::kFill, job.worker, job.bytes);
}

void ChunkPool::Drop(uint64_t id) {
  Chunk& chunk = chunks_.at(id);
  Worker& holder = workers_.at(chunk.worker);
  holder.lent.erase(id);
  if (options_.policy != nullptr) options_.policy->Removed(id);
  if (options_.loans != nullptr) options_.loans->Remove(id);
  RefundTenant(chunk.worker, chunk.bytes);
  (chunk.handle != 0 ? holder.leased : holder.swapped) -= chunk.bytes;
  (chunk.handle != 0 ? leased_ : swapped_) -= chunk.bytes;
  ++version_;
  chunk.dropped = chunk.moves();
  if (!chunk.dropped) EraseDropped(id);
}

// The swap thread no longer uses the chunk.
void ChunkPool::EraseDropped(uint64_t id) {
  Chunk& chunk = chunks_.at(id);
  if (!chunk.host.empty()) {
    host_.Free(workers_.contains(chunk.worker) ? chunk.worker : 0, chunk.host);
  }
  if (chunk.handle != 0) {
    LogEvent(MemoryEventKind::kRelease, 0, chunk.bytes);
    device_.Release(chunk.handle);
    created_ -= chunk.bytes;
  }
  chunks_.erase(id);
}

bool ChunkPool::IsMoving(uint64_t worker) const {
  auto found = workers_.find(worker);
  return found != workers_.end() && found->second.moving != 0;
}

uint64_t ChunkPool::SwappedBy(uint64_t worker) const {
  auto found = workers_.find(worker);
  return found == workers_.end() ? 0 : found->second.swapped;
}

}  // namespace longwire::keeper
