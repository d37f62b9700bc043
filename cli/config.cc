// longwire config: checks and shows longwired's configuration without a server.
#include "server/config/config.h"

#include <unistd.h>

#include <cstdio>

#include "cli/options.h"
#include "server/daemon/settings/paths.h"

namespace longwire::cli {
namespace {

constexpr const char* kHelp =
    R"(longwire config: checks and shows longwired's configuration file; no server is needed.

  longwire config check FILE                every mistake in it, with line and column
  longwire config show [FILE]               its values, without comments
  longwire config show --effective [FILE]   the values that longwired would use: with every default
  longwire config default                   a file with every key, its help and its default

Without FILE it is /etc/longwire/longwired.yaml, if that is there. Options on longwired's command
line win over the file and are not known here. The exit status is 0 if nothing is wrong with the
file, 1 if something is, 2 if this command was called wrongly.
)";

// False, with all problems on standard error. A missing file is no problem.
bool Read(const std::string& file, config::Draft* draft, config::Draft* effective) {
  config::Problems problems;
  if (!file.empty()) config::ReadFile(file, draft, &problems);
  *effective = *draft;
  config::FillDefaults(daemon::RuntimeDirectory(), &effective->config, daemon::CacheDirectory(),
                       daemon::StateDirectory());
  config::Check(*effective, &problems);
  for (const std::string& warning : draft->warnings) {
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
  std::fputs(problems.Text().c_str(), stderr);
  return problems.empty();
}

int CheckFile(const std::string& file) {
  config::Draft draft;
  config::Draft effective;
  if (!Read(file, &draft, &effective)) return 1;
  std::printf("%s: nothing is wrong\n", file.c_str());
  return 0;
}

int Show(const std::string& file, bool with_defaults) {
  config::Draft draft;
  config::Draft effective;
  if (!Read(file, &draft, &effective)) return 1;
  std::fputs(config::Write((with_defaults ? effective : draft).config).c_str(), stdout);
  return 0;
}

int RefuseWords(const std::string& what) {
  std::fprintf(stderr, "longwire config: %s See longwire config --help\n", what.c_str());
  return kUsageStatus;
}

std::string SystemFile() {
  return access(config::kSystemFile, F_OK) == 0 ? config::kSystemFile : "";
}

}  // namespace

int Config(const Arguments& arguments) {
  const std::string command = arguments.empty() ? "" : arguments[0];
  std::vector<std::string> files;
  bool with_defaults = false;
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (IsHelp(arguments[i])) {
      std::fputs(kHelp, stdout);
      return 0;
    }
    if (arguments[i] == "--effective" && command == "show") {
      with_defaults = true;
    } else if (arguments[i].starts_with("-")) {
      return RefuseWords("unknown option '" + arguments[i] + "'.");
    } else {
      files.push_back(arguments[i]);
    }
  }
  if (IsHelp(command)) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (files.size() > (command == "default" ? 0 : 1)) return RefuseWords("too many files.");
  std::string file = files.empty() ? SystemFile() : files[0];
  if (command == "default") {
    std::fputs(config::DefaultFile().c_str(), stdout);
    return 0;
  }
  if (command == "show") return Show(file, with_defaults);
  if (command != "check") {
    if (command.empty()) return RefuseWords("check, show or default?");
    std::string kind = command.starts_with("-") ? "option" : "command";
    return RefuseWords("unknown " + kind + " '" + command + "'.");
  }
  if (!file.empty()) return CheckFile(file);
  return RefuseWords(std::string("no file is given and ") + config::kSystemFile + " is not there.");
}

}  // namespace longwire::cli
