// longwire policy: an operator's own rules in a running server.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/operator/operator.h"
#include "cli/policy/files.h"
#include "cli/status_json.h"
#include "cli/text.h"
#include "link/transport/grpc_setup.h"
#include "wire/number.h"

namespace longwire::cli {
namespace {

constexpr const char* kAbout = "programs of yours that decide beside the built-in policies";
constexpr const char* kPolicyFooter =
    "docs/policies.md says how to write one. What is loaded this way is gone when longwired "
    "restarts; the key policies: of its configuration keeps one.\n\n";

struct Wish {
  std::string policy, map, set, transcript, name;
  bool json = false;
};

int Fail(const char* verb, const std::string& sentence) {
  std::fprintf(stderr, "longwire policy %s: %s\n", verb, Printable(sentence).c_str());
  return 1;
}

Operator TheServer() {
  ServerOptions options;
  FindServer(&options);
  transport::PrepareProcess();
  return Operator(options, Operator::Prefers::kLocal);
}

int Change(const char* verb, const transport::PolicyRequest& request, bool json) {
  Operator server = TheServer();
  transport::AdminRequest admin;
  *admin.mutable_policy() = request;
  transport::AdminReply reply;
  std::string sentence;
  const bool answered = server.Administer(admin, &reply, &sentence);
  if (json) {
    if (!answered) reply.add_sentences(sentence);
    std::puts(MessageJson(reply).c_str());
    return reply.done() ? 0 : 1;
  }
  if (!answered) return Fail(verb, sentence);
  for (const std::string& said : reply.sentences()) {
    if (!reply.done()) return Fail(verb, said);
    std::printf("%s\n", Printable(said).c_str());
  }
  return reply.done() ? 0 : Fail(verb, "nothing was done");
}

int Load(const Wish& wish) {
  std::string sentence;
  auto object = ReadPolicyFile(wish.policy, &sentence);
  if (!object) return Fail("load", sentence);
  transport::PolicyRequest request;
  request.set_name(wish.name.empty() ? std::filesystem::path(wish.policy).stem().string()
                                     : wish.name);
  request.set_load(*object);
  return Change("load", request, wish.json);
}

int Unload(const Wish& wish) {
  transport::PolicyRequest request;
  request.set_name(wish.policy);
  request.set_unload(true);
  return Change("unload", request, wish.json);
}

constexpr char kLeftOut[] =
    "policies are shown to administrators and to members of tenants with monitor: true, and this "
    "is neither; on the server's host root and members of its admin_group need no --server";

void PrintPolicy(const transport::PolicyFigures& policy) {
  std::string hooks;
  for (const std::string& hook : policy.hooks()) hooks += (hooks.empty() ? "" : ", ") + hook;
  std::printf("%s  %s: %s%s, %llu runs, the longest %.1f us\n", Printable(policy.name()).c_str(),
              policy.ended().empty() ? "decides" : "UNLOADED", Printable(hooks).c_str(),
              policy.compiled() ? "" : " (interpreted)",
              static_cast<unsigned long long>(policy.runs()),
              static_cast<double>(policy.longest_nanoseconds()) / 1e3);
  if (!policy.ended().empty()) std::printf("  because %s\n", Printable(policy.ended()).c_str());
}

int List(const Wish& wish) {
  Operator server = TheServer();
  transport::InspectReply reply;
  std::string sentence;
  if (!server.Inspect({}, &reply, &sentence)) return Fail("list", sentence);
  if (reply.policies_left_out()) return Fail("list", kLeftOut);
  if (wish.json) {
    std::string list;
    for (const auto& policy : reply.policies())
      list += (list.empty() ? "" : ",") + MessageJson(policy);
    std::printf("[%s]\n", list.c_str());
    return 0;
  }
  for (const auto& policy : reply.policies()) PrintPolicy(policy);
  if (reply.policies().empty()) std::puts("no policy is loaded; what is built in decides");
  return 0;
}

void PrintMap(const transport::PolicyMap& map) {
  std::printf("%s  %s of %u\n", Printable(map.name()).c_str(), Printable(map.type()).c_str(),
              map.entries());
  for (const transport::PolicyValue& value : map.values()) {
    const std::string key = value.tenant().empty() ? std::to_string(value.key())
                                                   : "tenant:" + Printable(value.tenant());
    std::printf("  %s = %llu\n", key.c_str(), static_cast<unsigned long long>(value.value()));
  }
}

int SetValue(const Wish& wish) {
  const size_t sign = wish.set.rfind('=');
  const auto value = sign == std::string::npos
                         ? std::nullopt
                         : wire::ParseNumber(wish.set.substr(sign + 1), 0, INT64_MAX);
  if (!value || wish.map.empty()) {
    Fail("maps", "expected POLICY MAP --set KEY=NUMBER, found '" + wish.set + "'");
    return kUsageStatus;
  }
  transport::PolicyRequest request;
  request.set_name(wish.policy);
  request.mutable_set()->set_map(wish.map);
  request.mutable_set()->set_key(wish.set.substr(0, sign));
  request.mutable_set()->set_value(static_cast<uint64_t>(*value));
  return Change("maps", request, wish.json);
}

int ShowMaps(const Wish& wish) {
  if (!wish.set.empty()) return SetValue(wish);
  Operator server = TheServer();
  transport::InspectRequest request;
  request.set_policy_values(true);
  transport::InspectReply reply;
  std::string sentence;
  if (!server.Inspect(request, &reply, &sentence)) return Fail("maps", sentence);
  if (reply.policies_left_out()) return Fail("maps", kLeftOut);
  for (const auto& policy : reply.policies()) {
    if (policy.name() != wish.policy) continue;
    bool found = wish.map.empty();
    for (const auto& map : policy.maps()) {
      if (!wish.map.empty() && map.name() != wish.map) continue;
      found = true;
      if (wish.json) {
        std::puts(MessageJson(map).c_str());
      } else {
        PrintMap(map);
      }
    }
    return found ? 0 : Fail("maps", "the policy has no map '" + wish.map + "'");
  }
  return Fail("maps", "there is no policy '" + wish.policy + "'; see longwire policy list");
}

}  // namespace

void AddPolicy(CommandLine& line) {
  auto wish = std::make_shared<Wish>();
  CLI::App& policy = line.Add(nullptr, "policy", kAbout);
  policy.footer(std::string(kPolicyFooter) + kOperatorHelp);
  CLI::App& list = line.Add(&policy, "list", "policies that are loaded, and what became of them",
                            [=] { return List(*wish); });
  list.add_flag("--json", wish->json, "the same for programs");
  CLI::App& load = line.Add(&policy, "load", "verify a policy, and let it decide from now on",
                            [=] { return Load(*wish); });
  load.add_option("FILE", wish->policy, "an object file of clang -target bpf")->required();
  load.add_option("--name", wish->name, "its name here; by default the file's");
  CLI::App& unload = line.Add(&policy, "unload", "let what is built in decide again",
                              [=] { return Unload(*wish); });
  unload.add_option("POLICY", wish->policy, "its name")->required();
  for (CLI::App* command : {&load, &unload}) {
    command->add_flag("--json", wish->json, "what comes of it, for programs");
  }
  CLI::App& maps = line.Add(&policy, "maps", "what a policy keeps; also to give it values",
                            [=] { return ShowMaps(*wish); });
  maps.add_option("POLICY", wish->policy, "its name")->required();
  maps.add_option("MAP", wish->map, "only this one");
  maps.add_option("--set", wish->set, "KEY=NUMBER; a key is a number, tenant:NAME or kernel:NAME");
  maps.add_flag("--json", wish->json, "the same for programs, an object for each map");
  for (CLI::App* command : {&list, &load, &unload, &maps}) {
    AddConnection(*command, Reach::kNetworkAndLocal);
    command->footer(kOperatorHelp);
  }
  CLI::App& test = line.Add(&policy, "test", "what is decided with a policy; needs no server",
                            [=] { return TestPolicy(wish->policy, wish->transcript); });
  test.add_option("FILE", wish->policy, "an object file of clang -target bpf")->required();
  test.add_option("TRANSCRIPT", wish->transcript,
                  "as docs/policies.md and docs/scheduling.md describe them")
      ->required();
  test.footer(
      "It prints the transcript as it is with the policy. The exit status is 0 if that is "
      "what it says already, 1 if not, 2 if this command was called wrongly.");
}

}  // namespace longwire::cli
