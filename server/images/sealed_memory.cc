#include "server/images/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace longwire::images {
namespace {

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

}  // namespace

wire::Descriptor NewMemory() {
  return wire::Descriptor(memfd_create("longwire-image", MFD_CLOEXEC | MFD_ALLOW_SEALING));
}

bool Seal(const wire::Descriptor& memory) { return fcntl(memory.get(), F_ADD_SEALS, kSeals) == 0; }

bool IsSealed(const wire::Descriptor& memory, uint64_t bytes) {
  struct stat status {};
  // Only memory files have seals at all.
  int seals = fcntl(memory.get(), F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals && fstat(memory.get(), &status) == 0 &&
         static_cast<uint64_t>(status.st_size) == bytes;
}

bool ReadAll(const wire::Descriptor& memory, std::span<std::byte> bytes) {
  for (off_t at = 0; !bytes.empty();) {
    ssize_t got = pread(memory.get(), bytes.data(), bytes.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return true;
}

}  // namespace longwire::images
