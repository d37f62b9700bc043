// longwire-simulate: a day of a made-up city of tenants, in seconds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "scheduler/simulate/pool_main.h"
#include "scheduler/simulate/simulation.h"

namespace longwire::scheduler::simulate {
namespace {

constexpr char kUsage[] =
    "usage: longwire-simulate [--tenants N] [--devices N] [--hours N] [--seed N]\n"
    "                         [--policy strict_priority|weighted_fair] [--turn-ms N]\n"
    "                         [--max-wait-ms N] [--list]\n"
    "       longwire-simulate --pool …\n"
    "Runs the scheduler against pseudo tenants on a virtual clock; --list shows each tenant.\n";

struct Arguments {
  std::map<std::string, double> numbers = {{"--tenants", 1000}, {"--devices", 8},
                                           {"--hours", 24},     {"--seed", 1},
                                           {"--turn-ms", 10},   {"--max-wait-ms", 100}};
  std::string policy = "strict_priority";
  bool list = false;
};

bool Parse(int count, char** words, Arguments* arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string name = words[i];
    if (name == "--list") {
      arguments->list = true;
      continue;
    }
    if (i + 1 == count) return false;
    const char* value = words[++i];
    if (name == "--policy") {
      arguments->policy = value;
      continue;
    }
    auto number = arguments->numbers.find(name);
    char* end = nullptr;
    if (number == arguments->numbers.end()) return false;
    number->second = std::strtod(value, &end);
    if (*end != '\0' || !(number->second > 0) || number->second > 1e6) return false;
  }
  return true;
}

double Seconds(Time time) { return std::chrono::duration<double>(time).count(); }

Time FromSeconds(double seconds) { return Time(static_cast<int64_t>(seconds * 1e9)); }

void Print(const Result& result, const std::vector<Profile>& profiles, bool list) {
  std::map<std::string, std::pair<double, int>> groups;  // share, tenants
  for (size_t i = 0; i < profiles.size(); ++i) {
    const TenantResult& tenant = result.tenants[i];
    const bool critical = profiles[i].priority_class == PriorityClass::kLatencyCritical;
    const std::string name =
        critical ? "latency critical" : "best effort x" + std::to_string(profiles[i].weight);
    groups[name].first += tenant.share;
    ++groups[name].second;
    if (!list) continue;
    std::printf("%-16s device %u weight %u  %10.1f s of GPU  %6.3f %%  %8llu requests\n",
                tenant.tenant.c_str(), profiles[i].device, profiles[i].weight,
                Seconds(tenant.gpu_time), 100 * tenant.share,
                static_cast<unsigned long long>(tenant.requests));
  }
  for (const auto& [name, group] : groups) {
    std::printf("%-18s %4d tenants, %5.1f %% of the GPU time\n", name.c_str(), group.second,
                100 * group.first);
  }
  std::printf("devices busy       %.1f %%\n", 100 * result.busy);
  std::printf("latency critical   %llu requests, wait p50 %.0f us, p99 %.0f us\n",
              static_cast<unsigned long long>(result.latency_critical_requests), result.wait_p50,
              result.wait_p99);
  std::printf("longest starved    %.3f s\n", Seconds(result.longest_starved));
  std::printf("turns              %llu, drain overruns %llu, forced %llu\n",
              static_cast<unsigned long long>(result.counters.turns),
              static_cast<unsigned long long>(result.counters.overruns),
              static_cast<unsigned long long>(result.counters.forced));
  std::printf("core events        %llu\n", static_cast<unsigned long long>(result.events));
}

int Main(int count, char** words) {
  if (count > 1 && std::strcmp(words[1], "--pool") == 0) return PoolMain(count, words);
  Arguments arguments;
  if (!Parse(count, words, &arguments)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const auto policy = MakePolicy(arguments.policy);
  if (policy == nullptr) {
    std::fprintf(stderr, "There is no policy '%s'.\n%s", arguments.policy.c_str(), kUsage);
    return 2;
  }
  auto& numbers = arguments.numbers;
  Options options;
  options.turn_length = FromSeconds(numbers["--turn-ms"] / 1e3);
  options.max_wait = FromSeconds(numbers["--max-wait-ms"] / 1e3);
  const auto seed = static_cast<uint64_t>(numbers["--seed"]);
  const auto profiles = MakePopulation(static_cast<uint32_t>(numbers["--tenants"]),
                                       static_cast<uint32_t>(numbers["--devices"]), seed);
  Simulation simulation(profiles, *policy, options, seed);
  Print(simulation.Run(FromSeconds(numbers["--hours"] * 3600)), profiles, arguments.list);
  return 0;
}

}  // namespace
}  // namespace longwire::scheduler::simulate

int main(int count, char** words) { return longwire::scheduler::simulate::Main(count, words); }
