// Chunks that several workers of one tenant have: known under a token, lent once more to each who
// names it, charged to one of them, and back with the last.
#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "server/keeper/chunk_pool.h"
#include "wire/guards.h"

namespace longwire::keeper {
namespace {

constexpr size_t kMaxTokens = 1 << 16;

const bool kChecksTenant = !wire::GuardIsOff("shared_tenant");

}  // namespace

uint32_t ChunkPool::TenantOf(uint64_t worker) const {
  return options_.quota == nullptr ? 0 : options_.quota->TenantOf(worker);
}

bool ChunkPool::Has(uint64_t worker, uint64_t chunk) const {
  auto holder = workers_.find(worker);
  return holder != workers_.end() &&
         (holder->second.lent.contains(chunk) || holder->second.borrowed.contains(chunk));
}

int ChunkPool::Share(uint64_t worker, std::span<const uint64_t> chunks, Token* token) {
  bool all = std::ranges::all_of(
      chunks, [&](uint64_t id) { return Has(worker, id) && chunks_.at(id).place == Place::kHere; });
  if (chunks.empty() || chunks.size() > kMaxChunksPerLease || !all) return kInvalidValue;
  std::vector<uint64_t> list(chunks.begin(), chunks.end());
  if (auto known = tokens_.find(list); known != tokens_.end()) {
    *token = known->second;
    return kSuccess;
  }
  constexpr ssize_t kBytes = sizeof(Token);
  if (tokens_.size() >= kMaxTokens || getrandom(token->data(), kBytes, 0) != kBytes) {
    return kOutOfMemory;
  }
  for (uint64_t id : list) chunks_.at(id).shared = true;
  shared_[*token] = list;
  tokens_[std::move(list)] = *token;
  return kSuccess;
}

ChunkPool::Step ChunkPool::Borrow(uint64_t worker, const Token& token, LeaseInProgress* lease) {
  auto found = shared_.find(token);
  // A token of another tenant is as unknown as one that never was.
  if (found == shared_.end() ||
      (kChecksTenant && TenantOf(chunks_.at(found->second[0]).worker) != TenantOf(worker))) {
    return Refused(lease, kInvalidValue, "no memory is shared under this token");
  }
  Worker& holder = workers_[worker];
  size_t has = holder.lent.size() + holder.borrowed.size();
  if (has + found->second.size() > kMaxChunksPerSession) {
    return Refused(lease, kOutOfMemory,
                   "more than " + std::to_string(kMaxChunksPerSession) + " chunks of one session");
  }
  lease->worker = worker;
  lease->chunks = found->second;
  for (uint64_t id : lease->chunks) {
    chunks_.at(id).borrowers.push_back(worker);
    holder.borrowed.insert(id);
  }
  ++version_;
  return Step::kGranted;
}

void ChunkPool::GiveBackBorrowed(uint64_t worker, uint64_t id) {
  std::multiset<uint64_t>& borrowed = workers_.at(worker).borrowed;
  borrowed.erase(borrowed.find(id));
  std::vector<uint64_t>& borrowers = chunks_.at(id).borrowers;
  borrowers.erase(std::ranges::find(borrowers, worker));
  ++version_;
}

// The tenant stays the same, so that nothing changes in the ledger of quotas.
void ChunkPool::HandOver(uint64_t id) {
  Chunk& chunk = chunks_.at(id);
  uint64_t next = chunk.borrowers.front();
  Worker& before = workers_.at(chunk.worker);
  before.lent.erase(id);
  before.leased -= chunk.bytes;
  GiveBackBorrowed(next, id);
  chunk.worker = next;
  Worker& after = workers_.at(next);
  after.lent.insert(id);
  after.leased += chunk.bytes;
  after.leased_peak = std::max(after.leased_peak, after.leased);
}

void ChunkPool::ForgetTokensOf(uint64_t id) {
  std::erase_if(tokens_, [&](const auto& entry) {
    bool gone = std::ranges::find(entry.first, id) != entry.first.end();
    if (gone) shared_.erase(entry.second);
    return gone;
  });
}

}  // namespace longwire::keeper
