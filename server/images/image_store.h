// Module images by the digest of their bytes, on disk, within bounds. A tenant gets the answer
// "known" only for what it has uploaded in full itself: equal bytes of several tenants lie on the
// disk once, but each tenant has sent them. Thread-safe; files are read and written without the
// lock.
//
// What a tenant used longest ago makes room: for its own images where it has as many as it may, and
// where all together are too many, in the tenant that has most. So nobody's uploads drive out the
// images of a tenant that has fewer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/images/image_files.h"
#include "wire/sha256.h"
#include "wire/socket.h"

namespace longwire::images {

struct Figures {
  uint64_t images = 0;   // kept now
  uint64_t bytes = 0;    // of these
  uint64_t limit = 0;    // of bytes
  uint64_t hits = 0;     // asked for and known
  uint64_t misses = 0;   // asked for and not known to the asking tenant
  uint64_t saved = 0;    // bytes of hits that were not sent
  uint64_t kept = 0;     // uploads that were taken in, also of what was there
  uint64_t evicted = 0;  // images that made room, each for each tenant that had it
  uint64_t damaged = 0;  // files whose bytes have changed
};

class ImageStore {
 public:
  struct Options {
    std::string folder;
    uint64_t bytes = 0;  // of all images together, at most
    // Of one tenant; an image of several counts for each of them.
    uint64_t tenant_bytes = UINT64_MAX;
    uint64_t tenant_images = UINT64_MAX;
  };
  // nullptr with a sentence when the folder cannot be used.
  static std::unique_ptr<ImageStore> Open(const Options& options, std::string* sentence);

  // Whether the tenant uploaded an image of this digest and size; counted as a hit or a miss.
  bool Knows(const std::string& tenant, const wire::Digest& digest, uint64_t bytes);
  // The same, with the bytes in sealed memory; invalid if not known or damaged. A damaged image is
  // removed.
  wire::Descriptor Find(const std::string& tenant, const wire::Digest& digest, uint64_t bytes);

  // Stores an image that the tenant has uploaded: `bytes` of sealed memory.
  enum class Kept { kDone, kRefused, kNoRoom };
  // With kNoRoom `why`, unless that is nullptr, is a sentence.
  Kept Keep(const std::string& tenant, const wire::Digest& digest, uint64_t bytes,
            const wire::Descriptor& memory, std::string* why = nullptr);

  Figures figures();
  // The images that tenants used last, with the tenant that did; the newest first.
  std::vector<std::pair<std::string, wire::Digest>> Newest(size_t most);

 private:
  struct Image {
    uint64_t bytes = 0;
    uint64_t used = 0;                        // larger is later
    std::map<std::string, uint64_t> tenants;  // and when they used it
  };
  using Index = std::map<wire::Digest, Image>;
  struct Tenant {
    std::map<uint64_t, wire::Digest> by_use;  // its images, that of the longest ago first
    uint64_t bytes = 0;                       // of these
  };
  using Tenants = std::map<std::string, Tenant>;

  explicit ImageStore(const Options& options) : options_(options), files_(options.folder) {}
  void ReadIndex();
  // Makes it again if somebody has removed it.
  bool HasFolder(std::string* why);
  void Use(Index::iterator image, const std::string& tenant) LONGWIRE_REQUIRES(mutex_);
  Index::iterator KnownTo(const std::string& tenant, const wire::Digest& digest, uint64_t bytes)
      LONGWIRE_REQUIRES(mutex_);
  // For `bytes` more; false if that exceeds the limit.
  bool MakeRoom(uint64_t bytes) LONGWIRE_REQUIRES(mutex_);
  void KeepWithin(const std::string& tenant) LONGWIRE_REQUIRES(mutex_);
  void DropOldestOf(Tenants::iterator tenant) LONGWIRE_REQUIRES(mutex_);
  void DropMark(Index::iterator image, const std::string& tenant) LONGWIRE_REQUIRES(mutex_);
  void Drop(Index::iterator image) LONGWIRE_REQUIRES(mutex_);

  const Options options_;
  ImageFiles files_;
  base::Mutex mutex_{base::ranks::kImageStore};
  Index index_ LONGWIRE_GUARDED_BY(mutex_);
  Tenants tenants_ LONGWIRE_GUARDED_BY(mutex_);        // those that have images
  uint64_t stored_ LONGWIRE_GUARDED_BY(mutex_) = 0;    // bytes, of what is in the index
  uint64_t arriving_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // bytes, of what is being written
  uint64_t clock_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  Figures counts_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::images
