// longwire run: sets the environment in which a program finds our libcuda, and becomes the program.
#include "cli/run.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>

#include "cli/connect.h"
#include "cli/probe/prepare.h"
#include "cli/program_environment.h"
#include "cli/program_notice.h"
#include "cli/restart/restart.h"
#include "link/certificates/address.h"
#include "server/daemon/settings/paths.h"
#include "wire/duration.h"

namespace longwire::cli {
namespace {

constexpr const char* kRunFooter =
    R"(The program is not changed. It finds Longwire's libcuda.so.1 and libnvidia-ml.so.1 by
LD_LIBRARY_PATH; where that will not lead it there (an RPATH with another libcuda.so.1, setuid,
statically linked), a line on standard error says so before it starts.

The exit status is the program's own; 126 if it cannot be executed, 127 if there is no such
program, 1 if Longwire's library is not there, 2 if this command was called wrongly.)";

constexpr std::string_view kTraced[] = {"calls", "allocations", "summary"};

// Exit statuses as the shell has them.
constexpr int kCannotExecute = 126;
constexpr int kNotFound = 127;

// The first word of the list that means nothing to the client's library.
std::optional<std::string> UnknownTrace(const std::string& list) {
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (std::ranges::count(kTraced, word) == 0) return word;
  }
  return list.empty() ? std::optional<std::string>(list) : std::nullopt;
}

int Refuse(const std::string& command, const std::string& what) {
  std::fprintf(stderr, "longwire %s: %s longwire %s --help\n", command.c_str(), what.c_str(),
               command.c_str());
  return kUsageStatus;
}

// The server's address, or the exit status when there is none that could be.
std::optional<int> FindAddress(const std::string& command, std::string* server) {
  *server = wire::ClientSettings().Value("LONGWIRE_SERVER");
  if (server->empty()) {
    return Refuse(command, "no server; give --server HOST:PORT or set LONGWIRE_SERVER; see");
  }
  std::string problem;
  if (server->starts_with("unix:")) return std::nullopt;
  if (transport::ParseAddresses(*server, &problem)) return std::nullopt;
  std::fprintf(stderr, "longwire %s: %s\n", command.c_str(), problem.c_str());
  return kUsageStatus;
}

int Execute(const std::string& name, const Arguments& words) {
  std::vector<char*> command;
  for (const std::string& word : words) command.push_back(const_cast<char*>(word.c_str()));
  command.push_back(nullptr);
  execvp(command[0], command.data());
  int error = errno;
  std::fprintf(stderr, "longwire %s: %s: %s\n", name.c_str(), command[0], std::strerror(error));
  return error == ENOENT ? kNotFound : kCannotExecute;
}

void SetWait(const std::string& text) {
  if (!wire::ParseWait(text)) {
    RefuseValue("--wait expects " + std::string(wire::kWaitExpected) + ", found '" + text + "'");
  }
  setenv("LONGWIRE_WAIT", text.c_str(), 1);
}

// Options that are environment variables of the program.
void AddRequirements(CLI::App& command) {
  auto keep = [](const char* variable) {
    return [variable](const std::string& value) { setenv(variable, value.c_str(), 1); };
  };
  command
      .add_option_function<std::string>("--devices", keep("LONGWIRE_DEVICES"),
                                        "how many devices the program shall see")
      ->type_name("N");
  command
      .add_option_function<std::string>(
          "--memory", keep("LONGWIRE_MEMORY"),
          "memory that it needs on each device, and that is kept for it: "
          "512MiB, 40GiB")
      ->type_name("SIZE");
  command.add_flag_callback(
      "--across", [] { setenv("LONGWIRE_ACROSS", "1", 1); },
      "give the program devices of every server in the list, not of the first that answers");
  command.add_flag_callback(
      "--same-host", [] { setenv("LONGWIRE_SAME_HOST", "1", 1); },
      "in a pool, all devices of one host, also where only several have enough; it waits, or is "
      "refused with the reason");
  auto set_limit = [](const std::string& text) {
    if (!wire::ParseDuration(text, wire::kLongestWaitSeconds)) {
      RefuseValue(
          "--time-limit expects a duration such as 90s, 30m, 2h or 1d, at most 30d, found '" +
          text + "'");
    }
    setenv("LONGWIRE_TIME_LIMIT", text.c_str(), 1);
  };
  command
      .add_option_function<std::string>("--time-limit", set_limit,
                                        "the server ends the session after so long: 90s, 30m, "
                                        "2h, 1d; in a pool it may then be placed sooner")
      ->type_name("DURATION");
  auto set_labels = [](const std::vector<std::string>& labels) {
    std::string list;
    for (const std::string& label : labels) list += (list.empty() ? "" : ",") + label;
    setenv("LONGWIRE_LABELS", list.c_str(), 1);
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--label", set_labels,
          "of a pool, only hosts with this label, such as gpu=h200; several: all of them")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->take_all();
}

}  // namespace

