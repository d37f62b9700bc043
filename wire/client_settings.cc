#include "wire/client_settings.h"

#include <limits.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "base/environment.h"
#include "wire/descriptors.h"

namespace longwire::wire {
namespace {

// For processes that change their directory. A file that is not there keeps its name.
std::string Absolute(const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  char folder[PATH_MAX];
  return getcwd(folder, sizeof(folder)) == nullptr ? path : std::string(folder) + "/" + path;
}

bool IsReadable(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

// The certificate and key that lie in `folder` by default, if this user may use them.
bool FindPair(const std::string& folder, IdentityFiles* files) {
  if (!IsReadable(folder + "/client.crt") || !IsReadable(folder + "/client.key")) return false;
  files->certificate = folder + "/client.crt";
  files->key = folder + "/client.key";
  return true;
}

// What lies beside `path` under another name; empty when it does not.
std::string Beside(const std::string& path, const std::string& name) {
  std::string other = path.substr(0, path.rfind('/') + 1) + name;
  return IsReadable(other) ? other : "";
}

// "x.key" to "x.crt".
std::string KeyOf(const std::string& certificate) {
  constexpr const char* kEnding = ".crt";
  if (!certificate.ends_with(kEnding)) return "";
  std::string stem = certificate.substr(0, certificate.size() - 4);
  return Beside(certificate, stem.substr(stem.rfind('/') + 1) + ".key");
}

}  // namespace

std::string Trim(const std::string& text) {
  size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

ClientSettings::ClientSettings(const char* path) {
  constexpr size_t kMaxFileBytes = size_t{1} << 20;
  std::istringstream file(ReadFile(path, kMaxFileBytes));
  std::string line;
  while (std::getline(file, line)) {
    line = Trim(line);
    size_t equals = line.find('=');
    if (line.empty() || line[0] == '#' || equals == std::string::npos) continue;
    file_[Trim(line.substr(0, equals))] = Trim(line.substr(equals + 1));
  }
}

std::string ClientSettings::Value(const char* key) const {
  const char* from_environment = base::Environment(key);
  if (from_environment != nullptr) return Trim(from_environment);
  auto found = file_.find(key);
  return found == file_.end() ? "" : found->second;
}

IdentityFiles FindIdentityFiles(const ClientSettings& settings, const std::string& system_folder) {
  IdentityFiles files{Absolute(settings.Value("LONGWIRE_CERT")),
                      Absolute(settings.Value("LONGWIRE_KEY")),
                      Absolute(settings.Value("LONGWIRE_CA"))};
  if (settings.Value("LONGWIRE_CERT") == "none") return {};
  const char* home = base::Environment("HOME");
  bool has_home = home != nullptr && home[0] == '/';
  std::string own_folder = has_home ? std::string(home) + "/.config/longwire" : "";
  if (files.certificate.empty() && files.key.empty()) {
    if (!has_home || !FindPair(own_folder, &files)) FindPair(system_folder, &files);
  }
  if (files.certificate.empty()) return files;
  if (files.key.empty()) files.key = KeyOf(files.certificate);
  if (files.authority.empty()) files.authority = Beside(files.certificate, "ca.crt");
  if (files.authority.empty() && has_home) files.authority = Beside(own_folder + "/", "ca.crt");
  if (files.authority.empty()) files.authority = Beside(system_folder + "/", "ca.crt");
  return files;
}

}  // namespace longwire::wire
