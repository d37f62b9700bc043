#include "server/keeper/sharing/shared_chunks.h"

#include <sys/random.h>

#include <utility>

#include "wire/guards.h"

namespace longwire::keeper {
namespace {

const bool kLimits = !wire::GuardIsOff("shared_tokens");

}  // namespace

bool SharedChunks::HasRoom(uint64_t worker, size_t entries, std::string* sentence) const {
  auto found = owners_.find(worker);
  if (found == owners_.end() || !kLimits) return true;
  const Owner& owner = found->second;
  if (owner.tokens.size() >= kMaxTokens) {
    *sentence = "the session shares " + std::to_string(kMaxTokens) +
                " allocations, as many as it may: free some of them first";
    return false;
  }
  if (owner.entries + entries <= kMaxEntries) return true;
  *sentence = "what the session shares has more than " + std::to_string(kMaxEntries) +
              " chunks: free some of it first";
  return false;
}

int SharedChunks::Add(uint64_t worker, std::span<const uint64_t> chunks, Token* token,
                      std::string* sentence) {
  auto shared = std::make_unique<Shared>();
  shared->chunks.assign(chunks.begin(), chunks.end());
  shared->worker = worker;
  if (auto known = by_chunks_.find(shared.get()); known != by_chunks_.end()) {
    *token = (*known)->token;
    return kSuccess;
  }
  if (!HasRoom(worker, chunks.size(), sentence)) return kOutOfMemory;
  constexpr ssize_t kBytes = sizeof(Token);
  if (getrandom(shared->token.data(), kBytes, 0) != kBytes) {
    *sentence = "the system has no random numbers";
    return kOutOfMemory;
  }
  *token = shared->token;
  Insert(std::move(shared));
  return kSuccess;
}

void SharedChunks::AddKnown(uint64_t worker, std::span<const uint64_t> chunks, const Token& token) {
  auto shared = std::make_unique<Shared>();
  shared->chunks.assign(chunks.begin(), chunks.end());
  shared->worker = worker;
  shared->token = token;
  std::string sentence;
  if (by_token_.contains(token) || by_chunks_.contains(shared.get())) return;
  if (HasRoom(worker, chunks.size(), &sentence)) Insert(std::move(shared));
}

void SharedChunks::Insert(std::unique_ptr<Shared> shared) {
  by_chunks_.insert(shared.get());
  for (uint64_t chunk : shared->chunks) of_chunk_[chunk].insert(shared.get());
  Owner& owner = owners_[shared->worker];
  owner.tokens.insert(shared.get());
  owner.entries += shared->chunks.size();
  const Token token = shared->token;
  by_token_[token] = std::move(shared);
}

const std::vector<uint64_t>* SharedChunks::Find(const Token& token) const {
  auto found = by_token_.find(token);
  return found == by_token_.end() ? nullptr : &found->second->chunks;
}

void SharedChunks::End(Shared& shared) {
  auto found = by_token_.find(shared.token);
  if (found == by_token_.end()) return;  // another of its chunks ended before
  owners_.at(shared.worker).tokens.erase(&shared);
  by_chunks_.erase(&shared);
  ended_.push_back(std::move(found->second));
  by_token_.erase(found);
}

void SharedChunks::Ended(uint64_t chunk) {
  auto found = of_chunk_.find(chunk);
  if (found == of_chunk_.end()) return;
  const std::unordered_set<Shared*> tokens = std::move(found->second);
  of_chunk_.erase(found);
  for (Shared* shared : tokens) End(*shared);
}

void SharedChunks::Gone(uint64_t worker, const std::function<uint64_t(uint64_t)>& holder) {
  auto found = owners_.find(worker);
  if (found == owners_.end()) return;
  const std::vector<Shared*> tokens(found->second.tokens.begin(), found->second.tokens.end());
  std::string sentence;
  for (Shared* shared : tokens) {
    const size_t entries = shared->chunks.size();
    uint64_t heir = holder(shared->chunks.front());
    if (heir == worker || !HasRoom(heir, entries, &sentence)) {
      End(*shared);
      continue;
    }
    Owner& to = owners_[heir];
    to.tokens.insert(shared);
    to.entries += entries;
    Owner& from = owners_.at(worker);
    from.tokens.erase(shared);
    from.entries -= entries;
    shared->worker = heir;
  }
  if (owners_.at(worker).entries == 0) owners_.erase(worker);
}

void SharedChunks::Forget(uint64_t chunk, Shared* shared) {
  auto found = of_chunk_.find(chunk);
  if (found == of_chunk_.end()) return;
  found->second.erase(shared);
  if (found->second.empty()) of_chunk_.erase(found);
}

bool SharedChunks::Tidy(size_t entries) {
  while (!ended_.empty() && entries != 0) {
    Shared& shared = *ended_.front();
    const size_t all = shared.chunks.size();
    for (; tidied_ < all && entries != 0; --entries) Forget(shared.chunks[tidied_++], &shared);
    if (tidied_ < all) return true;
    auto owner = owners_.find(shared.worker);
    owner->second.entries -= all;
    if (owner->second.entries == 0) owners_.erase(owner);
    ended_.pop_front();
    tidied_ = 0;
  }
  return !ended_.empty();
}

size_t SharedChunks::entries_of(uint64_t worker) const {
  auto found = owners_.find(worker);
  return found == owners_.end() ? 0 : found->second.entries;
}

}  // namespace longwire::keeper
