#include "link/certificates/pem_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>

#include "base/environment.h"
#include "base/read_write.h"
#include "base/reason.h"
#include "wire/socket.h"

namespace longwire::certificates {
namespace {

constexpr mode_t kForOwner = 0600;
constexpr mode_t kForAll = 0644;
constexpr size_t kMaxBytes = 1 << 20;

std::string Because(const std::string& what) { return what + ": " + base::Reason(errno); }

// All of it or nothing.
bool WriteNew(const std::string& path, const std::string& text, mode_t mode) {
  wire::Descriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!file.valid()) return false;
  if (fchmod(file.get(), mode) == 0 && base::WriteAll(file.get(), std::as_bytes(std::span(text))) &&
      fsync(file.get()) == 0) {
    return true;
  }
  const int reason = errno;
  unlink(path.c_str());
  errno = reason;
  return false;
}

// systemd opens a credential to its service by an access list, whose mask shows as the group's
// rights.
bool IsCredential(const std::string& path) {
  const char* folder = base::Environment("CREDENTIALS_DIRECTORY");
  return folder != nullptr && path.starts_with(std::string(folder) + "/");
}

}  // namespace

bool WriteText(const std::string& path, const std::string& text, Readers readers, bool replace,
               std::string* sentence) {
  const mode_t mode = readers == Readers::kOwner ? kForOwner : kForAll;
  // A replaced file changes at once: whoever reads it meanwhile sees the old or the new one.
  std::string place = replace ? path + ".new" : path;
  if (replace) unlink(place.c_str());
  if (WriteNew(place, text, mode)) {
    if (!replace || rename(place.c_str(), path.c_str()) == 0) return true;
    const int reason = errno;
    unlink(place.c_str());
    errno = reason;
  }
  *sentence = errno == EEXIST ? path + " is there already; --force replaces it"
                              : Because("cannot write " + path);
  return false;
}

PemFiles FilesOf(const std::string& path) { return {path + ".crt", path + ".key"}; }

bool MakeFolder(const std::string& path, std::string* sentence) {
  for (size_t end = 1; end != std::string::npos;) {
    end = path.find('/', end + 1);
    std::string folder = path.substr(0, end);
    if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) continue;
    *sentence = Because("cannot make the folder " + folder);
    return false;
  }
  return true;
}

bool WriteFiles(const PemFiles& files, const Issued& issued, bool replace, std::string* sentence) {
  // Before the first is written: one new file beside an old one would not fit.
  for (const std::string& path : {files.key, files.certificate}) {
    if (replace || access(path.c_str(), F_OK) != 0) continue;
    *sentence = path + " is there already; --force replaces it";
    return false;
  }
  return WriteText(files.key, issued.key, Readers::kOwner, replace, sentence) &&
         WriteText(files.certificate, issued.certificate, Readers::kAll, replace, sentence);
}

std::optional<std::string> ReadText(const std::string& path, std::string* sentence) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (file.is_open() && !text.empty()) return text;
  *sentence = file.is_open() ? path + " is empty" : Because("cannot read " + path);
  return std::nullopt;
}

std::optional<Issued> ReadFiles(const PemFiles& files, std::string* sentence) {
  struct stat status {};
  const bool readable = stat(files.key.c_str(), &status) == 0 && (status.st_mode & 077) != 0;
  if (readable && !IsCredential(files.key)) {
    *sentence = "the private key " + files.key +
                " can be used by others than its owner; run: chmod 600 " + files.key;
    return std::nullopt;
  }
  auto certificate = ReadText(files.certificate, sentence);
  if (!certificate) return std::nullopt;
  auto key = ReadText(files.key, sentence);
  if (!key) return std::nullopt;
  return Issued{*certificate, *key};
}

}  // namespace longwire::certificates
