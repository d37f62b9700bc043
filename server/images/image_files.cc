#include "server/images/image_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/reason.h"
#include "server/images/sealed_memory.h"
#include "wire/guards.h"

namespace longwire::images {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr char kTenantMark = '=';  // before the name: no name is "." or ".." then

// The names in a folder; none when it cannot be read.
std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code problem;
  fs::directory_iterator entry(folder, problem), end;
  while (!problem && entry != end) {
    names.push_back(entry->path().filename());
    entry.increment(problem);
  }
  return names;
}

enum class Copied { kDone, kWrongDigest, kFailed };

// Copies `bytes` bytes from one to the other, unless that is -1, and holds them against the digest.
Copied Copy(int from, int to, uint64_t bytes, const wire::Digest& digest) {
  static const bool checks = !wire::GuardIsOff("image_digest");
  std::vector<std::byte> piece(std::min<uint64_t>(bytes, kPieceBytes));
  wire::Sha256 sum;
  for (uint64_t at = 0; at < bytes;) {
    ssize_t got = pread(from, piece.data(), std::min<uint64_t>(bytes - at, piece.size()),
                        static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Copied::kFailed;
    auto part = std::span(piece).first(static_cast<size_t>(got));
    sum.Add(part);
    if (to >= 0 && !WriteAll(to, part)) return Copied::kFailed;
    at += part.size();
  }
  return sum.Finish() == digest || !checks ? Copied::kDone : Copied::kWrongDigest;
}

}  // namespace

bool ImageFiles::Open(std::string* sentence) {
  std::error_code problem;
  fs::create_directories(folder_, problem);
  if (!problem) chmod(folder_.c_str(), 0700);
  for (const char* part : {"/images", "/tenants", "/new"}) {
    if (!problem) fs::create_directory(folder_ + part, problem);
  }
  if (problem) {
    *sentence = "cannot make " + folder_ + ": " + base::Reason(problem.value());
    return false;
  }
  lock_.Reset(open((folder_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_.valid() || flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    *sentence = lock_.valid() ? "another longwired uses " + folder_
                              : "cannot write to " + folder_ + ": " + base::Reason(errno);
    return false;
  }
  for (const std::string& name : NamesIn(folder_ + "/new"))
    unlink((folder_ + "/new/" + name).c_str());
  return true;
}

bool ImageFiles::Stands() const {
  struct stat status {};
  return fstat(lock_.get(), &status) == 0 && status.st_nlink != 0 &&
         access((folder_ + "/images").c_str(), F_OK) == 0;
}

std::string ImageFiles::ImagePath(const wire::Digest& digest) const {
  return folder_ + "/images/" + wire::Hexadecimal(digest);
}

std::string ImageFiles::TenantFolder(const std::string& tenant) const {
  return folder_ + "/tenants/" + kTenantMark + tenant;
}

std::vector<ImageFiles::Image> ImageFiles::Images() const {
  std::vector<Image> images;
  for (const std::string& name : NamesIn(folder_ + "/images")) {
    Image image;
    struct stat status {};
    if (!wire::ParseHexadecimal(name, &image.digest) ||
        lstat((folder_ + "/images/" + name).c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
      continue;
    }
    image.bytes = static_cast<uint64_t>(status.st_size);
    image.used = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    images.push_back(image);
  }
  return images;
}

std::vector<ImageFiles::Mark> ImageFiles::Marks() const {
  std::vector<Mark> marks;
  for (const std::string& folder : NamesIn(folder_ + "/tenants")) {
    if (folder.empty() || folder[0] != kTenantMark) continue;
    for (const std::string& name : NamesIn(folder_ + "/tenants/" + folder)) {
      wire::Digest digest;
      if (wire::ParseHexadecimal(name, &digest)) marks.push_back({folder.substr(1), digest});
    }
  }
  return marks;
}

wire::Descriptor ImageFiles::Read(const wire::Digest& digest, uint64_t bytes) {
  wire::Descriptor file(open(ImagePath(digest).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  wire::Descriptor memory = NewMemory();
  if (!file.valid() || !memory.valid() ||
      Copy(file.get(), memory.get(), bytes, digest) != Copied::kDone || !Seal(memory)) {
    return wire::Descriptor();
  }
  futimens(file.get(), nullptr);  // the time of its last use, also for the next daemon
  return memory;
}

ImageFiles::Written ImageFiles::Write(const wire::Descriptor& memory, const wire::Digest& digest,
                                      uint64_t bytes, bool write) {
  std::string path = folder_ + "/new/" + std::to_string(next_.fetch_add(1));
  wire::Descriptor file;
  if (write) {
    file.Reset(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file.valid()) return Written::kNoRoom;
  }
  Copied copied = Copy(memory.get(), file.get(), bytes, digest);
  if (copied == Copied::kWrongDigest || !write) {
    if (write) unlink(path.c_str());
    return copied == Copied::kDone ? Written::kDone : Written::kWrongDigest;
  }
  if (copied == Copied::kDone && rename(path.c_str(), ImagePath(digest).c_str()) == 0) {
    return Written::kDone;
  }
  const int reason = errno;
  unlink(path.c_str());
  errno = reason;
  return Written::kNoRoom;
}

bool ImageFiles::AddMark(const std::string& tenant, const wire::Digest& digest) {
  std::string folder = TenantFolder(tenant);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return false;
  std::string path = folder + "/" + wire::Hexadecimal(digest);
  return wire::Descriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)).valid();
}

void ImageFiles::RemoveMark(const std::string& tenant, const wire::Digest& digest) {
  unlink((TenantFolder(tenant) + "/" + wire::Hexadecimal(digest)).c_str());
}

bool ImageFiles::HasImage(const wire::Digest& digest) const {
  return access(ImagePath(digest).c_str(), R_OK) == 0;
}

void ImageFiles::RemoveImage(const wire::Digest& digest) { unlink(ImagePath(digest).c_str()); }

}  // namespace longwire::images
