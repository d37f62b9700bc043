#include "client-shim/connect/link_place.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/environment.h"
#include "base/reason.h"
#include "client-shim/connect/link_limits.h"
#include "client-shim/connect/link_words.h"
#include "wire/descriptors.h"

namespace longwire::shim {
namespace {

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

std::string Folder(const Options& options) {
  if (!options.runtime_directory.empty()) return options.runtime_directory;
  const char* runtime = base::Environment("XDG_RUNTIME_DIR");
  if (runtime != nullptr && access(runtime, W_OK) == 0) return std::string(runtime) + "/longwire";
  return "/tmp/longwire-" + std::to_string(geteuid());
}

std::string SocketName(const Options& options, const std::string& limits) {
  const wire::IdentityFiles& files = options.identity;
  // With the certificate's text and the switches: a link keeps those that it started with.
  uint64_t hash =
      Fnv64(options.server + "\n" + files.certificate + "\n" + files.key + "\n" + files.authority +
            "\n" + options.compression + "\n" + TextOf(files.certificate) + "\n" +
            options.disabled + "\n" + Belonging() + "\n" + limits);
  char name[64];
  snprintf(name, sizeof(name), "/link-%016llx.sock", static_cast<unsigned long long>(hash));
  return name;
}

// The path itself if there is no such file.
std::string RealPath(std::string path) {
  char* real = realpath(path.c_str(), nullptr);
  if (real != nullptr) path = real;
  free(real);
  return path;
}

std::string LinkBinary(const Options& options) {
  if (!options.link.empty()) return RealPath(options.link);
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&StartLink), &info) == 0) return "longwire-link";
  std::string library = RealPath(info.dli_fname);
  size_t slash = library.rfind('/');
  return (slash == std::string::npos ? "." : library.substr(0, slash)) + "/../../bin/longwire-link";
}

std::vector<std::string> CommandLine(const Options& options, const std::string& socket) {
  std::vector<std::string> words = {LinkBinary(options), "--server", options.server,
                                    "--socket",          socket,     "--compression",
                                    options.compression};
  const wire::IdentityFiles& files = options.identity;
  if (!files.certificate.empty()) words.insert(words.end(), {"--cert", files.certificate});
  if (!files.key.empty()) words.insert(words.end(), {"--key", files.key});
  if (!files.authority.empty()) words.insert(words.end(), {"--ca", files.authority});
  return words;
}

}  // namespace

bool FindLinkPlace(const Options& options, LinkPlace* place, std::string* sentence) {
  place->folder = Folder(options);
  if (!IsTrustedFolder(place->folder, sentence)) return false;
  const LastingLimits limits = FindLastingLimits();
  place->socket = place->folder + SocketName(options, limits.hard + limits.speed);
  for (const std::string& less : {std::string(), limits.speed}) {
    std::string freer = place->folder + SocketName(options, less);
    if (freer != place->socket) place->freer_sockets.push_back(freer);
  }
  place->words = CommandLine(options, place->socket);
  if (!base::EnvironmentIsTrusted()) return true;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    bool ours_alone = strncmp(*variable, "LD_PRELOAD=", 11) == 0;
    if (!ours_alone) place->environment.emplace_back(*variable);
  }
  return true;
}

wire::Descriptor ConnectToLink(const LinkPlace& place,
                               std::chrono::steady_clock::time_point deadline,
                               std::string* sentence) {
  for (const std::string& freer : place.freer_sockets) {
    wire::Descriptor socket = wire::ConnectLocal(freer);
    if (socket.valid()) return socket;
  }
  const std::string& path = place.socket;
  wire::Descriptor socket = wire::ConnectLocal(path);
  if (socket.valid()) return socket;
  if (!IsMissing(errno)) {
    *sentence = "cannot connect to longwire-link at " + path + ": " + base::Reason(errno);
    return {};
  }
  LinkWords words;
  if (!IsTrustedFolder(place.folder, sentence) || !StartLink(place, words.Open(), sentence)) {
    return {};
  }
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
