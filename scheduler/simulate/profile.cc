#include "scheduler/simulate/profile.h"

#include "scheduler/simulate/random.h"

namespace longwire::scheduler::simulate {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

void MakeLatencyCritical(Random& random, Profile* profile) {
  profile->priority_class = PriorityClass::kLatencyCritical;
  profile->think = milliseconds(random.Between(5'000, 40'000));
  profile->daily = true;
  profile->kernels = static_cast<uint32_t>(random.Between(3, 12));
  profile->kernel = microseconds(random.Between(50, 400));
  profile->gap = microseconds(random.Between(10, 200));
}

void MakeBestEffort(Random& random, Profile* profile) {
  profile->weight = 1U << random.Below(3);
  if (random.Below(200) == 0) {
    profile->kernels = 1000;  // a training run
    profile->kernel = milliseconds(20);
    return;
  }
  profile->kernel = milliseconds(random.Between(1, 10));
  profile->varied = true;
  profile->think = milliseconds(random.Between(60'000, 600'000));
  profile->daily = true;
  profile->kernels = static_cast<uint32_t>(random.Between(20, 200));
}

}  // namespace

std::vector<Profile> MakePopulation(uint32_t tenants, uint32_t devices, uint64_t seed) {
  Random random(seed);
  std::vector<Profile> profiles(tenants);
  for (uint32_t i = 0; i < tenants; ++i) {
    Profile& profile = profiles[i];
    profile.device = i % devices;
    const bool latency_critical = random.Below(5) == 0;
    profile.tenant = (latency_critical ? "critical-" : "batch-") + std::to_string(i);
    latency_critical ? MakeLatencyCritical(random, &profile) : MakeBestEffort(random, &profile);
  }
  return profiles;
}

}  // namespace longwire::scheduler::simulate
