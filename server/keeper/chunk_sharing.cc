// Chunks that several workers of one tenant have: known under a token, lent once more to each who
// names it, charged to one of them, and back with the last.
#include <algorithm>
#include <utility>

#include "server/keeper/chunk_pool.h"
#include "wire/guards.h"

namespace longwire::keeper {
namespace {

const bool kChecksTenant = !wire::GuardIsOff("shared_tenant");
const bool kSlices = !wire::GuardIsOff("keeper_slices");

// Together some milliseconds at most: the driver takes a tenth of one to release a chunk.
constexpr size_t kReleasesPerPass = 16;
constexpr size_t kTidiedPerPass = 4096;

}  // namespace

uint32_t ChunkPool::TenantOf(uint64_t worker) const {
  return options_.quota == nullptr ? 0 : options_.quota->TenantOf(worker);
}

bool ChunkPool::Has(uint64_t worker, uint64_t chunk) const {
  auto holder = workers_.find(worker);
  return holder != workers_.end() &&
         (holder->second.lent.contains(chunk) || holder->second.borrowed.contains(chunk));
}

int ChunkPool::Share(uint64_t worker, std::span<const uint64_t> chunks, Token* token,
                     std::string* sentence) {
  bool all = std::ranges::all_of(
      chunks, [&](uint64_t id) { return Has(worker, id) && chunks_.at(id).place == Place::kHere; });
  if (chunks.empty() || chunks.size() > kMaxChunksPerLease || !all) {
    *sentence = "this memory is none of the session's, or was moved to the host";
    return kInvalidValue;
  }
  int code = shared_.Add(worker, chunks, token, sentence);
  for (size_t i = 0; i < chunks.size() && code == kSuccess; ++i) {
    chunks_.at(chunks[i]).shared = true;
  }
  return code;
}

ChunkPool::Step ChunkPool::Borrow(uint64_t worker, const Token& token, LeaseInProgress* lease) {
  const std::vector<uint64_t>* chunks = shared_.Find(token);
  // A token of another tenant is as unknown as one that never was.
  if (chunks == nullptr ||
      (kChecksTenant && TenantOf(chunks_.at(chunks->front()).worker) != TenantOf(worker))) {
    return Refused(lease, kInvalidValue, "no memory is shared under this token");
  }
  Worker& holder = workers_[worker];
  size_t has = holder.lent.size() + holder.borrowed.size();
  if (has + chunks->size() > kMaxChunksPerSession) {
    return Refused(lease, kOutOfMemory,
                   "more than " + std::to_string(kMaxChunksPerSession) + " chunks of one session");
  }
  if (LoansAreFull(lease, chunks->size())) return Step::kRefused;
  lease->worker = worker;
  lease->chunks = *chunks;
  for (uint64_t id : lease->chunks) {
    ++chunks_.at(id).borrowers[worker];
    holder.borrowed.insert(id);
    WriteBorrowed(id, worker);
  }
  ++version_;
  return Step::kGranted;
}

void ChunkPool::GiveBackBorrowed(uint64_t worker, uint64_t id) {
  std::multiset<uint64_t>& borrowed = workers_.at(worker).borrowed;
  borrowed.erase(borrowed.find(id));
  auto& borrowers = chunks_.at(id).borrowers;
  auto mine = borrowers.find(worker);
  if (--mine->second == 0) borrowers.erase(mine);
  WriteBorrowed(id, worker);
  ++version_;
}

// The tenant stays the same; what it is charged changes only by what was promised to the two.
void ChunkPool::HandOver(uint64_t id) {
  Chunk& chunk = chunks_.at(id);
  uint64_t next = chunk.borrowers.begin()->first;
  Worker& before = workers_.at(chunk.worker);
  before.lent.erase(id);
  before.leased -= chunk.bytes;
  RefundTenant(chunk.worker, chunk.bytes);
  if (options_.loans != nullptr) options_.loans->HandOver(id, next);
  GiveBackBorrowed(next, id);
  chunk.worker = next;
  Worker& after = workers_.at(next);
  after.lent.insert(id);
  after.leased += chunk.bytes;
  ChargeTenant(next, chunk.bytes, true);
  after.leased_peak = std::max(after.leased_peak, after.leased);
}

void ChunkPool::LetGo(uint64_t id) {
  shared_.Ended(id);
  if (released_ >= kReleasesPerPass && kSlices) {
    releasing_.push_back(id);
    return;
  }
  ++released_;
  ReleaseChunk(id);
}

bool ChunkPool::Tidy(uint64_t keep) {
  bool more = Trim(keep, kSlices ? kReleasesPerPass : SIZE_MAX);
  more |= shared_.Tidy(kSlices ? kTidiedPerPass : SIZE_MAX);
  return more;
}

}  // namespace longwire::keeper
