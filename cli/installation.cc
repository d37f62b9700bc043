#include "cli/installation.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/environment.h"
#include "server/daemon/settings/paths.h"
#include "wire/versions.h"

namespace longwire::cli {

void CheckInstallation(Report* report) {
  report->Title("this host (longwire " LONGWIRE_VERSION ", " +
                wire::VersionsText(wire::SpokenVersions()) + ")");
  struct {
    const char* path;
    const char* what;
    int use;
  } const parts[] = {{"/longwire-link", "longwire-link", R_OK | X_OK},
                     {"/../lib/longwire/libcuda.so.1", "libcuda.so.1", R_OK}};
  for (const auto& part : parts) {
    std::string path = daemon::ProgramFolder() + part.path;
    if (access(path.c_str(), part.use) == 0) {
      report->Good(std::string(part.what) + " is where programs look for it");
    } else if (errno == ENOENT) {
      report->Bad("there is no " + path, "install longwire-client on this host");
    } else {
      report->Bad(path + " cannot be used: " + std::strerror(errno),
                  "install longwire-client on this host again");
    }
  }
  const char* library_path = base::Environment("LD_PRELOAD");
  if (library_path != nullptr && std::strstr(library_path, "libcuda") != nullptr) {
    report->Note(std::string("LD_PRELOAD is set: ") + library_path);
  }
}

}  // namespace longwire::cli
