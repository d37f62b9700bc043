// What policies do, and what they keep in small maps.
#include "server/daemon/metrics/scrape.h"

namespace longwire::daemon {
namespace {

std::string KeyOf(const transport::PolicyValue& value) {
  return value.tenant().empty() ? std::to_string(value.key()) : "tenant:" + value.tenant();
}

}  // namespace

void AddPolicies(const Scrape& scrape, Families* families) {
  Family& runs = families->Counter("longwire_policy_runs_total", "How often a policy's hooks ran.");
  Family& unloaded = families->Gauge(
      "longwire_policy_unloaded",
      "1 if the policy was unloaded because it was slow or answered nonsense, else 0.");
  Family& values = families->Gauge(
      "longwire_policy_value", "What a policy keeps in its maps of up to 64 entries, but zeros.");
  for (const transport::PolicyFigures& policy : scrape.figures.policies()) {
    runs.Add({{"policy", policy.name()}}, static_cast<double>(policy.runs()));
    unloaded.Add({{"policy", policy.name()}}, policy.ended().empty() ? 0 : 1);
    for (const transport::PolicyMap& map : policy.maps()) {
      for (const transport::PolicyValue& value : map.values()) {
        values.Add({{"policy", policy.name()}, {"map", map.name()}, {"key", KeyOf(value)}},
                   static_cast<double>(value.value()));
      }
    }
  }
}

}  // namespace longwire::daemon
