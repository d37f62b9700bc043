#include "server/daemon/settings/paths.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/reason.h"

namespace longwire::daemon {

namespace {

// Empty when it is not set.
std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string CacheDirectory() {
  std::string given = Variable("CACHE_DIRECTORY");  // a list, when the unit has several
  if (!given.empty()) return given.substr(0, given.find(':'));
  if (!Variable("LONGWIRE_RUNTIME_DIR").empty()) return RuntimeDirectory() + "/cache";
  if (geteuid() == 0) return "/var/cache/longwire";
  std::string user = Variable("XDG_CACHE_HOME");
  if (!user.starts_with('/') && Variable("HOME").starts_with('/')) {
    user = Variable("HOME") + "/.cache";
  }
  return user.starts_with('/') ? user + "/longwire-server" : "";
}

std::string StateDirectory() {
  std::string given = Variable("STATE_DIRECTORY");  // a list, as above
  return given.substr(0, given.find(':'));
}

std::string RuntimeDirectory() {
  std::string own = Variable("LONGWIRE_RUNTIME_DIR");
  if (!own.empty()) return own;
  if (geteuid() == 0) return "/run/longwire";
  const char* user = getenv("XDG_RUNTIME_DIR");
  if (user != nullptr && access(user, W_OK) == 0) return std::string(user) + "/longwire";
  return "/tmp/longwire-" + std::to_string(geteuid());
}

bool PrepareFolderOf(const std::string& socket, std::string* sentence) {
  std::string folder = socket.substr(0, socket.rfind('/'));
  if (folder.empty()) return true;
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    *sentence = "cannot make " + folder + ": " + base::Reason(errno);
    return false;
  }
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    *sentence = folder + " is not a folder";
    return false;
  }
  bool others = (status.st_mode & 022) != 0 && (status.st_mode & S_ISVTX) == 0;
  if ((status.st_uid != geteuid() && status.st_uid != 0) || others) {
    *sentence = folder + " can be changed by others; choose a folder of this user's own";
    return false;
  }
  return true;
}

std::string ProgramFolder() {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) return ".";
  std::string program(path, static_cast<size_t>(length));
  return program.substr(0, program.rfind('/'));
}

}  // namespace longwire::daemon
