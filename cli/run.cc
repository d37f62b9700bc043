// longwire run: sets the environment in which a program finds our libcuda, and becomes the program.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <string_view>

#include "cli/connect.h"
#include "cli/program_environment.h"
#include "cli/program_notice.h"
#include "link/certificates/address.h"
#include "server/daemon/settings/paths.h"

namespace longwire::cli {
namespace {

constexpr const char* kHelp =
    R"(longwire run: runs a program with the CUDA devices of a server.

  longwire run [OPTIONS] [--trace WHAT] [--] PROGRAM [ARGUMENTS...]

  --trace calls         one line on standard error for each CUDA call, with its result
  --trace allocations   one for each piece of device memory that is allocated or freed, with its
                        size and what the program has in all
  --trace summary       counts of calls and waits when it ends; several with commas between

The program is not changed. It finds Longwire's libcuda.so.1 and libnvidia-ml.so.1 by
LD_LIBRARY_PATH; where that will not lead it there (an RPATH with another libcuda.so.1, setuid,
statically linked), a line on standard error says so before it starts. The exit status is the
program's own; 126 if it cannot be executed, 127 if there is no such program, 1 if Longwire's
library is not there, 2 if this command was called wrongly.
)";

constexpr const char* kTraceHelp =
    R"(longwire trace: as longwire run, and tells on standard error what the program does.

  longwire trace [OPTIONS] --calls | --allocations | --summary [--] PROGRAM [ARGUMENTS...]

  --calls         a line for each CUDA call, with its result
  --allocations   a line for each piece of device memory that is allocated or freed, with its size
                  and what the program has in all
  --summary       counts of calls and waits when it ends

The exit status is as that of longwire run.
)";

constexpr std::string_view kTraced[] = {"calls", "allocations", "summary"};

// Exit statuses as the shell has them.
constexpr int kCannotExecute = 126;
constexpr int kNotFound = 127;

struct Request {
  const char* command = "";  // run or trace
  std::string server;
  std::string trace;
  size_t program = 0;  // index of the program among the arguments
};

int Refuse(const Request& request, const std::string& what) {
  std::fprintf(stderr, "longwire %s: %s longwire %s --help\n", request.command, what.c_str(),
               request.command);
  return kUsageStatus;
}

// The first word of the list that means nothing to the client's library.
std::optional<std::string> UnknownTrace(const std::string& list) {
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (std::ranges::count(kTraced, word) == 0) return word;
  }
  return list.empty() ? std::optional<std::string>(list) : std::nullopt;
}

// One option of the command's own or a connection's; the exit status when the command ends here.
std::optional<int> TakeArgument(const Arguments& arguments, size_t* i, Request* request) {
  const std::string& name = arguments[*i];
  bool traces = request->command == std::string_view("trace");
  Taken taken = TakeConnectionOption(request->command, arguments, i);
  if (taken == Taken::kNo && !traces) {
    taken = TakeOption(request->command, arguments, "--trace", i, &request->trace);
    auto unknown = taken == Taken::kYes ? UnknownTrace(request->trace) : std::nullopt;
    if (unknown) {
      return Refuse(*request, "--trace names '" + *unknown +
                                  "', which is none of calls, allocations, summary; see");
    }
  }
  if (taken == Taken::kBad) return kUsageStatus;
  if (taken == Taken::kYes) return std::nullopt;
  if (IsHelp(name)) {
    PrintHelp(traces ? kTraceHelp : kHelp, Reach::kNetworkAndLocal);
    return 0;
  }
  if (!traces || !name.starts_with("--") || std::ranges::count(kTraced, name.substr(2)) == 0) {
    return Refuse(*request, "unknown option '" + name + "'. See");
  }
  request->trace += (request->trace.empty() ? "" : ",") + name.substr(2);
  return std::nullopt;
}

// The exit status when the program cannot be run.
std::optional<int> Parse(const Arguments& arguments, Request* request) {
  size_t i = 0;
  for (; i < arguments.size() && arguments[i].starts_with("-"); ++i) {
    if (arguments[i] == "--") {
      ++i;
      break;
    }
    if (auto status = TakeArgument(arguments, &i, request)) return status;
  }
  request->program = i;
  request->server = wire::ClientSettings().Value("LONGWIRE_SERVER");
  if (request->command == std::string_view("trace") && request->trace.empty()) {
    return Refuse(*request, "of what? See");
  }
  if (i >= arguments.size()) return Refuse(*request, "no program given; see");
  if (!request->server.empty()) return std::nullopt;
  return Refuse(*request, "no server; give --server HOST:PORT or set LONGWIRE_SERVER; see");
}

bool CheckServer(const Request& request) {
  std::string problem;
  if (request.server.starts_with("unix:")) return true;
  if (transport::ParseAddresses(request.server, &problem)) return true;
  std::fprintf(stderr, "longwire %s: %s\n", request.command, problem.c_str());
  return false;
}

int RunProgram(const char* name, const Arguments& arguments) {
  Request request;
  request.command = name;
  if (auto status = Parse(arguments, &request)) return *status;
  if (!CheckServer(request)) return kUsageStatus;
  std::string library = LibraryFolder();
  if (library.empty()) {
    std::fprintf(stderr,
                 "longwire %s: there is no libcuda.so.1 in %s/../lib/longwire; the installation "
                 "is not complete\n",
                 request.command, daemon::ProgramFolder().c_str());
    return 1;
  }
  for (const auto& [variable, value] : ProgramVariables(request.server, library)) {
    setenv(variable.c_str(), value.c_str(), 1);
  }
  if (!request.trace.empty()) setenv("LONGWIRE_TRACE", request.trace.c_str(), 1);
  std::string notice = NoticeAbout(arguments[request.program], library);
  if (!notice.empty()) {
    std::fprintf(stderr, "longwire %s: %s%s\n", request.command, kNotice, notice.c_str());
  }

  std::vector<char*> command;
  for (size_t i = request.program; i < arguments.size(); ++i) {
    command.push_back(const_cast<char*>(arguments[i].c_str()));
  }
  command.push_back(nullptr);
  execvp(command[0], command.data());
  int error = errno;
  std::fprintf(stderr, "longwire %s: %s: %s\n", request.command, command[0], std::strerror(error));
  return error == ENOENT ? kNotFound : kCannotExecute;
}

}  // namespace

int Run(const Arguments& arguments) { return RunProgram("run", arguments); }

int Trace(const Arguments& arguments) { return RunProgram("trace", arguments); }

}  // namespace longwire::cli
