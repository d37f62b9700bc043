// longwire advise: what could be better about a program, by what a server has seen of it.
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/json/json_object.h"
#include "cli/kernels/apply.h"
#include "cli/kernels/programs.h"
#include "cli/operator/operator.h"
#include "cli/text.h"
#include "link/transport/grpc_setup.h"

namespace longwire::cli {
namespace {

using statistics::Advice;

constexpr const char* kAdviseFooter =
    "The server counts where kernel_statistics: sampled is set in longwired's configuration. With "
    "--apply, advice that a rule can carry out (docs/extending.md) is written as one into the "
    "configuration FILE, before the rules that are there, and what was changed is shown; grids and "
    "blocks never are. The exit status is 0 when advice was sought, also if there is none; 1 if "
    "nothing is known of the program or --apply had nothing to write; 2 if this command was called "
    "wrongly.";

struct Wish {
  std::string program;
  std::string apply;
  bool json = false;
};

int Fail(const std::string& sentence) {
  std::fprintf(stderr, "longwire advise: %s\n", Printable(sentence).c_str());
  return 1;
}

void PrintAdvice(const Advice& advice) {
  std::printf("  %s: %s\n    seen: %s\n    change: %s\n", advice.kind.c_str(),
              Printable(advice.subject).c_str(), advice.seen.c_str(), advice.change.c_str());
}

void PrintProgram(const transport::ProgramFigures& program, const std::vector<Advice>& list) {
  uint64_t launches = program.others().launches();
  for (const transport::KernelFigures& kernel : program.kernels()) launches += kernel.launches();
  std::printf("%s (tenant %s): %llu sessions of %s together, %llu launches of %d kernels\n",
              Printable(program.program()).c_str(), Printable(program.tenant()).c_str(),
              static_cast<unsigned long long>(program.sessions() + program.ended()),
              SecondsText(program.seconds()).c_str(), static_cast<unsigned long long>(launches),
              program.kernels_size());
  if (list.empty()) std::printf("  nothing to advise\n");
  for (const Advice& advice : list) PrintAdvice(advice);
}

std::string NumberText(double number) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.12g", number);
  return text;
}

std::string AdviceJson(const Advice& advice) {
  JsonObject numbers, object;
  for (const auto& [name, number] : advice.numbers) numbers.AddValue(name, NumberText(number));
  object.Add("kind", advice.kind).Add("subject", advice.subject).Add("seen", advice.seen);
  object.Add("change", advice.change).AddValue("numbers", numbers.Text());
  if (advice.rule.empty()) return object.AddValue("rule", "null").Text();
  JsonObject rule;
  rule.Add("module", advice.rule.module).Add("kernel", advice.rule.kernel);
  if (advice.rule.shared_memory != 0) {
    rule.Add("shared_memory", uint64_t{advice.rule.shared_memory});
  }
  if (advice.rule.registers != 0) rule.Add("registers", uint64_t{advice.rule.registers});
  return object.AddValue("rule", rule.Text()).Text();
}

std::string ProgramJson(const transport::ProgramFigures& program, const std::vector<Advice>& list) {
  std::string all;
  for (const Advice& advice : list) all += (all.empty() ? "" : ",") + AdviceJson(advice);
  JsonObject object;
  object.Add("tenant", program.tenant()).Add("program", program.program());
  object.Add("sessions", program.sessions() + program.ended());
  object.AddValue("seconds", NumberText(program.seconds())).AddValue("advice", "[" + all + "]");
  return object.Text();
}

int Advise(const Wish& wish) {
  ServerOptions options;
  FindServer(&options);
  transport::PrepareProcess();
  Operator server(options, Operator::Prefers::kLocal);
  transport::InspectRequest request;
  transport::InspectReply reply;
  std::string sentence;
  request.set_programs(true);
  if (!server.Inspect(request, &reply, &sentence)) return Fail(sentence);
  std::vector<ProgramAdvice> programs;
  std::string json;
  for (const transport::ProgramFigures& program : ProgramsOf(reply, wish.program)) {
    if (program.kernels_size() == 0) continue;
    std::vector<Advice> list = statistics::Advise(SeenOf(program));
    if (!wish.json) PrintProgram(program, list);
    json += (json.empty() ? "" : ",") + ProgramJson(program, list);
    programs.push_back({program.program(), std::move(list)});
  }
  if (programs.empty()) return Fail(NothingCounted(reply, wish.program));
  if (wish.json) std::printf("{\"programs\":[%s]}\n", json.c_str());
  if (wish.apply.empty()) return 0;
  if (!Apply(wish.apply, programs, &sentence)) return Fail(sentence);
  std::fprintf(wish.json ? stderr : stdout, "%s\n", sentence.c_str());
  return 0;
}

}  // namespace

void AddAdvise(CommandLine& line) {
  auto wish = std::make_shared<Wish>();
  CLI::App& command = line.Add(nullptr, "advise",
                               "what could be better about a program, by what its server has seen",
                               [wish] { return Advise(*wish); });
  command.add_option("PROGRAM", wish->program, "the program's path or name; * is any letters")
      ->required();
  command.add_flag("--json", wish->json, "one JSON object");
  command
      .add_option("--apply", wish->apply,
                  "write rules into this configuration of longwired, and show what is new")
      ->type_name("FILE");
  AddConnection(command, Reach::kNetworkAndLocal);
  command.footer(std::string(kOperatorHelp) + kAdviseFooter);
}

}  // namespace longwire::cli
