// longwire run: sets the environment in which a program finds our libcuda, and becomes the program.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/connect.h"
#include "link/transport/address.h"
#include "server/daemon/paths.h"

namespace longwire::cli {
namespace {

constexpr const char* kHelp =
    R"(longwire run: runs a program with the CUDA devices of a server.

  longwire run [OPTIONS] [--trace WHAT] [--] PROGRAM [ARGUMENTS...]

  --trace calls         one line on standard error for each CUDA call, with its result
  --trace allocations   one for each piece of device memory that is allocated or freed, with its
                        size and what the program has in all
  --trace summary       counts of calls and waits when it ends

The program is not changed. It finds Longwire's libcuda.so.1 and libnvidia-ml.so.1 by
LD_LIBRARY_PATH; its exit status is the program's own, 126 if it cannot be executed and 127 if there
is no such program.
)";

constexpr const char* kTraceHelp =
    R"(longwire trace: as longwire run, and tells on standard error what the program does.

  longwire trace [OPTIONS] --calls | --allocations | --summary [--] PROGRAM [ARGUMENTS...]

  --calls         a line for each CUDA call, with its result
  --allocations   a line for each piece of device memory that is allocated or freed, with its size
                  and what the program has in all
  --summary       counts of calls and waits when it ends
)";

constexpr std::string_view kTraced[] = {"--calls", "--allocations", "--summary"};

// Exit statuses as the shell has them.
constexpr int kCannotExecute = 126;
constexpr int kNotFound = 127;

// lib/longwire beside bin, with ".." resolved; empty when our library is not there.
std::string LibraryFolder() {
  char resolved[PATH_MAX];
  if (realpath((daemon::ProgramFolder() + "/../lib/longwire").c_str(), resolved) == nullptr)
    return {};
  std::string folder = resolved;
  return access((folder + "/libcuda.so.1").c_str(), R_OK) == 0 ? folder : std::string();
}

void Prepend(const char* name, const std::string& value) {
  const char* before = getenv(name);
  std::string all = value;
  if (before != nullptr && before[0] != '\0') all += std::string(":") + before;
  setenv(name, all.c_str(), 1);
}

struct Request {
  const char* command = "";  // run or trace
  std::string server;
  std::string trace;
  size_t program = 0;  // index of the program among the arguments
};

// True when the program can be run; else *status is the exit status.
bool Parse(const Arguments& arguments, Request* request, int* status) {
  size_t i = 0;
  for (; i < arguments.size() && arguments[i].starts_with("-"); ++i) {
    const std::string& name = arguments[i];
    if (name == "--") {
      ++i;
      break;
    }
    bool traces = std::strcmp(request->command, "trace") == 0;
    if (name == "--help" || name == "-h") {
      std::printf("%s%s", traces ? kTraceHelp : kHelp, kConnectionHelp);
      *status = 0;
      return false;
    }
    if (TakeConnectionOption(arguments, &i)) continue;
    if (!traces && name == "--trace" && i + 1 < arguments.size()) {
      request->trace = arguments[++i];
    } else if (traces && std::ranges::count(kTraced, name) != 0) {
      request->trace += (request->trace.empty() ? "" : ",") + name.substr(2);
    } else {
      std::fprintf(stderr, "longwire %s: what is '%s'? See longwire %s --help\n", request->command,
                   name.c_str(), request->command);
      *status = kUsageStatus;
      return false;
    }
  }
  request->program = i;
  request->server = wire::ClientSettings().Value("LONGWIRE_SERVER");
  *status = kUsageStatus;
  if (std::strcmp(request->command, "trace") == 0 && request->trace.empty()) {
    std::fputs("longwire trace: of what? See longwire trace --help\n", stderr);
  } else if (i >= arguments.size()) {
    std::fputs("longwire: no program given; see longwire run --help\n", stderr);
  } else if (request->server.empty()) {
    std::fputs("longwire: no server; give --server HOST:PORT or set LONGWIRE_SERVER\n", stderr);
  } else {
    return true;
  }
  return false;
}

bool CheckServer(std::string* server) {
  if (server->starts_with("unix:")) {
    // The program may change its directory before it connects.
    std::string path = server->substr(std::strlen("unix:"));
    char resolved[PATH_MAX];
    if (realpath(path.c_str(), resolved) != nullptr) *server = std::string("unix:") + resolved;
    return true;
  }
  std::string problem;
  if (transport::ParseAddresses(*server, &problem)) return true;
  std::fprintf(stderr, "longwire run: %s\n", problem.c_str());
  return false;
}

// The program may change its directory, and HOME, before it connects.
void SetIdentity() {
  wire::IdentityFiles files = wire::FindIdentityFiles(wire::ClientSettings());
  if (!files.certificate.empty()) setenv("LONGWIRE_CERT", files.certificate.c_str(), 1);
  if (!files.key.empty()) setenv("LONGWIRE_KEY", files.key.c_str(), 1);
  if (!files.authority.empty()) setenv("LONGWIRE_CA", files.authority.c_str(), 1);
}

int RunProgram(const Arguments& arguments, Request request) {
  int status = 0;
  if (!Parse(arguments, &request, &status)) return status;
  if (!CheckServer(&request.server)) return kUsageStatus;
  std::string library = LibraryFolder();
  if (library.empty()) {
    std::fprintf(stderr,
                 "longwire run: there is no libcuda.so.1 in %s/../lib/longwire; the installation "
                 "is not complete\n",
                 daemon::ProgramFolder().c_str());
    return 1;
  }
  setenv("LONGWIRE_SERVER", request.server.c_str(), 1);
  SetIdentity();
  if (!request.trace.empty()) setenv("LONGWIRE_TRACE", request.trace.c_str(), 1);
  Prepend("LD_LIBRARY_PATH", library);
  // Triton and Numba look for the driver by ways of their own.
  setenv("TRITON_LIBCUDA_PATH", library.c_str(), 1);
  setenv("NUMBA_CUDA_DRIVER", (library + "/libcuda.so.1").c_str(), 1);

  // NCCL takes the devices for too far apart, as their PCI bus is not this host's: it would go
  // through memory of this host, which kernels cannot poll (docs/nccl.md).
  setenv("NCCL_P2P_LEVEL", "SYS", 0);

  std::vector<char*> command;
  for (size_t i = request.program; i < arguments.size(); ++i) {
    command.push_back(const_cast<char*>(arguments[i].c_str()));
  }
  command.push_back(nullptr);
  execvp(command[0], command.data());
  int error = errno;
  std::fprintf(stderr, "longwire run: %s: %s\n", command[0], std::strerror(error));
  return error == ENOENT ? kNotFound : kCannotExecute;
}

}  // namespace

int Run(const Arguments& arguments) { return RunProgram(arguments, {.command = "run"}); }

int Trace(const Arguments& arguments) { return RunProgram(arguments, {.command = "trace"}); }

}  // namespace longwire::cli
