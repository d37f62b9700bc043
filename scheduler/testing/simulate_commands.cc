#include <cstdio>
#include <stdexcept>

#include "scheduler/simulate/simulation.h"
#include "scheduler/testing/commands.h"

namespace longwire::scheduler::testing {

namespace {

using simulate::Profile;

// NAME [latency_critical] [weight=1] [device=0] [think=0] [kernels=1] kernel=SPAN [gap=0] [varied]
Profile ParseProfile(const Command& command) {
  Profile profile;
  profile.tenant = command.Word(0);
  if (command.Has("latency_critical")) profile.priority_class = PriorityClass::kLatencyCritical;
  profile.weight = static_cast<uint32_t>(command.Number("weight", 1));
  profile.device = static_cast<DeviceId>(command.Number("device", 0));
  profile.think = command.Span("think", Time{0});
  profile.regular = !command.Has("varied");
  profile.varied = command.Has("varied");
  profile.kernels = static_cast<uint32_t>(command.Number("kernels", 1));
  profile.kernel = command.Span("kernel", Time{0});
  profile.gap = command.Span("gap", Time{0});
  command.CheckAllUsed();
  if (profile.kernel == Time{0}) throw std::invalid_argument("a tenant needs kernel=SPAN");
  return profile;
}

}  // namespace

std::string RunSimulation(const std::vector<Command>& block) {
  const Command& head = block.front();
  const auto policy = MakePolicy(head.Text("policy", "strict_priority"));
  if (policy == nullptr) throw std::invalid_argument("there is no such policy");
  Options options;
  options.max_wait = head.Span("max_wait", options.max_wait);
  options.drain_lengths =
      static_cast<uint32_t>(head.Number("drain_lengths", options.drain_lengths));
  const uint64_t seed = head.Number("seed", 1);
  head.CheckAllUsed();
  std::vector<Profile> profiles;
  for (size_t i = 1; i < block.size(); ++i) profiles.push_back(ParseProfile(block[i]));

  simulate::Simulation simulation(profiles, *policy, options, seed);
  const simulate::Result result = simulation.Run(ParseTime(head.Word(1)));
  std::string output;
  for (const auto& tenant : result.tenants) {
    char line[120];
    // Whole percent: what arithmetic differs in between machines must not show.
    std::snprintf(line, sizeof line, "%s %.0f %%\n", tenant.tenant.c_str(), 100 * tenant.share);
    output += line;
  }
  return output;
}

}  // namespace longwire::scheduler::testing
