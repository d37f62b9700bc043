#include "cli/config_files.h"

#include <grp.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "link/transport/tls_files.h"

namespace longwire::cli {
namespace {

constexpr const char* kServiceUser = "longwire";  // deploy/systemd/longwired.service

// In a process of its own, which becomes that user: the kernel alone knows what it may.
bool CanRead(const passwd& user, const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    const bool became = initgroups(user.pw_name, user.pw_gid) == 0 && setgid(user.pw_gid) == 0 &&
                        setuid(user.pw_uid) == 0;
    _exit(became && access(path.c_str(), R_OK) == 0 ? 0 : 1);
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::vector<std::string> ProblemsOfFiles(const config::Config& config) {
  if (!config.has_tls()) return {};
  const transport::TlsFiles files{config.tls().certificate(), config.tls().key(),
                                  config.tls().authority()};
  std::string sentence;
  if (!transport::LoadTls(files, transport::TlsRole::kServer, &sentence))
    return {"tls: " + sentence};
  const passwd* user = geteuid() == 0 ? getpwnam(kServiceUser) : nullptr;
  if (user == nullptr) return {};
  std::vector<std::string> problems;
  for (const std::string& path : {files.certificate, files.key, files.authority}) {
    if (CanRead(*user, path)) continue;
    problems.push_back("tls: the user " + std::string(kServiceUser) +
                       ", as which longwired.service runs, cannot read " + path + "; run: chown " +
                       kServiceUser + " " + path + " and let it into the folder");
  }
  return problems;
}

}  // namespace longwire::cli
