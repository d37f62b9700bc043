// longwire config: checks and shows longwired's configuration without a server.
#include "server/config/config.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <sstream>

#include "cli/commands.h"
#include "cli/text.h"
#include "server/daemon/settings/paths.h"

namespace longwire::cli {
namespace {

constexpr const char* kFooter =
    "Without FILE it is /etc/longwire/longwired.yaml, if that is there. Options on longwired's "
    "command line win over the file and are not known here. The exit status is 0 if nothing is "
    "wrong "
    "with the file, 1 if something is, 2 if this command was called wrongly.";

// A missing file is no problem.
void Read(const std::string& file, config::Draft* draft, config::Draft* effective,
          config::Problems* problems) {
  if (!file.empty()) config::ReadFile(file, draft, problems);
  *effective = *draft;
  config::FillDefaults(daemon::RuntimeDirectory(), &effective->config, daemon::CacheDirectory());
  config::Check(*effective, problems);
}

void Print(const config::Problems& problems, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
  std::fputs(problems.Text().c_str(), stderr);
}

std::string FindingsJson(const std::string& file, const config::Problems& problems,
                         const std::vector<std::string>& warnings) {
  std::string list, warned;
  std::istringstream lines(problems.Text());
  for (std::string line; std::getline(lines, line);) {
    list += (list.empty() ? "" : ",") + JsonString(line);
  }
  for (const std::string& one : warnings) warned += (warned.empty() ? "" : ",") + JsonString(one);
  return "{\"file\":" + JsonString(file) + ",\"problems\":[" + list + "],\"warnings\":[" + warned +
         "]}";
}

std::string SystemFile() {
  return access(config::kSystemFile, F_OK) == 0 ? config::kSystemFile : "";
}

int CheckFile(const std::string& given, bool json) {
  const std::string file = given.empty() ? SystemFile() : given;
  if (file.empty()) {
    RefuseValue(std::string("no file is given and ") + config::kSystemFile +
                " is not there. See longwire config check --help");
  }
  config::Draft draft;
  config::Draft effective;
  config::Problems problems;
  Read(file, &draft, &effective, &problems);
  if (json) {
    std::puts(FindingsJson(file, problems, draft.warnings).c_str());
  } else {
    Print(problems, draft.warnings);
    if (problems.empty()) std::printf("%s: nothing is wrong\n", file.c_str());
  }
  return problems.empty() ? 0 : 1;
}

int Show(const std::string& given, bool with_defaults) {
  config::Draft draft;
  config::Draft effective;
  config::Problems problems;
  Read(given.empty() ? SystemFile() : given, &draft, &effective, &problems);
  Print(problems, draft.warnings);
  if (!problems.empty()) return 1;
  std::fputs(config::Write((with_defaults ? effective : draft).config).c_str(), stdout);
  return 0;
}

int ShowDefault() {
  std::fputs(config::DefaultFile().c_str(), stdout);
  return 0;
}

}  // namespace

void AddConfig(CommandLine& line) {
  struct Wish {
    std::string file;
    bool json = false;
    bool effective = false;
  };
  auto wish = std::make_shared<Wish>();
  CLI::App& config = line.Add(nullptr, "config",
                              "check and show longwired's configuration file; no server is needed");
  CLI::App& check = line.Add(&config, "check", "every mistake in it, with line and column",
                             [wish] { return CheckFile(wish->file, wish->json); });
  check.add_option("FILE", wish->file, "the file");
  check.add_flag("--json", wish->json, "the mistakes for programs");
  CLI::App& show = line.Add(&config, "show", "its values, without comments",
                            [wish] { return Show(wish->file, wish->effective); });
  show.add_option("FILE", wish->file, "the file");
  show.add_flag("--effective", wish->effective,
                "the values that longwired would use: with every default");
  CLI::App& standard =
      line.Add(&config, "default", "a file with every key, its help and its default", ShowDefault);
  for (CLI::App* command : {&config, &check, &show, &standard}) command->footer(kFooter);
}

}  // namespace longwire::cli
