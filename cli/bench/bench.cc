// longwire bench: the same programs on this host's own GPU, if it has one, and on the server's.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include "base/reason.h"
#include "cli/bench/facts.h"
#include "cli/bench/page.h"
#include "cli/connect.h"
#include "cli/text.h"
#include "server/daemon/settings/paths.h"
#include "wire/descriptors.h"
#include "wire/number.h"

namespace longwire::cli {
namespace {

constexpr const char* kBenchFooter =
    "It runs the programs of lib/longwire/bench natively and through the server, in turn; the "
    "median "
    "of each figure is shown, and the worst. Where this host has no GPU the native column stays "
    "empty.\n\n"
    "The exit status is 0 if all ran, 1 if one failed, 2 if this command was called wrongly.";

struct Figure {
  std::string name, unit;
  std::vector<double> native, remote;
};

struct Program {
  const char* group;
  std::vector<std::string> command;  // the first word is a file of lib/longwire/bench
};
const std::vector<Program>& Programs() {
  static const std::vector<Program> programs = {{"start", {"driver_figures", "start"}},
                                                {"calls", {"driver_figures", "calls"}},
                                                {"copies", {"driver_figures", "copies"}},
                                                {"gemm", {"gemm_figures"}}};
  return programs;
}

constexpr int kMaxRounds = 1000;
constexpr const char* kNoGpu = "This host has no GPU of its own to compare with.";

struct Request {
  std::string server;
  int rounds = 5;
  bool json = false;
  std::string html;  // a file
  std::vector<std::string> groups;
};

void CheckGroup(const std::string& word) {
  if (std::ranges::any_of(Programs(), [&](auto& program) { return program.group == word; })) return;
  std::string known;
  for (const Program& program : Programs())
    known += (known.empty() ? "" : ", ") + std::string(program.group);
  RefuseValue("unknown group '" + word + "', which is none of " + known +
              "; see longwire bench --help");
}

// Runs the words and returns what they print; nullopt when they fail. `quiet`: without their
// errors.
std::optional<std::string> Output(const std::vector<std::string>& words, bool quiet) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (quiet && null >= 0) dup2(null, STDERR_FILENO);
    std::vector<char*> command;
    for (const std::string& word : words) command.push_back(const_cast<char*>(word.c_str()));
    command.push_back(nullptr);
    execv(command[0], command.data());
    _exit(127);
  }
  close(ends[1]);
  std::string output;
  char buffer[4096];
  for (ssize_t got = 0; child > 0 && (got = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    output.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = -1;
  bool ended = child > 0 && waitpid(child, &status, 0) == child;
  if (!ended || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return output;
}

// Of "name value unit" lines.
void Gather(const std::string& output, bool remote, std::vector<Figure>* figures) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, unit;
    double value = 0;
    if (!(words >> name >> value >> unit)) continue;
    auto figure = std::ranges::find(*figures, name, &Figure::name);
    if (figure == figures->end()) {
      figures->push_back({name, unit, {}, {}});
      figure = std::prev(figures->end());
    }
    (remote ? figure->remote : figure->native).push_back(value);
  }
}

std::optional<double> Median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Of bytes per second the least, of times the most.
std::optional<double> Worst(const Figure& figure, const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  bool rate = figure.unit.ends_with("/s");
  return rate ? *std::ranges::min_element(values) : *std::ranges::max_element(values);
}

std::string NumberText(std::optional<double> value, const char* none) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", value.value_or(0));
  return value ? text : none;
}

void PrintTable(const std::vector<Figure>& figures) {
  std::printf("%-24s %11s %11s %11s %11s  %-6s %s\n", "figure", "native", "worst", "longwire",
              "worst", "unit", "ratio");
  for (const Figure& figure : figures) {
    auto native = Median(figure.native), remote = Median(figure.remote);
    std::optional<double> ratio;
    if (native && remote && *native > 0) ratio = *remote / *native;
    std::printf(
        "%-24s %11s %11s %11s %11s  %-6s %s\n", figure.name.c_str(),
        NumberText(native, "-").c_str(), NumberText(Worst(figure, figure.native), "-").c_str(),
        NumberText(remote, "-").c_str(), NumberText(Worst(figure, figure.remote), "-").c_str(),
        figure.unit.c_str(), NumberText(ratio, "-").c_str());
  }
}

void PrintJson(const BenchFacts& facts, const std::vector<Figure>& figures) {
  std::printf("{%s\"figures\":[", JsonOf(facts).c_str());
  const char* comma = "";
  for (const Figure& figure : figures) {
    std::printf(
        "%s{\"name\":%s,\"unit\":%s,\"native\":%s,\"native_worst\":%s,\"remote\":%s,"
        "\"remote_worst\":%s}",
        comma, JsonString(figure.name).c_str(), JsonString(figure.unit).c_str(),
        NumberText(Median(figure.native), "null").c_str(),
        NumberText(Worst(figure, figure.native), "null").c_str(),
        NumberText(Median(figure.remote), "null").c_str(),
        NumberText(Worst(figure, figure.remote), "null").c_str());
    comma = ",";
  }
  std::printf("]}\n");
}

