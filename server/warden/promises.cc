// A session whose program declared how much memory it needs starts when all keepers of its devices
// keep that for it, or not at all (server/protocol/promises.h).
#include <utility>

#include "base/cuda_codes.h"
#include "server/warden/warden.h"

namespace longwire::warden {

void Warden::Await(Worker& worker, const StartWorker& request, bool warm) {
  worker.promised = request.promised.value_or(0);
  worker.start = request.request;
  worker.warm = warm;
}

// Before its keepers charge anything for it.
void Warden::BeginMove(uint64_t number, const Worker& worker, uint64_t session, uint32_t tenant) {
  auto from = workers_.find(FindSession(session));
  if (from == workers_.end() || from->second.tenant != tenant) return;
  if (from->second.devices.size() != 1 || worker.devices.size() != 1) return;  // such do not move
  ledger_->BeginMove(tenant, {from->first, from->second.devices[0]}, {number, worker.devices[0]});
}

void Warden::AssignTenant(uint64_t number, Worker& worker, uint32_t tenant) {
  worker.tenant = tenant;
  for (int32_t device : worker.devices) {
    keeper::Assign assign{number, tenant, {}};
    if (worker.promised != 0) assign.promised = worker.promised;
    const Keeper& keeper = keepers_.at(device);
    const uint32_t version = keeper.version;
    if (worker.promised != 0 && version != 0 && version < keeper::kPromisesSince) {
      return RefuseStart(worker, device, "its keeper is of an earlier version", true);
    }
    // A keeper whose socket is closed is ending, and lends nothing more.
    const bool told = wire::SendMessage(keeper.control.get(), message::Pack(assign));
    (void)SendPlaced(keeper, number, worker);
    if (worker.promised == 0) continue;
    worker.unpromised.insert(device);
    if (!told) return RefuseStart(worker, device, "its keeper does not answer", true);
  }
}

void Warden::TakePromised(int32_t device, const keeper::Promised& promised) {
  auto found = workers_.find(promised.worker);
  if (found == workers_.end() || found->second.unpromised.erase(device) == 0) return;
  Worker& worker = found->second;
  if (promised.code != 0) return RefuseStart(worker, device, promised.sentence, true);
  if (!worker.unpromised.empty()) return;
  ReplyStarted(worker.connection, worker.start, worker, worker.warm);
}

void Warden::RefuseStart(Worker& worker, int32_t device, const std::string& why, bool alive) {
  WorkerStarted refused;
  refused.request = worker.start;
  refused.session = worker.session;
  refused.code = base::kDeviceUnavailable;
  refused.sentence = "device " + std::to_string(device) + " cannot keep the memory that was " +
                     "declared (longwire run --memory): " + why;
  worker.unpromised.clear();
  worker.promised = 0;
  const int connection = std::exchange(worker.connection, -1);
  worker.session = 0;  // its end is reported to nobody
  if (alive) Discard(worker);
  Reply(connection, message::Pack(refused));
}

// Of a keeper that has ended: its successor was not asked.
void Warden::RefuseStartsOn(int32_t device) {
  for (auto& [number, worker] : workers_) {
    if (worker.unpromised.contains(device)) RefuseStart(worker, device, "its keeper ended", true);
  }
}

AllPromises Warden::Promises() const {
  AllPromises all;
  for (const auto& [number, worker] : workers_) {
    if (worker.promised == 0 || worker.session == 0 || !worker.unpromised.empty()) continue;
    for (int32_t device : worker.devices) {
      all.sessions.push_back({worker.session, device, worker.promised});
    }
  }
  return all;
}

}  // namespace longwire::warden
