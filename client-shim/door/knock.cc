#include "client-shim/door/knock.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "wire/descriptors.h"

namespace longwire::shim {
namespace {

constexpr const char* kLocal = "unix:";

constexpr std::chrono::milliseconds kDoorPause{5};  // between looks whether the door is open

uint64_t Fnv64(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

// A file's text, at most what a certificate with its chain takes.
std::string TextOf(const std::string& path) {
  return wire::ReadFile(path.c_str(), size_t{64} << 10);
}

// Whether it is a folder of this user that nobody else can write to, made if it is not there; else
// what is wrong with it.
bool IsTrustedFolder(const std::string& path, std::string* sentence) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    *sentence = path + " cannot be made: " + strerror(errno) +
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
  *sentence = path + " cannot be written to: " + strerror(errno) +
              "; set LONGWIRE_RUNTIME_DIR to a folder of this user alone";
  return false;
}

}  // namespace

std::string LinkDoorPath(const Options& options, std::string* sentence) {
  std::string folder = options.runtime_directory;
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  if (folder.empty() && runtime != nullptr && access(runtime, W_OK) == 0) {
    folder = std::string(runtime) + "/longwire";
  }
  if (folder.empty()) folder = "/tmp/longwire-" + std::to_string(geteuid());
  if (!IsTrustedFolder(folder, sentence)) return "";
  char name[64];
  const wire::IdentityFiles& files = options.identity;
  // The certificate's text too: a link stays who it was when it started, and without what was
  // switched off then.
  uint64_t hash = Fnv64(options.server + "\n" + files.certificate + "\n" + files.key + "\n" +
                        files.authority + "\n" + options.compression + "\n" +
                        TextOf(files.certificate) + "\n" + options.disabled);
  snprintf(name, sizeof(name), "/link-%016llx.sock", static_cast<unsigned long long>(hash));
  return folder + name;
}

bool IsLocal(const Options& options) { return options.server.rfind(kLocal, 0) == 0; }

wire::Descriptor Knock(const Options& options, std::chrono::steady_clock::time_point deadline,
                       std::string* sentence) {
  if (IsLocal(options)) {
    std::string path = options.server.substr(strlen(kLocal));
    wire::Descriptor door = wire::ConnectLocal(path);
    if (!door.valid()) *sentence = "nobody answers at " + path + ": " + strerror(errno);
    return door;
  }
  std::string path = LinkDoorPath(options, sentence);
  if (path.empty()) return {};
  wire::Descriptor door = wire::ConnectLocal(path);
  if (door.valid()) return door;
  if (!StartLink(options, path, sentence)) return {};
  while (!door.valid() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kDoorPause);
    door = wire::ConnectLocal(path);
  }
  if (!door.valid()) *sentence = "longwire-link did not start (door " + path + ")";
  return door;
}

}  // namespace longwire::shim
