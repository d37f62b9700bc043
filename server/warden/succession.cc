// A keeper that ends has a successor: it gets the table of loans of what is lent and the keeper's
// ends of the workers' sockets, and the workers notice a pause.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "server/warden/warden.h"

namespace longwire::warden {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kEarlyDeath{5'000};
constexpr milliseconds kSoon{50};            // after a keeper that had served
constexpr milliseconds kLater{1'000};        // after one that could not open the device
constexpr milliseconds kLongest{60'000};     // between keepers that keep dying,
constexpr milliseconds kLongestUsed{2'000};  // and where sessions need one
// Sessions then go on without: as long as a worker waits for an answer.
constexpr milliseconds kWithoutKeeper{30'000};

}  // namespace

bool Warden::Uses(const Worker& worker, int32_t device) {
  return std::ranges::count(worker.devices, device) != 0;
}

int Warden::SessionsOn(int32_t device) const {
  return static_cast<int>(std::ranges::count_if(workers_, [&](const auto& entry) {
    return entry.second.session != 0 && Uses(entry.second, device);
  }));
}

void Warden::PlanSuccessor(int32_t device) {
  Keeper& keeper = keepers_.at(device);
  const auto now = Clock::now();
  const bool early = now - keeper.started < kEarlyDeath;
  const milliseconds shortest = keeper.ready ? kSoon : kLater;
  const milliseconds longest = SessionsOn(device) != 0 ? kLongestUsed : kLongest;
  keeper.pause = early ? std::min(std::max(keeper.pause * 2, shortest), longest) : milliseconds(0);
  keeper.not_before = now + keeper.pause;
  if (keeper.ready) keeper.ended = now;
  keeper.ready = false;
  keeper.succeeds = false;
}

// What the table of loans says is true as long as there is no keeper; idle chunks and the host's
// memory have gone with the one that had them.
void Warden::KeepFigures(Keeper& keeper) {
  keeper::KeeperState& state = keeper.state;
  state.idle = state.scrub_pending = state.swapped = state.swap_host_memory = 0;
  for (keeper::ChunkSize& size : state.chunk_sizes) size.idle = 0;
  if (keeper.loans == nullptr) return;
  const keeper::LoanTable::Content content = keeper.loans->Read();
  std::map<uint64_t, keeper::WorkerLease> leases;
  for (const auto& lease : state.workers)
    leases[lease.worker] = {lease.worker, 0, lease.leased_peak};
  for (const auto& chunk : content.chunks) {
    if (workers_.contains(chunk.worker)) leases[chunk.worker].leased += chunk.bytes;
  }
  state.leased = 0;
  state.workers.clear();
  for (auto& [worker, lease] : leases) {
    lease.worker = worker;
    state.leased += lease.leased;
    state.workers.push_back(lease);
  }
  if (!state.charges) return;
  state.charges->workers.clear();
  for (const auto& worker : content.workers) {
    if (worker.charged != 0) state.charges->workers.push_back({worker.worker, worker.charged});
  }
}

void Warden::BeginSuccession(int32_t device) {
  Keeper& keeper = keepers_.at(device);
  keeper.attaching.clear();
  for (const auto& [number, worker] : workers_) {
    if (Uses(worker, device)) keeper.attaching.push_back(number);
  }
  ++keeper.successions;
  keeper.succeeds = true;
  keeper.announced = false;
}

// As much as fits into the socket now.
void Warden::SendAttaches(int32_t device) {
  Keeper& keeper = keepers_.at(device);
  if (!keeper.succeeds || keeper.version == 0) return;
  if (keeper.version < keeper::kReattachSince) {  // sessions keep what they have
    HangUp(device);
    keeper.succeeds = false;
    return;
  }
  auto send = [&](const auto& packet, std::span<const int> files = {}) {
    return wire::SendMessage(keeper.control.get(), message::Pack(packet), files);
  };
  if (!keeper.announced && !send(keeper::Succeed{keeper.successions, false})) return;
  keeper.announced = true;
  for (; !keeper.attaching.empty(); keeper.attaching.pop_front()) {
    auto found = workers_.find(keeper.attaching.front());
    if (found == workers_.end()) continue;
    const Worker& worker = found->second;
    auto place = std::ranges::find(worker.devices, device) - worker.devices.begin();
    if (place == std::ssize(worker.devices)) continue;
    const wire::Descriptor& end = worker.keeper_ends[static_cast<size_t>(place)];
    if (!end.valid()) continue;
    const int files[] = {end.get(), worker.process.pidfd.get()};
    keeper::Attach attach{found->first, keeper::Again{worker.tenant, {}}};
    if (worker.promised != 0) attach.again->promised = worker.promised;
    if (!send(attach, files) || !SendPlaced(keeper, found->first, worker)) return;
  }
  keeper.succeeds = !send(keeper::Succeed{keeper.successions, true});
}

void Warden::HangUp(int32_t device) {
  for (auto& [number, worker] : workers_) {
    for (size_t i = 0; i < worker.devices.size() && i < worker.keeper_ends.size(); ++i) {
      if (worker.devices[i] != device || !worker.keeper_ends[i].valid()) continue;
      shutdown(worker.keeper_ends[i].get(), SHUT_RDWR);
    }
  }
}

void Warden::HangUpLate(int32_t device) {
  Keeper& keeper = keepers_.at(device);
  if (keeper.ready || keeper.ended == Clock::time_point() ||
      Clock::now() - keeper.ended < kWithoutKeeper) {
    return;
  }
  keeper.ended = {};
  std::fprintf(stderr,
               "longwire-warden: device %d has no keeper: running sessions (%d) keep their memory "
               "of it and get no more\n",
               device, SessionsOn(device));
  HangUp(device);
}

// A successor that cannot open the device says nothing about what is lent.
void Warden::TakeState(Keeper& keeper, keeper::KeeperState state) {
  if (state.code != 0 && keeper.state.total != 0) {
    keeper.state.code = state.code;
    keeper.state.sentence = state.sentence;
    return;
  }
  keeper.ready = state.code == 0;
  keeper.state = std::move(state);
  TakeEvents(keeper);
}

}  // namespace longwire::warden
