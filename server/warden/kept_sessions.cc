// What the warden keeps of sessions for the next daemon (server/protocol/kept_session.h).
#include <algorithm>

#include "base/cuda_codes.h"
#include "server/warden/warden.h"

namespace longwire::warden {

void Warden::Keep(const KeepSession& request, std::vector<wire::Descriptor> descriptors) {
  uint64_t number = FindSession(request.session);
  if (number == 0 || descriptors.size() > kMaxKeptDescriptors) return;
  Worker& worker = workers_.at(number);
  worker.record = request.record;
  worker.kept = std::move(descriptors);
}

void Warden::Do(int, const SetGrace& request) {
  // Longer than any grace that the configuration allows.
  constexpr uint64_t kLongest = uint64_t{24} * 60 * 60 * 1000;
  grace_ = std::chrono::milliseconds(std::min(request.milliseconds, kLongest));
}

// For the next daemon, which tells the client.
void Warden::KeepEnd(const Worker& worker, const std::string& how) {
  const auto now = Clock::now();
  std::erase_if(gone_, [&](const Gone& one) { return now - one.since > grace_; });
  if (worker.connection != -1 || worker.record.empty()) return;
  if (gone_.size() < kMaxWorkers) gone_.push_back({worker.session, worker.record, how, now});
}

// A daemon that was killed may not be seen to have gone yet: its sessions are the asking one's all
// the same. Two daemons never use one warden at a time (main.cc of the daemon).
void Warden::Do(int connection, const TakeSession& request) {
  Worker* next = nullptr;
  for (auto& [number, worker] : workers_) {
    if (worker.session <= request.after) continue;
    if (next == nullptr || worker.session < next->session) next = &worker;
  }
  SessionTaken taken;
  taken.request = request.request;
  // First those that have ended: each once.
  if (!gone_.empty()) {
    taken.worker.code = base::kLaunchFailed;
    taken.worker.session = gone_.back().session;
    taken.worker.sentence = std::move(gone_.back().how);
    taken.record = std::move(gone_.back().record);
    gone_.pop_back();
    return Reply(connection, message::Pack(taken));
  }
  if (next == nullptr) return Reply(connection, message::Pack(taken));
  next->connection = connection;
  taken.worker = Started(*next);
  taken.record = next->record;
  std::vector<int> files = DescriptorsOf(*next);
  for (const wire::Descriptor& descriptor : next->kept) files.push_back(descriptor.get());
  Reply(connection, message::Pack(taken), files);
}

void Warden::ReplyStarted(int connection, uint64_t request, const Worker& worker, bool warm) {
  WorkerStarted started = Started(worker);
  started.request = request;
  started.warm = warm;
  Reply(connection, message::Pack(started), DescriptorsOf(worker));
}

WorkerStarted Warden::Started(const Worker& worker) {
  WorkerStarted started{0, 0, "", worker.session, worker.process.pid, false, {}};
  for (int32_t device : worker.devices) {
    started.keepers.push_back({device, keepers_[device].process.pid});
  }
  return started;
}

std::vector<int> Warden::DescriptorsOf(const Worker& worker) {
  return {worker.control.get(), worker.up.get(), worker.down.get(), worker.process.pidfd.get()};
}

bool Warden::KillOrphans() {
  bool any = false;
  for (auto& [number, worker] : workers_) {
    bool orphan = worker.session != 0 && worker.connection == -1;
    any |= orphan;
    if (orphan && Clock::now() - worker.orphaned > grace_) Kill(worker);
  }
  return any;
}

}  // namespace longwire::warden
