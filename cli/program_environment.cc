#include "cli/program_environment.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "base/environment.h"
#include "base/reason.h"
#include "server/daemon/settings/paths.h"
#include "wire/client_settings.h"
#include "wire/descriptors.h"

namespace longwire::cli {
namespace {

constexpr std::string_view kUnix = "unix:";

std::string Prepended(const char* name, const std::string& value) {
  const char* before = base::Environment(name);
  return before == nullptr || before[0] == '\0' ? value : value + ":" + before;
}

}  // namespace

std::string LibraryFolder() {
  char resolved[PATH_MAX];
  if (realpath((daemon::ProgramFolder() + "/../lib/longwire").c_str(), resolved) == nullptr)
    return {};
  std::string folder = resolved;
  return access((folder + "/libcuda.so.1").c_str(), R_OK) == 0 ? folder : std::string();
}

std::string TraceInto(const std::string& path) {
  wire::Descriptor file = wire::OpenFile(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY);
  if (!file.valid()) {
    return path + ": " + base::Reason(errno) + "; name a file in a folder where you may write";
  }
  // Its name counts from every directory.
  char resolved[PATH_MAX];
  const bool found = realpath(path.c_str(), resolved) != nullptr;
  setenv("LONGWIRE_TRACE_FILE", found ? resolved : path.c_str(), 1);
  // NVTX's header asks this library for somebody who wants the program's ranges.
  const std::string library = LibraryFolder() + "/libcuda.so.1";
  setenv("NVTX_INJECTION64_PATH", library.c_str(), 0);
  return {};
}

std::string FromEverywhere(const std::string& server) {
  if (!server.starts_with(kUnix)) return server;
  char resolved[PATH_MAX];
  bool found = realpath(server.c_str() + kUnix.size(), resolved) != nullptr;
  return found ? std::string(kUnix) + resolved : server;
}

std::vector<std::pair<std::string, std::string>> ProgramVariables(const std::string& server,
                                                                  const std::string& library) {
  std::vector<std::pair<std::string, std::string>> variables = {
      {"LONGWIRE_SERVER", FromEverywhere(server)}};
  // The program may change its directory, and HOME, before it connects.
  wire::IdentityFiles files = wire::FindIdentityFiles(wire::ClientSettings());
  for (const auto& [name, file] : {std::pair{"LONGWIRE_CERT", &files.certificate},
                                   {"LONGWIRE_KEY", &files.key},
                                   {"LONGWIRE_CA", &files.authority}}) {
    if (!file->empty()) variables.emplace_back(name, *file);
  }
  variables.emplace_back("LD_LIBRARY_PATH", Prepended("LD_LIBRARY_PATH", library));
  // Triton and Numba look for the driver by ways of their own.
  variables.emplace_back("TRITON_LIBCUDA_PATH", library);
  variables.emplace_back("NUMBA_CUDA_DRIVER", library + "/libcuda.so.1");
  // NCCL takes the devices for too far apart, as their PCI bus is not this host's: it would go
  // through memory of this host, which kernels cannot poll (docs/nccl.md).
  if (base::Environment("NCCL_P2P_LEVEL") == nullptr)
    variables.emplace_back("NCCL_P2P_LEVEL", "SYS");
  return variables;
}

}  // namespace longwire::cli
