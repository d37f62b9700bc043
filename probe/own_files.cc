#include "probe/own_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>

#include "wire/descriptors.h"

namespace longwire::probe {

namespace {

bool IsOwn(const struct stat& found, mode_t kind) {
  return (found.st_mode & S_IFMT) == kind && found.st_uid == geteuid() &&
         (found.st_mode & S_IWOTH) == 0;
}

bool IsOwnFile(const struct stat& found, size_t most) {
  return IsOwn(found, S_IFREG) && found.st_size > 0 && static_cast<size_t>(found.st_size) <= most;
}

}  // namespace

std::vector<std::string> NamesIn(const std::string& folder, size_t most) {
  wire::Descriptor opened =
      wire::OpenFile(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
  struct stat found {};
  if (!opened.valid() || fstat(opened.get(), &found) != 0 || !IsOwn(found, S_IFDIR)) return {};
  const std::unique_ptr<DIR, int (*)(DIR*)> reading(fdopendir(opened.get()), &closedir);
  if (reading == nullptr) return {};
  opened.Release();
  std::vector<std::string> names;
  while (names.size() < most) {
    const dirent* entry = readdir(reading.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

bool IsOwnFile(const std::string& path, size_t most, size_t* bytes) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0 || !IsOwnFile(found, most)) return false;
  *bytes = static_cast<size_t>(found.st_size);
  return true;
}

std::string ReadOwnFile(const std::string& path, size_t most) {
  const wire::Descriptor file =
      wire::OpenFile(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  struct stat found {};
  if (!file.valid() || fstat(file.get(), &found) != 0 || !IsOwnFile(found, most)) return "";
  std::string text(static_cast<size_t>(found.st_size), '\0');
  for (size_t at = 0; at < text.size();) {
    const ssize_t part = read(file.get(), text.data() + at, text.size() - at);
    if (part <= 0) return "";
    at += static_cast<size_t>(part);
  }
  return text;
}

}  // namespace longwire::probe
