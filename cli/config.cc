// longwire config: checks and shows longwired's configuration without a server.
#include "server/config/config.h"

#include <unistd.h>

#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/config_files.h"
#include "cli/status_json.h"
#include "cli/text.h"
#include "server/daemon/settings/paths.h"

namespace longwire::cli {
namespace {

constexpr const char* kConfigFooter =
    "Without FILE it is /etc/longwire/longwired.yaml, if that is there. Options on longwired's "
    "command line win over the file and are not known here. The exit status is 0 if nothing is "
    "wrong "
    "with the file, 1 if something is, 2 if this command was called wrongly.";

// A missing file is no problem.
void Read(const std::string& file, config::Draft* draft, config::Draft* effective,
          config::Problems* problems) {
  if (!file.empty()) config::ReadFile(file, draft, problems);
  *effective = *draft;
  config::FillDefaults(daemon::RuntimeDirectory(), &effective->config, daemon::CacheDirectory(),
                       daemon::StateDirectory());
  config::Check(*effective, problems);
}

void Print(const std::vector<std::string>& problems, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
  for (const std::string& problem : problems) std::fprintf(stderr, "%s\n", problem.c_str());
}

std::string ListJson(const std::vector<std::string>& sentences) {
  std::string list;
  for (const std::string& one : sentences) list += (list.empty() ? "" : ",") + JsonString(one);
  return "[" + list + "]";
}

std::string FindingsJson(const std::string& file, const std::vector<std::string>& problems,
                         const std::vector<std::string>& warnings) {
  return "{\"file\":" + JsonString(file) + ",\"problems\":" + ListJson(problems) +
         ",\"warnings\":" + ListJson(warnings) + "}";
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
  std::vector<std::string> sentences = problems.Sentences();
  if (sentences.empty()) {
    for (const std::string& one : ProblemsOfFiles(effective.config)) {
      sentences.push_back(file + ": " + one);
    }
  }
  if (json) {
    std::puts(FindingsJson(file, sentences, draft.warnings).c_str());
  } else {
    Print(sentences, draft.warnings);
    if (sentences.empty()) std::printf("%s: nothing is wrong\n", file.c_str());
  }
  return sentences.empty() ? 0 : 1;
}

int Show(const std::string& given, bool with_defaults, bool json) {
  config::Draft draft;
  config::Draft effective;
  config::Problems problems;
  Read(given.empty() ? SystemFile() : given, &draft, &effective, &problems);
  Print(problems.Sentences(), draft.warnings);
  if (!problems.empty()) return 1;
  const config::Config& shown = (with_defaults ? effective : draft).config;
  if (json) {
    std::puts(MessageJson(shown).c_str());
  } else {
    std::fputs(config::Write(shown).c_str(), stdout);
  }
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
  CLI::App& check = line.Add(
      &config, "check",
      "every mistake in it, with line and column, and files of tls that longwired could not use",
      [wish] { return CheckFile(wish->file, wish->json); });
  check.add_option("FILE", wish->file, "the file");
  check.add_flag("--json", wish->json, "the mistakes for programs");
  CLI::App& show = line.Add(&config, "show", "its values, without comments",
                            [wish] { return Show(wish->file, wish->effective, wish->json); });
  show.add_option("FILE", wish->file, "the file");
  show.add_flag("--effective", wish->effective,
                "the values that longwired would use: with every default");
  show.add_flag("--json", wish->json,
                "the values for programs: bytes, nanoseconds, null for no limit");
  CLI::App& standard =
      line.Add(&config, "default", "a file with every key, its help and its default", ShowDefault);
  for (CLI::App* command : {&config, &check, &show, &standard}) command->footer(kConfigFooter);
}

}  // namespace longwire::cli
