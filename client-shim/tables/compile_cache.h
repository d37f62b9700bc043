// Compiled code on this host's disk: what NVRTC and nvJitLink made once, they ask the driver for
// the next time, in any process of the user. Files are written under another name and renamed, so
// that a reader sees a whole one or none; each names its key and the SHA-256 of its bytes, so that
// a damaged one is a miss. Processes share a folder without waiting for each other, except to
// evict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/sha256.h"

namespace longwire::shim {

class CompileCache {
 public:
  // The driver's bounds of all entries together, in bytes (CUDA Programming Guide, environment
  // variables): what holds unless CUDA_CACHE_MAXSIZE says otherwise, and the largest it may say.
  static constexpr uint64_t kUsualLimit = uint64_t{1} << 30;
  static constexpr uint64_t kLargestLimit = uint64_t{4} << 30;

  // By CUDA_CACHE_DISABLE, CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE and HOME. Nothing if it is disabled
  // or there is no place for it.
  static std::optional<CompileCache> FromEnvironment();

  CompileCache(std::string folder, uint64_t limit) : folder_(std::move(folder)), limit_(limit) {}

  const std::string& folder() const { return folder_; }
  uint64_t limit() const { return limit_; }

  std::optional<std::vector<std::byte>> Find(const wire::Digest& key) const;
  // False if it was not kept: too large, or the disk refused. Evicts what was used least recently.
  bool Insert(const wire::Digest& key, std::span<const std::byte> bytes) const;

 private:
  std::string PathOf(const wire::Digest& key) const;
  // Counts `added` bytes; past the limit entries go, until an eighth is free again.
  void Count(uint64_t added) const;

  std::string folder_;
  uint64_t limit_;
};

// A key of several fields: each goes in with its length, so that no two lists of fields are alike.
class CompileKey {
 public:
  void Add(std::span<const std::byte> bytes);
  void Add(std::string_view text) { Add(std::as_bytes(std::span(text))); }
  void Add(uint64_t number) { Add(std::as_bytes(std::span(&number, 1))); }
  wire::Digest Finish() { return digest_.Finish(); }

 private:
  wire::Sha256 digest_;
};

}  // namespace longwire::shim
