#include "scheduler/simulate/pool_main.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "scheduler/simulate/pool.h"

namespace longwire::scheduler::simulate {
namespace {

constexpr char kUsage[] =
    "usage: longwire-simulate --pool [--hosts N] [--devices N] [--seconds N] [--rate N]\n"
    "                         [--longest N] [--tenants N] [--seed N]\n"
    "Places programs in a pool on a virtual clock, by each policy: --rate programs come a second\n"
    "and run up to --longest seconds. Says how long a pass of the planner took on this machine,\n"
    "and from the keys that each step writes what etcd has to do.\n";

bool Parse(int count, char** words, std::map<std::string, uint32_t>* numbers) {
  for (int i = 1; i < count; ++i) {
    const std::string name = words[i];
    if (name == "--pool") continue;
    auto number = numbers->find(name);
    if (number == numbers->end() || i + 1 == count) return false;
    char* end = nullptr;
    const unsigned long value = std::strtoul(words[++i], &end, 10);
    if (*end != '\0' || words[i][0] == '-' || value == 0 || value > 100000) return false;
    number->second = static_cast<uint32_t>(value);
  }
  return true;
}

double Percentile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

void Print(const std::string& policy, const PoolOptions& options, const PoolResult& result) {
  const double seconds = options.seconds;
  std::printf("%-12s %zu placed, %llu refused, %zu wait, longest wait %llu s\n", policy.c_str(),
              result.placements.size(), static_cast<unsigned long long>(result.refused),
              result.waiting, static_cast<unsigned long long>(result.longest_wait));
  std::printf("  a pass       p50 %.2f ms, p99 %.2f ms, longest %.2f ms\n",
              Percentile(result.pass_ms, 0.5), Percentile(result.pass_ms, 0.99),
              Percentile(result.pass_ms, 1));
  std::printf("  etcd         %.0f writes/s in %.0f transactions/s, %.0f watch events/s\n",
              static_cast<double>(result.writes) / seconds,
              static_cast<double>(result.transactions) / seconds,
              static_cast<double>(result.events) / seconds);
  std::printf("  memory       %.1f %% promised; of the free %.1f %% is on devices in use\n",
              100 * result.used, 100 * result.fragmentation);
  std::printf("  warm         %.1f %% went where their program ran\n",
              100 * static_cast<double>(result.warm) /
                  static_cast<double>(std::max<size_t>(1, result.placements.size())));
}

}  // namespace

int PoolMain(int count, char** words) {
  PoolOptions options;
  std::map<std::string, uint32_t> numbers = {{"--hosts", options.hosts},
                                             {"--devices", options.devices},
                                             {"--seconds", options.seconds},
                                             {"--rate", options.rate},
                                             {"--longest", options.longest},
                                             {"--tenants", options.tenants},
                                             {"--seed", static_cast<uint32_t>(options.seed)}};
  if (!Parse(count, words, &numbers)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  options.hosts = numbers["--hosts"];
  options.devices = numbers["--devices"];
  options.seconds = numbers["--seconds"];
  options.rate = numbers["--rate"];
  options.longest = numbers["--longest"];
  options.tenants = numbers["--tenants"];
  options.seed = numbers["--seed"];
  std::printf("%u hosts of %u devices, %u programs a second for %u s\n", options.hosts,
              options.devices, options.rate, options.seconds);
  // A load that changes all the time is written every two seconds.
  std::printf("loads of hosts: at most %u writes/s more\n", options.hosts / 2);
  for (const char* policy : {"pack", "spread", "least_loaded", "affinity"}) {
    options.queue.policy = policy;
    Print(policy, options, SimulatePool(options));
  }
  return 0;
}

}  // namespace longwire::scheduler::simulate
