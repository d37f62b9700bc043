#include "client-shim/tables/compile_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/environment.h"
#include "base/read_write.h"
#include "wire/descriptors.h"
#include "wire/number.h"
#include "wire/socket.h"

namespace longwire::shim {
namespace {

constexpr char kMagic[8] = {'L', 'W', 'C', 'O', 'D', 'E', '0', '1'};

// What a file begins with; the bytes follow, and nothing after them.
struct Header {
  char magic[sizeof(kMagic)];
  wire::Digest key;
  wire::Digest digest;
  uint64_t bytes;
};

// The folder and those above it, for this user alone.
bool MakeFolders(const std::string& path) {
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    mkdir(path.substr(0, end).c_str(), 0700);
  }
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

struct Entry {
  std::string path;
  uint64_t bytes = 0;
  timespec used{};
};

template <class Visit>
void ForEachName(const std::string& folder, const Visit& visit) {
  wire::Descriptor opened = wire::OpenFile(folder.c_str(), O_RDONLY | O_DIRECTORY);
  DIR* list = opened.valid() ? fdopendir(opened.get()) : nullptr;
  if (list == nullptr) return;
  opened.Release();  // the list closes it
  while (const dirent* one = readdir(list)) {
    if (one->d_name[0] != '.') visit(folder + "/" + one->d_name);
  }
  closedir(list);
}

// Every entry, the one that was used longest ago first; files that somebody is writing among them.
std::vector<Entry> Entries(const std::string& folder) {
  std::vector<Entry> entries;
  auto add = [&entries](const std::string& path) {
    struct stat facts;
    if (lstat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return;
    entries.push_back({path, static_cast<uint64_t>(facts.st_size), facts.st_mtim});
  };
  ForEachName(folder, [&add](const std::string& path) { ForEachName(path, add); });
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec
                                          : a.used.tv_nsec < b.used.tv_nsec;
  });
  return entries;
}

// Removes the oldest until what is left fits; says how much is left.
uint64_t Evict(const std::string& folder, uint64_t most) {
  std::vector<Entry> entries = Entries(folder);
  uint64_t total = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  for (const Entry& entry : entries) {
    if (total <= most) break;
    if (unlink(entry.path.c_str()) == 0) total -= entry.bytes;
  }
  return total;
}

}  // namespace

std::optional<CompileCache> CompileCache::FromEnvironment() {
  const char* disable = base::Environment("CUDA_CACHE_DISABLE");
  if (disable != nullptr && atoi(disable) != 0) return std::nullopt;
  uint64_t limit = kUsualLimit;
  if (const char* wanted = base::Environment("CUDA_CACHE_MAXSIZE"); wanted != nullptr) {
    constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
    auto bytes = static_cast<uint64_t>(wire::ParseNumber(wanted, 0, kMax).value_or(kUsualLimit));
    limit = std::min(bytes, kLargestLimit);
  }
  const char* path = base::Environment("CUDA_CACHE_PATH");
  const char* home = base::Environment("HOME");
  std::string folder;
  if (path != nullptr && path[0] == '/') {
    folder = path;
  } else if (home != nullptr && home[0] == '/') {
    folder = std::string(home) + "/.nv/ComputeCache";
  }
  // NVIDIA's driver may use the same folder: what is ours lies in one of its own.
  if (folder.empty() || limit == 0) return std::nullopt;
  return CompileCache(folder + "/longwire", limit);
}

std::string CompileCache::PathOf(const wire::Digest& key) const {
  std::string name = wire::Hexadecimal(key);
  return folder_ + "/" + name.substr(0, 2) + "/" + name.substr(2);
}

std::optional<std::vector<std::byte>> CompileCache::Find(const wire::Digest& key) const {
  std::string path = PathOf(key);
  wire::Descriptor file = wire::OpenFile(path.c_str(), O_RDONLY | O_NOFOLLOW);
  struct stat facts;
  Header header;
  if (!file.valid() || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return std::nullopt;
  }
  std::vector<std::byte> bytes;
  bool whole = base::ReadAll(file.get(), std::as_writable_bytes(std::span(&header, 1))) &&
               std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0 && header.key == key &&
               static_cast<uint64_t>(facts.st_size) == sizeof(header) + header.bytes;
  if (whole) {
    bytes.resize(header.bytes);
    whole = base::ReadAll(file.get(), bytes) && wire::Sha256Of(bytes) == header.digest;
  }
  if (!whole) {
    unlink(path.c_str());
    return std::nullopt;
  }
  futimens(file.get(), nullptr);  // used now; where that is refused it is evicted sooner
  return bytes;
}

bool CompileCache::Insert(const wire::Digest& key, std::span<const std::byte> bytes) const {
  if (bytes.empty() || sizeof(Header) + bytes.size() > limit_) return false;
  std::string path = PathOf(key);
  if (!MakeFolders(path.substr(0, path.rfind('/')))) return false;
  static std::atomic<uint64_t> number{0};
  std::string draft =
      path + "." + std::to_string(getpid()) + "." + std::to_string(number.fetch_add(1));
  wire::Descriptor file =
      wire::OpenFile(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!file.valid()) return false;
  Header header{.key = key, .digest = wire::Sha256Of(bytes), .bytes = bytes.size()};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  if (!base::WriteAll(file.get(), std::as_bytes(std::span(&header, 1))) ||
      !base::WriteAll(file.get(), bytes) || rename(draft.c_str(), path.c_str()) != 0) {
    unlink(draft.c_str());
    return false;
  }
  Count(sizeof(header) + bytes.size());
  return true;
}

void CompileCache::Count(uint64_t added) const {
  // The sum of all entries, in a file that is also the lock: entries are looked at only when the
  // sum says that there are too many. What it misses when a process dies is counted then.
  wire::Descriptor file =
      wire::OpenFile((folder_ + "/size").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (!file.valid() || flock(file.get(), LOCK_EX) != 0) return;
  uint64_t total = 0;
  if (pread(file.get(), &total, sizeof(total), 0) != sizeof(total)) total = limit_;  // unknown
  total = added > limit_ - std::min(total, limit_) ? Evict(folder_, limit_ - limit_ / 8)
                                                   : total + added;
  // A sum that cannot be written is unknown to the next process too.
  if (pwrite(file.get(), &total, sizeof(total), 0) != sizeof(total)) {
    (void)!ftruncate(file.get(), 0);
  }
}

void CompileKey::Add(std::span<const std::byte> bytes) {
  uint64_t length = bytes.size();
  digest_.Add(std::as_bytes(std::span(&length, 1)));
  digest_.Add(bytes);
}

}  // namespace longwire::shim
