// The folder of an image store. An image's file is named by its digest; that a tenant uploaded it
// is an empty file of the same name in the tenant's own folder. Both appear whole or not at all, so
// whatever is there after a crash is right.
//
//   images/DIGEST           the bytes
//   tenants/=NAME/DIGEST    the tenant uploaded them in full
//   new/NUMBER              being written; removed when the store is opened
//   lock                    held by the one process that uses the folder
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "wire/sha256.h"
#include "wire/socket.h"

namespace longwire::images {

class ImageFiles {
 public:
  explicit ImageFiles(std::string folder) : folder_(std::move(folder)) {}

  // Makes the folders and takes the lock. False with a sentence. Again when somebody has removed
  // them; not thread-safe.
  bool Open(std::string* sentence);

  // Whether the folder is the one that was opened, and not removed since.
  bool Stands() const;

  struct Image {
    wire::Digest digest;
    uint64_t bytes = 0;
    int64_t used = 0;  // nanoseconds of the clock: when it was last used
  };
  struct Mark {
    std::string tenant;
    wire::Digest digest;
  };
  std::vector<Image> Images() const;
  std::vector<Mark> Marks() const;

  // Copies an image's file into sealed memory. Invalid if it cannot be read whole or what was read
  // has another digest.
  wire::Descriptor Read(const wire::Digest& digest, uint64_t bytes);
  // Copies sealed memory to an image's file, which appears only if the digest is right and there is
  // room. With `write` false the digest is only compared.
  enum class Written { kDone, kWrongDigest, kNoRoom };
  Written Write(const wire::Descriptor& memory, const wire::Digest& digest, uint64_t bytes,
                bool write);
  // After kNoRoom or a false of AddMark: errno says why, after ENOENT the folder was removed.
  bool AddMark(const std::string& tenant, const wire::Digest& digest);
  void RemoveMark(const std::string& tenant, const wire::Digest& digest);
  bool HasImage(const wire::Digest& digest) const;
  void RemoveImage(const wire::Digest& digest);

 private:
  std::string ImagePath(const wire::Digest& digest) const;
  std::string TenantFolder(const std::string& tenant) const;

  const std::string folder_;
  wire::Descriptor lock_;
  std::atomic<uint64_t> next_{1};
};

}  // namespace longwire::images
