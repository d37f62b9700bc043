// Policies and the table of sessions: who asks them, and what workers and the warden get.
#include <map>
#include <memory>
#include <set>
#include <string>

#include "server/daemon/sessions/session_table.h"
#include "server/daemon/sessions/terms.h"
#include "server/rules/launches.h"

namespace longwire::daemon {

void SessionTable::MakePolicies() {
  memory_policy_ = std::make_unique<MemoryPolicy>(
      [this](const warden::SetPolicy& policy, std::span<const int> files) {
        return warden_->SetPolicy(policy, files);
      });
  launch_policy_ = std::make_unique<LaunchPolicy>([this](const launches::AskLaunches& ask) {
    const auto packet = message::Pack(ask);
    // A worker that does not take it is ending.
    for (const auto& session : List()) {
      (void)wire::SendMessage(session->ControlSocket().get(), packet);
    }
  });
  images_.AnswerLaunches(
      [this](uint64_t id, const std::string& tenant, const launches::AskLaunch& ask) {
        const auto device = static_cast<uint32_t>(placements_.DeviceOf(id, ask.device));
        return launch_policy_->Answer(id, tenant, device, ask);
      });
  policies_ = std::make_unique<Policies>(
      Policies::Askers{*scheduling_, placements_, *memory_policy_, *launch_policy_});
}

Takers SessionTable::TakersOfPolicies() {
  Takers takers;
  takers.keepers = [this](std::string* sentence) -> std::optional<std::vector<KeeperOfDevice>> {
    const auto stats = warden_->GetStats(sentence);
    if (!stats) return std::nullopt;
    std::vector<KeeperOfDevice> keepers;
    for (const warden::DeviceStats& device : stats->devices) {
      keepers.push_back({device.device, static_cast<uint64_t>(device.keeper_pid)});
    }
    return keepers;
  };
  takers.late_sessions = [this] {
    std::vector<uint64_t> late;
    const uint64_t policy = launch_policy_->Current().policy;
    for (const auto& session : List()) {
      gates::GatePage* page = session->gates();
      if (page == nullptr || session->WorkerIsDead()) continue;
      if (page->launch_policy().load() != policy) late.push_back(session->id());
    }
    return late;
  };
  return takers;
}

void SessionTable::RepeatTerms() {
  const auto config = live_.Get();
  warden_->SetLimits(LimitsOf(*config));
  warden_->SetLogTerms(LogTermsOf(*config));
  warden_->SetGrace(config::ResumeGrace(*config));
  memory_policy_->Repeat();
}

void SessionTable::TellTerms() {
  std::map<std::string, bool> latency_critical;
  std::set<std::string> best_effort;
  for (const auto& [tenant, terms] : scheduling_->Terms()) {
    const bool critical = terms.priority_class == scheduler::PriorityClass::kLatencyCritical;
    latency_critical[tenant] = critical;
    if (!critical) best_effort.insert(tenant);
  }
  warden_->SetLatencyCritical(latency_critical);
  if (!awake_cores_.SetBestEffort(std::move(best_effort))) return;
  const auto config = live_.Get();
  for (const auto& session : List()) {
    session->lane(0).SetTerms(config::ResumeGrace(*config), config->compression());
  }
}

void SessionTable::SendNewTerms(const config::LiveConfig::Snapshot& before,
                                const ServerSession& session) {
  const auto config = live_.Get();
  if (config != before) {
    SendRules(*config, session);
    SendStatistics(*config, session);
  }
  const auto ask = message::Pack(launch_policy_->Current());
  (void)wire::SendMessage(session.ControlSocket().get(), ask);
}

}  // namespace longwire::daemon
