// The tokens by which workers of one tenant borrow each other's chunks. A token ends with the first
// of its chunks, or with the worker that made it if nobody else has them.
//
// Whatever a worker shares and gives back, one pass of the keeper's loop works for it for a bounded
// time: a token that ends is unknown at once, and what is left of it goes in slices (Tidy).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "server/keeper/device_memory.h"
#include "server/protocol/keeper.h"

namespace longwire::keeper {

class SharedChunks {
 public:
  using Token = std::array<uint64_t, 2>;

  // Of one worker. Each allocation that it shares has a token.
  static constexpr size_t kMaxTokens = 8192;
  // Chunks in all its tokens together: as if each of its chunks were in one.
  static constexpr size_t kMaxEntries = kMaxChunksPerSession;

  // A random token for these chunks, which has it for as long as it is known. kOutOfMemory with a
  // sentence if the worker has as many as it may.
  int Add(uint64_t worker, std::span<const uint64_t> chunks, Token* token, std::string* sentence);
  // The same for a token that a predecessor made. Nothing if it is known, or if the worker has as
  // many as it may.
  void AddKnown(uint64_t worker, std::span<const uint64_t> chunks, const Token& token);
  // Null: there is no such token.
  const std::vector<uint64_t>* Find(const Token& token) const;
  // The chunk's memory is returned: no token has it any more.
  void Ended(uint64_t chunk);
  // The worker has gone. Tokens whose chunks others have are theirs now, within their limits.
  // `holder`: who has a chunk.
  void Gone(uint64_t worker, const std::function<uint64_t(uint64_t chunk)>& holder);
  // Forgets up to this many chunks of tokens that have ended. True if some are left.
  bool Tidy(size_t entries);

  size_t tokens() const { return by_token_.size(); }
  size_t entries_of(uint64_t worker) const;

 private:
  struct Shared {
    std::vector<uint64_t> chunks;
    Token token{};
    uint64_t worker = 0;  // whose limit it counts for
  };
  struct ByChunks {
    bool operator()(const Shared* left, const Shared* right) const {
      return left->chunks < right->chunks;
    }
  };
  struct Owner {
    std::unordered_set<Shared*> tokens;
    size_t entries = 0;  // also of tokens that have ended and are not tidied yet
  };
  bool HasRoom(uint64_t worker, size_t entries, std::string* sentence) const;
  void Insert(std::unique_ptr<Shared> shared);
  void End(Shared& shared);
  void Forget(uint64_t chunk, Shared* shared);

  std::map<Token, std::unique_ptr<Shared>> by_token_;
  std::set<Shared*, ByChunks> by_chunks_;
  std::unordered_map<uint64_t, std::unordered_set<Shared*>> of_chunk_;
  std::unordered_map<uint64_t, Owner> owners_;
  std::deque<std::unique_ptr<Shared>> ended_;
  size_t tidied_ = 0;  // chunks of the first of ended_
};

}  // namespace longwire::keeper
