// A cache of compiled code on this host's disk, for NVRTC and nvJitLink: they request compiled code
// from the driver before they compile, in any process of the user. Files are written under a
// temporary name and renamed, so that readers see complete files only. Each holds its key and the
// SHA-256 of its bytes; a damaged file is a miss. Processes that share the folder wait for each
// other only to evict.
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
  // The driver's limits for all entries together, in bytes (CUDA Programming Guide, environment
  // variables): the default, and the largest that CUDA_CACHE_MAXSIZE may set.
  static constexpr uint64_t kUsualLimit = uint64_t{1} << 30;
  static constexpr uint64_t kLargestLimit = uint64_t{4} << 30;

  // By CUDA_CACHE_DISABLE, CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE and HOME. nullopt if it is disabled
  // or no folder is found.
  static std::optional<CompileCache> FromEnvironment();

  CompileCache(std::string folder, uint64_t limit) : folder_(std::move(folder)), limit_(limit) {}

  const std::string& folder() const { return folder_; }
  uint64_t limit() const { return limit_; }

  std::optional<std::vector<std::byte>> Find(const wire::Digest& key) const;
  // False if it was not stored: too large, or a disk error. Evicts the least recently used entries.
  bool Insert(const wire::Digest& key, std::span<const std::byte> bytes) const;

 private:
  std::string PathOf(const wire::Digest& key) const;
  // Counts `added` bytes. Above the limit, evicts entries until an eighth of it is free.
  void Count(uint64_t added) const;

  std::string folder_;
  uint64_t limit_;
};

// A key of several fields. Each is added with its length, so that different lists never give the
// same key.
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