std::string PageOf(const BenchFacts& facts, const std::vector<Figure>& figures, bool native) {
  BenchGroup group;
  group.title = "remote against local";
  std::istringstream lines(TextOf(facts));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) group.facts.push_back(line);
  }
  if (!native) group.facts.emplace_back(kNoGpu);
  for (const Figure& figure : figures) {
    group.rows.push_back({figure.name, figure.unit, Median(figure.native), Median(figure.remote),
                          Worst(figure, figure.native), Worst(figure, figure.remote)});
  }
  return BenchPage("longwire bench, " + facts.server, {group});
}

// Before anything is measured.
bool CanWrite(const std::string& path) {
  if (path.empty() || wire::OpenFile(path.c_str(), O_WRONLY | O_CREAT, 0666).valid()) return true;
  std::fprintf(stderr, "longwire bench: cannot write %s: %s\n", path.c_str(),
               base::Reason(errno).c_str());
  return false;
}

bool WritePage(const std::string& path, const std::string& page) {
  std::ofstream file(path);
  file << page;
  if (file.flush()) return true;
  std::fprintf(stderr, "longwire bench: cannot write %s: %s\n", path.c_str(),
               base::Reason(errno).c_str());
  return false;
}

// The figures of one side after the other, over all rounds.
class Bencher {
 public:
  explicit Bencher(const Request& request) : request_(request), bin_(daemon::ProgramFolder()) {}

  // False with a sentence on standard error.
  bool Run() {
    for (int round = 0; round < request_.rounds; ++round) {
      for (const Program& program : Programs()) {
        bool wanted = request_.groups.empty() ||
                      std::ranges::count(request_.groups, std::string(program.group)) != 0;
        if (wanted && !RunBothSides(program)) return false;
      }
    }
    return true;
  }

  const std::vector<Figure>& figures() const { return figures_; }
  bool native_works() const { return native_ != Native::kNone; }

 private:
  enum class Native { kUnknown, kWorks, kNone };

  bool RunBothSides(const Program& program) {
    std::vector<std::string> command = program.command;
    command[0] = bin_ + "/../lib/longwire/bench/" + command[0];
    if (access(command[0].c_str(), X_OK) != 0) {
      std::fprintf(stderr, "longwire bench: there is no %s; the installation is not complete\n",
                   command[0].c_str());
      return false;
    }
    if (native_ != Native::kNone) {
      // Errors of a host without a GPU say nothing; those of a GPU that has just worked do.
      auto native = Output(command, native_ == Native::kUnknown);
      if (native_ == Native::kUnknown) native_ = native ? Native::kWorks : Native::kNone;
      if (native) Gather(*native, false, &figures_);
    }
    command.insert(command.begin(), {bin_ + "/longwire", "run", "--server", request_.server, "--"});
    auto remote = Output(command, false);
    if (remote) Gather(*remote, true, &figures_);
    if (remote) return true;
    std::fprintf(stderr, "longwire bench: %s failed through %s; longwire doctor may say why\n",
                 program.command[0].c_str(), request_.server.c_str());
    return false;
  }

  const Request& request_;
  const std::string bin_;
  Native native_ = Native::kUnknown;
  std::vector<Figure> figures_;
};

int Bench(const CLI::App& command, Request request) {
  ServerOptions options;
  for (const std::string& group : request.groups) CheckGroup(group);
  if (!FindServer(command, &options)) return kUsageStatus;
  request.server = options.server;
  const BenchFacts facts = GatherBenchFacts(options);
  // The native side may find our library by the user's own settings, but must not find a server:
  // empty wins over the file client.conf.
  setenv("LONGWIRE_SERVER", "", 1);
  if (!CanWrite(request.html)) return 1;
  Bencher bencher(request);
  if (!bencher.Run()) return 1;
  if (!request.html.empty() &&
      !WritePage(request.html, PageOf(facts, bencher.figures(), bencher.native_works()))) {
    return 1;
  }
  if (!request.json) std::fputs(TextOf(facts).c_str(), stdout);
  request.json ? PrintJson(facts, bencher.figures()) : PrintTable(bencher.figures());
  if (!bencher.native_works() && !request.json) {
    std::printf("\n%s\n", kNoGpu);
  }
  return 0;
}

}  // namespace

void AddBench(CommandLine& line) {
  auto request = std::make_shared<Request>();
  auto self = std::make_shared<CLI::App*>();
  CLI::App& command = line.Add(nullptr, "bench", "what a server costs beside a GPU of this host",
                               [=] { return Bench(**self, *request); });
  *self = &command;
  command.add_option("GROUP...", request->groups, "start, calls, copies or gemm (default: all)")
      ->take_all();
  AddNumber(command, "--rounds", 1, kMaxRounds, &request->rounds,
            "times that each program runs on either side (default 5)");
  command.add_flag("--json", request->json, "the figures for programs");
  command
      .add_option("--html", request->html,
                  "write a page with pictures of the figures, too; it needs no other file")
      ->type_name("FILE");
  AddConnection(command, Reach::kNetworkAndLocal);
  command.footer(kBenchFooter);
}

}  // namespace longwire::cli
