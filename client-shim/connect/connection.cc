#include "client-shim/connect/connection.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/environment.h"
#include "base/reason.h"
#include "client-shim/connect/link_words.h"
#include "wire/descriptors.h"

namespace longwire::shim {
namespace {

constexpr const char* kLocal = "unix:";

constexpr std::chrono::milliseconds kConnectPause{5};  // between attempts to connect

uint64_t Fnv64(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

// A file's text, at most what a certificate with its chain takes.
std::string TextOf(const std::string& path) {
  return wire::ReadFile(path.c_str(), size_t{64} << 10);
}

// True if it is a folder of this user that nobody else can write to; it is created if needed.
bool IsTrustedFolder(const std::string& path, std::string* sentence) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    *sentence = path + " cannot be made: " + base::Reason(errno) +
                "; set LONGWIRE_RUNTIME_DIR to a folder of this user alone";
    return false;
  }
  struct stat status;
  if (lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
      (status.st_mode & 022) != 0) {
    *sentence = path + " is not a folder of this user alone; set LONGWIRE_RUNTIME_DIR to one";
    return false;
  }
  if (access(path.c_str(), W_OK | X_OK) == 0) return true;
  *sentence = path + " cannot be written to: " + base::Reason(errno) +
              "; set LONGWIRE_RUNTIME_DIR to a folder of this user alone";
  return false;
}

// Whether an attempt to connect failed for want of a link. One that is starting, or full, may
// answer later.
bool IsMissing(int error) {
  return error == ENOENT || error == ECONNREFUSED || error == EAGAIN || error == EINTR;
}

}  // namespace

std::string LinkSocketPath(const Options& options, std::string* sentence) {
  std::string folder = options.runtime_directory;
  const char* runtime = base::Environment("XDG_RUNTIME_DIR");
  if (folder.empty() && runtime != nullptr && access(runtime, W_OK) == 0) {
    folder = std::string(runtime) + "/longwire";
  }
  if (folder.empty()) folder = "/tmp/longwire-" + std::to_string(geteuid());
  if (!IsTrustedFolder(folder, sentence)) return "";
  char name[64];
  const wire::IdentityFiles& files = options.identity;
  // With the certificate's text and the switches: a link keeps those that it started with.
  uint64_t hash = Fnv64(options.server + "\n" + files.certificate + "\n" + files.key + "\n" +
                        files.authority + "\n" + options.compression + "\n" +
                        TextOf(files.certificate) + "\n" + options.disabled);
  snprintf(name, sizeof(name), "/link-%016llx.sock", static_cast<unsigned long long>(hash));
  return folder + name;
}

bool IsLocal(const Options& options) { return options.server.rfind(kLocal, 0) == 0; }

wire::Descriptor ConnectToServer(const Options& options,
                                 std::chrono::steady_clock::time_point deadline,
                                 std::string* sentence) {
  if (IsLocal(options)) {
    std::string path = options.server.substr(strlen(kLocal));
    wire::Descriptor socket = wire::ConnectLocal(path);
    if (!socket.valid()) *sentence = "nobody answers at " + path + ": " + base::Reason(errno);
    return socket;
  }
  std::string path = LinkSocketPath(options, sentence);
  if (path.empty()) return {};
  wire::Descriptor socket = wire::ConnectLocal(path);
  if (socket.valid()) return socket;
  if (!IsMissing(errno)) {
    *sentence = "cannot connect to longwire-link at " + path + ": " + base::Reason(errno);
    return {};
  }
  LinkWords words;
  if (!StartLink(options, path, words.Open(), sentence)) return {};
  words.CloseOtherEnd();
  for (bool starts = true; starts && std::chrono::steady_clock::now() < deadline;) {
    starts = words.Wait(kConnectPause);
    socket = wire::ConnectLocal(path);
    if (socket.valid()) return socket;
    starts &= IsMissing(errno);
  }
  *sentence = "longwire-link did not start (socket " + path + "): ";
  *sentence += IsMissing(errno) ? words.Sentence() : base::Reason(errno);
  return socket;
}

}  // namespace longwire::shim
