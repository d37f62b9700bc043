// longwire version and longwire completion: what the command says of itself.
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/text.h"
#include "wire/versions.h"

namespace longwire::cli {
namespace {

int PrintVersion(bool json) {
  const wire::VersionRange range = wire::SpokenVersions();
  if (json) {
    std::printf("{\"version\":%s,\"oldest_protocol\":%u,\"newest_protocol\":%u}\n",
                JsonString(LONGWIRE_VERSION).c_str(), range.oldest, range.newest);
  } else {
    std::printf("longwire %s\nspeaks %s\n", LONGWIRE_VERSION, wire::VersionsText(range).c_str());
  }
  return 0;
}

}  // namespace

void AddVersion(CommandLine& line) {
  auto json = std::make_shared<bool>();
  CLI::App& command =
      line.Add(nullptr, "version", "this version, and those of the protocol that it speaks",
               [json] { return PrintVersion(*json); });
  command.add_flag("--json", *json, "the same for programs");
}

void AddCompletion(CommandLine& line) {
  auto shell = std::make_shared<std::string>();
  const CLI::App* app = &line.app();
  CLI::App& command =
      line.Add(nullptr, "completion", "a script by which a shell completes this command", [=] {
        const std::string script = CompletionFor(*shell, *app);
        if (script.empty()) RefuseValue("for bash, zsh or fish? See longwire completion --help");
        std::fputs(script.c_str(), stdout);
        return 0;
      });
  command.add_option("SHELL", *shell, "bash, zsh or fish");
  command.footer(
      "The packages install it. By hand: source <(longwire completion bash), the same for zsh, or "
      "longwire completion fish | source.");
}

}  // namespace longwire::cli
