#include "server/daemon/checkpoints/note_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/read_write.h"
#include "server/daemon/checkpoints/checkpoint_file.h"

namespace longwire::daemon {
namespace {

constexpr size_t kMaxNote = 1 << 20;

}  // namespace

bool FolderToDisk(const std::string& folder) {
  wire::Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened.valid() && fsync(opened.get()) == 0;
}

bool WriteNoteFile(const std::string& folder, const std::string& name,
                   std::span<const std::byte> content) {
  std::vector<std::byte> bytes(content.begin(), content.end());
  const Digest digest = DigestOf(bytes);
  const auto end = std::as_bytes(std::span(digest));
  bytes.insert(bytes.end(), end.begin(), end.end());
  const std::string path = folder + "/" + name, made = path + kHalfFile;
  wire::Descriptor file(
      open(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.valid() && base::WriteAll(file.get(), bytes) && fsync(file.get()) == 0 &&
      rename(made.c_str(), path.c_str()) == 0 && FolderToDisk(folder)) {
    return true;
  }
  const int error = errno;
  unlink(made.c_str());
  errno = error;
  return false;
}

bool ReadNoteFile(const std::string& path, std::vector<std::byte>* content) {
  wire::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  content->resize(kMaxNote);
  ssize_t got = file.valid() ? read(file.get(), content->data(), content->size()) : -1;
  Digest digest{};
  if (got < static_cast<ssize_t>(digest.size())) return false;
  content->resize(static_cast<size_t>(got));
  std::ranges::copy(std::span(*content).last(digest.size()),
                    std::as_writable_bytes(std::span(digest)).begin());
  content->resize(content->size() - digest.size());
  return DigestOf(*content) == digest;
}

bool RemoveNoteFile(const std::string& folder, const std::string& name) {
  return (unlink((folder + "/" + name).c_str()) == 0 || errno == ENOENT) && FolderToDisk(folder);
}

}  // namespace longwire::daemon