int RunProgram(const std::string& command, const Arguments& words, const std::string& trace,
               unsigned restarts) {
  if (words.empty()) return Refuse(command, "no program given; see");
  std::string server;
  if (auto status = FindAddress(command, &server)) return *status;
  std::string library = LibraryFolder();
  if (library.empty()) {
    std::fprintf(stderr,
                 "longwire %s: there is no libcuda.so.1 in %s/../lib/longwire; the installation "
                 "is not complete: install longwire-client\n",
                 command.c_str(), daemon::ProgramFolder().c_str());
    return 1;
  }
  for (const auto& [variable, value] : ProgramVariables(server, library)) {
    setenv(variable.c_str(), value.c_str(), 1);
  }
  if (!trace.empty()) setenv("LONGWIRE_TRACE", trace.c_str(), 1);
  std::string notice = NoticeAbout(words[0], library);
  if (!notice.empty()) {
    std::fprintf(stderr, "longwire %s: %s%s\n", command.c_str(), kNotice, notice.c_str());
  }
  if (restarts == 0) return Execute(command, words);
  return RunWithRestarts(command, words[0], restarts, [&] { return Execute(command, words); });
}

void AddProgram(CommandLine& line, CLI::App& command, Arguments* words) {
  AddRequirements(command);
  command
      .add_option_function<std::string>("--wait", SetWait,
                                        "where the server has no room now (its tenant has all its "
                                        "sessions, no device has memory, "
                                        "it is drained), wait for so long: 90s, 30m, 2h, 1d, "
                                        "forever, or 0: not at all; by default as the server "
                                        "says for the tenant")
      ->type_name("DURATION");
  AddConnection(command, Reach::kNetworkAndLocal);
  command.add_option("PROGRAM...", *words, "the program and its arguments, also behind --")
      ->take_all();
  line.TakesProgram(command, ProgramBegins::kAtFirstWord, words);
}

void AddRun(CommandLine& line) {
  auto words = std::make_shared<Arguments>();
  auto trace = std::make_shared<std::string>();
  auto restarts = std::make_shared<unsigned>(0);
  auto probe = std::make_shared<std::string>();
  CLI::App& command =
      line.Add(nullptr, "run", "run a program with the CUDA devices of a server", [=] {
        const std::string wrong = probe->empty() ? "" : PrepareProbes(*probe, "", "");
        if (wrong.empty()) return RunProgram("run", *words, *trace, *restarts);
        std::fprintf(stderr, "longwire run: --probe: %s\n", wrong.c_str());
        return kUsageStatus;
      });
  auto take = [trace](const std::string& list) {
    if (auto unknown = UnknownTrace(list)) {
      RefuseValue("--trace names '" + *unknown +
                  "', which is none of calls, allocations, summary; see longwire run --help");
    }
    *trace = list;
  };
  command
      .add_option_function<std::string>(
          "--trace", take,
          "tell on standard error what the program does; several with commas between: calls (a "
          "line for each CUDA call: its result, when and how long), allocations (a line for each "
          "piece of device "
          "memory that is allocated or freed, with its size and what the program has in all), "
          "summary (counts of calls and waits when it ends)")
      ->type_name("WHAT");
  command
      .add_option("--restart", *restarts,
                  "start the program again, up to N times, if it ends with another status than 0 "
                  "after a fault of its device or the end of its session by the server, with a "
                  "sentence each time")
      ->type_name("N")
      ->check(CLI::Range(0u, kRestartLimit));
  command.add_option("--probe", *probe, "put probes into kernels, as longwire probe FILE does")
      ->type_name("FILE");
  AddProgram(line, command, words.get());
  command.footer(kRunFooter);
}

}  // namespace longwire::cli
