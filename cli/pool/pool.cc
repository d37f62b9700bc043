// longwire status --pool and longwire pool explain.
#include "cli/pool/pool.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/json/json_object.h"
#include "cli/status_json.h"
#include "cli/text.h"
#include "cli/top/pool_lines.h"
#include "link/transport/grpc_setup.h"
#include "scheduler/pool/pool.h"
#include "server/daemon/pool/requirements.h"
#include "wire/limits.h"
#include "wire/versions.h"

namespace longwire::cli {
namespace {

namespace plan = scheduler::pool;

// The pool as the server knows it; false with a sentence on standard error.
bool Ask(Operator& server, const char* command, transport::PoolFigures* pool) {
  transport::InspectRequest request;
  transport::InspectReply reply;
  std::string sentence;
  request.set_pool(true);
  if (!server.Inspect(request, &reply, &sentence)) {
    std::fprintf(stderr, "longwire %s: %s\n", command, Printable(sentence).c_str());
    return false;
  }
  if (!reply.has_pool()) {
    std::fprintf(stderr, "longwire %s: %s\n", command,
                 Printable(top::NotInPool(server.name())).c_str());
    return false;
  }
  *pool = std::move(*reply.mutable_pool());
  return true;
}

// What an administrator said of it, and how far that is.
std::string WithdrawalText(const transport::PoolHost& host) {
  const transport::PoolWithdrawal& told = host.withdrawn();
  std::string text = std::string(told.drain() ? "drained" : "cordoned") +
                     (told.by().empty() ? "" : " by " + Printable(told.by())) +
                     "; longwire admin uncordon " + Printable(host.name()) + " takes it back";
  if (!told.heard()) return text + "; the host does not know of it yet";
  if (!told.drain()) return text;
  if (host.sessions() == 0) return text + "; nothing runs there any more";
  if (told.seconds() == 0) return text + "; its sessions move away or end by themselves";
  return text + "; what runs is ended in " + std::to_string(told.left()) + " s";
}

void PrintHost(const transport::PoolHost& host) {
  std::string labels;
  for (const std::string& label : host.labels()) labels += ", " + label;
  std::printf("\nhost %s  %s: %u of %u sessions%s%s\n", Printable(host.name()).c_str(),
              host.joined() ? Printable(host.address()).c_str() : "not in the pool now",
              host.sessions(), host.sessions_limit(), Printable(labels).c_str(),
              host.cordoned() ? ", takes no new ones" : "");
  if (!host.unknown().empty()) std::printf("  %s\n", Printable(host.unknown()).c_str());
  if (host.has_withdrawn()) std::printf("  %s\n", WithdrawalText(host).c_str());
  for (const transport::PoolDevice& device : host.devices()) {
    std::printf("  device %d  %s: %u sessions, %s of %s promised, %.0f %% busy%s%s\n",
                device.ordinal(), Printable(device.name()).c_str(), device.sessions(),
                BytesText(device.promised()).c_str(), BytesText(device.total()).c_str(),
                100 * device.busy(), device.cordoned() ? ", cordoned" : "",
                device.alone() ? ", of one program alone" : "");
  }
}

void PrintWaiter(const transport::PoolWaiter& waiter) {
  std::printf("\nwaits at place %u  %s  (tenant %s, identity %s, asked at %s)\n", waiter.place(),
              Printable(waiter.program()).c_str(), Printable(waiter.tenant()).c_str(),
              Printable(waiter.identity()).c_str(), Printable(waiter.front()).c_str());
  std::printf("  %s\n", Printable(waiter.reason()).c_str());
}

void PrintPool(const transport::PoolFigures& pool) {
  std::printf("pool, as %s sees it%s%s\n", Printable(pool.host()).c_str(),
              pool.joined() ? "" : ", which is not in it: ",
              pool.joined() ? "" : Printable(pool.problem()).c_str());
  if (pool.placer().empty()) {
    std::printf("no host places sessions just now\n");
  } else {
    std::printf("sessions are placed by %s\n", Printable(pool.placer()).c_str());
  }
  for (const transport::PoolHost& host : pool.hosts()) PrintHost(host);
  std::vector<transport::PoolWaiter> waiting(pool.waiting().begin(), pool.waiting().end());
  std::ranges::sort(waiting, {}, &transport::PoolWaiter::place);
  for (const transport::PoolWaiter& waiter : waiting) PrintWaiter(waiter);
}

plan::HostState StateOf(const transport::PoolHost& host) {
  plan::HostState state;
  state.name = host.name();
  for (const std::string& label : host.labels()) {
    state.labels[label.substr(0, label.find('='))] = label.substr(label.find('=') + 1);
  }
  state.sessions = host.sessions();
  state.sessions_limit = host.sessions_limit();
  state.cordoned = host.cordoned();
  state.gives_alone = host.gives_alone();
  state.closed = host.unknown();
  state.protocols = {host.oldest_protocol(), host.newest_protocol()};
  for (const transport::PoolDevice& device : host.devices()) {
    plan::DeviceState& to = state.devices.emplace_back();
    to.ordinal = device.ordinal();
    to.total = device.total();
    to.promised = device.promised();
    to.sessions = device.sessions();
    to.cordoned = device.cordoned();
    to.alone = device.alone();
    to.busy = device.busy();
  }
  return state;
}

std::string Verdict(const plan::Wish& wish, const transport::PoolHost& host) {
  if (!host.joined()) return "not in the pool now";
  const plan::HostState state = StateOf(host);
  std::string obstacle = plan::Obstacle(wish, state);
  if (!obstacle.empty()) return "never: " + obstacle;
  if (state.sessions >= state.sessions_limit) return "not now: it has all of its sessions";
  const uint64_t lacks = plan::Lacks(wish, state);
  return lacks == 0 ? "has room" : "not now: " + BytesText(lacks) + " are missing";
}

// What several hosts together would give a program that fits none of them.
struct Together {
  std::vector<plan::Part> parts;
  std::string text;  // empty: it is not asked for
};

Together TogetherFor(const plan::Wish& wish, const transport::PoolFigures& pool) {
  Together together;
  if (wish.hosts < 2 || wish.devices < 2) return together;
  std::vector<plan::HostState> states;
  for (const transport::PoolHost& host : pool.hosts()) {
    if (host.joined()) states.push_back(StateOf(host));
  }
  together.parts = plan::ChooseApart(wish, states, "least_loaded",
                                     [](const auto&, const auto&) { return true; });
  for (const plan::Part& part : together.parts) {
    together.text += (together.text.empty() ? "has room: " : ", ") +
                     std::to_string(part.devices.size()) + " of " + part.host;
  }
  if (together.text.empty()) {
    together.text =
        "not now: " + std::to_string(plan::FreeApart(wish, states)) + " devices that nobody uses";
  }
  return together;
}

struct Told {
  int devices = 1;
  bool same_host = false;
  std::string memory;
  std::vector<std::string> labels;
  bool json = false;
};

// What a program with these requirements would find at each host, and who waits before it.
int Explain(const Told& told) {
  std::vector<std::string> variables;
  if (!told.memory.empty()) variables.push_back("LONGWIRE_MEMORY=" + told.memory);
  std::string labels;
  for (const std::string& label : told.labels) labels += (labels.empty() ? "" : ",") + label;
  if (!labels.empty()) variables.push_back("LONGWIRE_LABELS=" + labels);
  daemon::Requirements read;
  std::string sentence;
  if (!daemon::ReadRequirements(variables, &read, &sentence)) {
    std::fprintf(stderr, "longwire pool explain: %s\n", sentence.c_str());
    return kUsageStatus;
  }
  ServerOptions options;
  FindServer(&options);
  transport::PrepareProcess();
  Operator server(options, Operator::Prefers::kNetwork);
  transport::PoolFigures pool;
  if (!Ask(server, "pool explain", &pool)) return 1;
  plan::Wish wish;
  wish.devices = static_cast<uint32_t>(told.devices);
  wish.hosts = told.same_host ? 1 : wire::kMaxServers;
  wish.bytes = read.bytes;
  wish.labels = read.labels;
  wish.protocols = {wire::SpokenVersions().oldest, wire::SpokenVersions().newest};
  bool room = false;
  std::string list;
  for (const transport::PoolHost& host : pool.hosts()) {
    const std::string verdict = Verdict(wish, host);
    room |= verdict == "has room";
    JsonObject object;
    object.Add("host", host.name()).Add("verdict", verdict);
    list += (list.empty() ? "" : ",") + object.Text();
    if (told.json) continue;
    std::printf("%s: %s\n", Printable(host.name()).c_str(), Printable(verdict).c_str());
  }
  Together together;
  if (!room) together = TogetherFor(wish, pool);
  room |= !together.parts.empty();
  if (told.json) {
    std::string waiting;
    for (const transport::PoolWaiter& waiter : pool.waiting()) {
      waiting += (waiting.empty() ? "" : ",") + MessageJson(waiter);
    }
    JsonObject object;
    object.Add("room", room).AddValue("hosts", "[" + list + "]");
    if (!together.text.empty()) object.Add("several_hosts", together.text);
    object.AddValue("waiting", "[" + waiting + "]").Print();
    return room ? 0 : 1;
  }
  if (!together.text.empty()) {
    std::printf("on several hosts: %s\n", Printable(together.text).c_str());
  }
  if (pool.hosts_size() == 0) std::printf("no host is in the pool\n");
  for (const transport::PoolWaiter& waiter : pool.waiting()) PrintWaiter(waiter);
  return room ? 0 : 1;
}

}  // namespace

int PoolStatus(Operator& server, bool json) {
  transport::PoolFigures pool;
  if (!Ask(server, "status", &pool)) return 1;
  if (json) {
    std::puts(MessageJson(pool).c_str());
  } else {
    PrintPool(pool);
  }
  return pool.joined() && !pool.placer().empty() ? 0 : 1;
}

void AddPool(CommandLine& line) {
  auto told = std::make_shared<Told>();
  CLI::App& group = line.Add(nullptr, "pool", "a pool of several servers");
  CLI::App& explain = line.Add(&group, "explain",
                               "which hosts have room for a program, and why the others have none",
                               [told] { return Explain(*told); });
  AddNumber(explain, "--devices", 1, 64, &told->devices, "how many devices it needs");
  explain.add_option("--memory", told->memory, "memory that it needs on each: 512MiB, 40GiB")
      ->type_name("SIZE");
  explain.add_option("--label", told->labels, "a label that the host has to have; several: all")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->take_all();
  explain.add_flag("--same-host", told->same_host, "all of them at one host");
  explain.add_flag("--json", told->json, "the same for programs");
  AddConnection(explain, Reach::kNetworkAndLocal);
  explain.footer(std::string(kOperatorHelp) +
                 "The exit status is 0 if a host has room, or several"
                 " together, 1 if none has or the server does not "
                 "answer, 2 if this command was called wrongly.");
  group.footer("See longwire status --pool for all of it.");
}

}  // namespace longwire::cli
