// longwire rules: looks at the rules of a configuration without a server.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/json/json_object.h"
#include "cli/operator/operator.h"
#include "cli/rules/explain_rules.h"
#include "cli/text.h"
#include "link/transport/grpc_setup.h"
#include "server/config/config.h"
#include "server/daemon/settings/paths.h"

namespace longwire::cli {
namespace {

constexpr const char* kRulesFooter =
    "Without a file it is /etc/longwire/longwired.yaml, and no server is needed. What a running "
    "longwired uses is the file that it has read last: explain --running asks it, and longwire "
    "admin reload makes it read it again. docs/extending.md has "
    "examples. The exit status is 0 if nothing is wrong with the file, 1 if something is, 2 if "
    "this "
    "command was called wrongly.";

std::string FileOr(const std::string& given) {
  if (!given.empty() || access(config::kSystemFile, F_OK) == 0) {
    return given.empty() ? config::kSystemFile : given;
  }
  RefuseValue(std::string("no file is given and ") + config::kSystemFile +
              " is not there. See longwire rules --help");
}

// False with every mistake on standard error.
bool ReadRules(const std::string& file, config::Config* config) {
  config::Draft draft;
  config::Problems problems;
  config::ReadFile(file, &draft, &problems);
  config::FillDefaults(daemon::RuntimeDirectory(), &draft.config);
  config::Check(draft, &problems);
  for (const std::string& problem : problems.Sentences()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
  }
  *config = std::move(draft.config);
  return problems.empty();
}

int CheckRules(const std::string& given, bool json) {
  const std::string file = FileOr(given);
  config::Config config;
  if (!ReadRules(file, &config)) return 1;
  int count = config.rules_size();
  for (const config::Tenant& tenant : config.tenants()) count += tenant.rules_size();
  if (json) {
    JsonObject object;
    object.Add("file", file).Add("rules", static_cast<uint64_t>(count)).Print();
    return 0;
  }
  std::printf("%s: %d rule%s, nothing is wrong\n", file.c_str(), count, count == 1 ? "" : "s");
  return 0;
}

struct ExplainWish {
  std::string file;
  RulesQuestion question;
  bool json = false;
  bool running = false;
};

// By the rules that a server has in force.
int AskServer(const ExplainWish& wish) {
  ServerOptions options;
  FindServer(&options);
  transport::PrepareProcess();
  Operator server(options, Operator::Prefers::kLocal);
  transport::InspectRequest request;
  transport::InspectReply reply;
  std::string sentence;
  request.set_rules_of(wish.question.program);
  if (!server.Inspect(request, &reply, &sentence)) {
    std::fprintf(stderr, "longwire rules explain: %s\n", Printable(sentence).c_str());
    return 1;
  }
  const std::string text =
      wish.json ? ExplainRunningJson(reply, wish.question) : ExplainRunning(reply, wish.question);
  std::fputs(text.c_str(), stdout);
  return 0;
}

int Explain(const ExplainWish& wish) {
  if (wish.running && !wish.file.empty()) {
    RefuseValue(
        "--running asks a server and --file reads a file; see longwire rules explain --help");
  }
  if (wish.running) return AskServer(wish);
  config::Config config;
  if (!ReadRules(FileOr(wish.file), &config)) return 1;
  if (!wish.question.tenant.empty() && !HasTenant(config, wish.question.tenant)) {
    std::fprintf(stderr,
                 "longwire rules explain: the file has no tenant '%s'; see tenants: there\n",
                 Printable(wish.question.tenant).c_str());
    return 1;
  }
  const std::string text =
      wish.json ? ExplainRulesJson(config, wish.question) : ExplainRules(config, wish.question);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

void AddRules(CommandLine& line) {
  auto file = std::make_shared<std::string>();
  auto json = std::make_shared<bool>();
  auto wish = std::make_shared<ExplainWish>();
  CLI::App& rules =
      line.Add(nullptr, "rules", "check and explain the rules of longwired's configuration");
  CLI::App& check = line.Add(&rules, "check", "every mistake in the file, with line and column",
                             [=] { return CheckRules(*file, *json); });
  check.add_option("FILE", *file, "the file");
  check.add_flag("--json", *json, "the number of rules for programs");
  CLI::App& explain =
      line.Add(&rules, "explain", "which rules apply to a program of each tenant, and what they do",
               [wish] { return Explain(*wish); });
  explain.add_option("PROGRAM", wish->question.program, "the program's path or name")->required();
  explain.add_option("--file", wish->file, "the configuration")->type_name("FILE");
  explain.add_flag("--running", wish->running,
                   "of the server that runs, with how often each was used since it began");
  AddConnection(explain, Reach::kNetworkAndLocal);
  explain.add_option("--tenant", wish->question.tenant, "only of this tenant")->type_name("NAME");
  explain.add_option("--module", wish->question.module, "the SHA-256 of a module's image")
      ->type_name("SHA256");
  explain.add_option("--kernel", wish->question.kernel, "the name of a kernel in the module")
      ->type_name("NAME");
  explain.add_flag("--json", wish->json, "the rules for programs");
  for (CLI::App* command : {&rules, &check, &explain}) command->footer(kRulesFooter);
}

}  // namespace longwire::cli
