// The daemon's requests about the keepers' memory.
#include <algorithm>
#include <cstdio>

#include "server/warden/warden.h"

namespace longwire::warden {
namespace {

constexpr size_t kSessionsKnown = 4 * kMaxWorkers;  // events come after their worker has ended

}  // namespace

void Warden::Do(int, const SetLimits& request) {
  limits_ = request.limits;
  SendLimits();
}

void Warden::SendLimits() {
  limits_due_ = false;
  for (auto& [device, keeper] : keepers_) {
    // A keeper whose socket is closed is ending; the next one gets the limits when it starts.
    if (keeper.control.valid()) {
      (void)wire::SendMessage(keeper.control.get(), message::Pack(limits_));
    }
  }
}

// The keepers look into the ledger when they hear something, and have told workers what it said.
void Warden::Do(int, const SetQuota& request) {
  uint32_t tenant = TenantNumber(request.tenant);
  limits_due_ |= ledger_->limit(tenant) != request.memory;
  limits_due_ |= ledger_->reservation(tenant) != request.reserved;
  ledger_->SetLimit(tenant, request.memory);
  const PoolPart part = request.part.value_or(PoolPart{});
  limits_due_ |= ledger_->ceiling(tenant) != std::max(part.ceiling, request.memory);
  ledger_->SetPool(tenant, part.ceiling, part.spare);
  ledger_->SetReservation(tenant, request.reserved);
  if (ledger_->latency_critical(tenant) == request.latency_critical) return;
  ledger_->SetLatencyCritical(tenant, request.latency_critical);
  SetWeights(tenant);
}

void Warden::End(const keeper::EndWorker& end) {
  auto worker = workers_.find(end.worker);
  if (worker == workers_.end()) return;
  worker->second.why = end.sentence;
  std::fprintf(stderr, "longwire-warden: worker %d %s\n", worker->second.process.pid,
               end.sentence.c_str());
  Kill(worker->second);
}

void Warden::TakeEvents(Keeper& keeper) {
  for (auto& [number, worker] : workers_) {
    if (worker.session != 0) sessions_[number] = worker.session;
  }
  while (sessions_.size() > kSessionsKnown) sessions_.erase(sessions_.begin());
  for (keeper::MemoryEvent& event : keeper.state.events) {
    if (event.number <= keeper.last_event) continue;
    keeper.last_event = event.number;
    auto session = sessions_.find(event.worker);
    event.worker = session == sessions_.end() ? 0 : session->second;
    event.number = ++keeper.events_told;
    keeper.events.push_back(event);
  }
  while (keeper.events.size() > keeper::kEventsKept) keeper.events.pop_front();
  keeper.state.events.clear();
}

void Warden::Do(int connection, const GetEvents& request) {
  Events answer{request.request, {}};
  auto keeper = keepers_.find(request.device);
  if (keeper != keepers_.end()) {
    std::ranges::copy_if(keeper->second.events, std::back_inserter(answer.events),
                         [&](const auto& event) { return event.number > request.after; });
  }
  Reply(connection, message::Pack(answer));
}

}  // namespace longwire::warden
