// How sessions survive their daemon: what this one leaves with the warden, and how it takes over
// what another one left (docs/decisions/0057).
#include "base/printable.h"
#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/config/config.h"
#include "server/daemon/access/withdrawn.h"
#include "server/daemon/sessions/recording.h"
#include "server/daemon/sessions/session_record.h"
#include "server/daemon/sessions/session_table.h"
#include "server/daemon/sessions/terms.h"
#include "server/protocol/images.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

}  // namespace

void SessionTable::Keep(const ServerSession& session, int client) {
  const ClientDescription& description = session.client();
  gates::HostMemoryTable::Place memory = host_memory_.PlaceOf(session.id());
  SessionRecord record = RecordOfClient(session);
  record.lanes = session.lanes();
  record.scheduled = session.gates() != nullptr;
  record.limited = memory.page.valid();
  record.slot = memory.slot;
  record.shares_memory = session.has_segment();
  // Of those at the end only the last ones may be missing.
  const ServerSession::Earlier& earlier = session.earlier;
  const bool has_earlier = !session.formerly.empty() || earlier.bytes_up != 0;
  const bool has_id = !description.program_id.empty() || has_earlier;
  const bool has_former = !session.formerly.empty() || has_id;
  const bool placed = !description.claim.empty() || description.claimed_bytes != 0;
  if (placed || description.time_limit != 0 || has_former) {
    record.time_limit = description.time_limit;
    record.claim = description.claim;
    record.claimed_bytes = description.claimed_bytes;
  }
  if (has_former) record.formerly = session.formerly;
  if (has_id) record.program_id = description.program_id;
  // Only programs with sessions at several servers are alone.
  if (description.alone || has_earlier) record.alone = description.alone ? 1 : 0;
  if (has_earlier) {
    record.earlier = std::chrono::nanoseconds(earlier.ran).count();
    record.earlier_up = earlier.bytes_up;
    record.earlier_down = earlier.bytes_down;
  }

  // In the order of KeptDescriptors.
  std::vector<int> descriptors = {record.local ? client : session.notes()->descriptor()};
  if (record.scheduled) {
    descriptors.push_back(session.gates()->memory_descriptor());
    descriptors.push_back(session.gates()->bell_descriptor());
  }
  if (record.limited) descriptors.push_back(memory.page.get());
  std::vector<int> shared = session.shared_descriptors();
  if (record.shares_memory) {
    descriptors.push_back(shared.back());
    shared.pop_back();
  }
  descriptors.insert(descriptors.end(), shared.begin() + 2, shared.end());
  warden_->Keep({session.id(), Encode(record)}, descriptors);
}

void SessionTable::TakeOverWithdrawn() {
  std::string sentence;
  auto withdrawn = ReadWithdrawn(WithdrawnPath(live_.Get()->warden()), &sentence);
  if (!withdrawn) {
    // Better that an operator is asked than that work comes to what may be broken.
    Log(LogLevel::kError, sentence + "; no new sessions until longwire admin drain --off");
    withdrawn.emplace().server = true;
  }
  for (int32_t device : withdrawn->devices) placements_.Cordon(device, true);
  SetDraining(withdrawn->server);
  if (*withdrawn == Withdrawn()) return;
  Log(LogLevel::kWarning,
      "longwire admin drain or cordon was said to an earlier longwired and holds; longwire status "
      "shows what of, and --off takes it back");
}

void SessionTable::TakeOver() {
  TakeOverWithdrawn();
  suspended_.Load(config::CheckpointFolder(*live_.Get()));
  move_notes_.Load(MoveNotesFolder(live_.Get()->warden()));
  size_t taken = 0;
  uint64_t last = 0;
  while (auto one = warden_->Take(last)) {
    if (one->worker.started.code != 0) {
      TakeEnd(*one);
      continue;
    }
    last = one->worker.started.session;
    if (TakeOver(std::move(*one))) {
      ++taken;
      if (auto session = Find(last)) SettleTicket(session);
      if (auto session = Find(last)) SettleGone(session);
      continue;
    }
    Log(LogLevel::kWarning, last, "ends: it cannot be taken over from the daemon before this one");
    Abandon(last);
  }
  host_memory_.ForgetOthers();
  if (!suspended_.List().empty()) Detached();
  if (taken == 0) return;
  Log(LogLevel::kInfo,
      "sessions of the daemon before this one go on here: " + std::to_string(taken));
  SendTerms(*live_.Get());
  Detached();
}

// Its worker ended while there was no daemon: a client that comes back hears how.
void SessionTable::TakeEnd(const TakenSession& taken) {
  SessionRecord record;
  if (!Decode(taken.record, &record)) return;
  const warden::WorkerStarted& worker = taken.worker.started;
  if (auto ticket = suspended_.Find(worker.session)) {
    return Log(LogLevel::kInfo, {.session = worker.session, .tenant = record.tenant},
               "is suspended in " + ticket->file);
  }
  if (move_notes_.Find(worker.session)) return;
  Log(LogLevel::kWarning, {.session = worker.session, .tenant = record.tenant},
      "ended while there was no longwired: " + worker.sentence);
  UsageRecord usage = RecordOfLost(worker.session, record);
  usage.reason = "ended while there was no longwired: " + worker.sentence;
  usage_->Ended(std::move(usage));
  base::MutexLock lock(mutex_);
  farewells_.Add(worker.session, record.identity, record.tenant, worker.sentence,
                 config::ResumeGrace(*live_.Get()));
}

bool SessionTable::TakeOver(TakenSession taken) {
  const uint64_t id = taken.worker.started.session;
  const config::LiveConfig::Snapshot config = live_.Get();
  SessionRecord record;
  KeptDescriptors kept;
  if (!taken.worker.pidfd.valid() || !Decode(taken.record, &record) ||
      !Distribute(record, std::move(taken.kept), &kept)) {
    return false;
  }
  std::shared_ptr<LaneNotes> notes;
  if (!record.local && (notes = LaneNotes::Map(std::move(kept.notes))) == nullptr) return false;
  std::vector<int32_t> devices;
  for (const warden::KeeperProcess& keeper : taken.worker.started.keepers) {
    devices.push_back(keeper.device);
  }
  usage_->Opened(id, devices, UtcOf(Clock::time_point(std::chrono::nanoseconds(record.opened))));
  auto session =
      std::make_shared<ServerSession>(id, ClientOf(record, config), std::move(taken.worker),
                                      Clock::time_point(std::chrono::nanoseconds(record.opened)));
  if (!session->MapRings() ||
      !session->Inherit(std::move(kept.rings), std::move(kept.segment), std::move(notes))) {
    return false;
  }
  const Peer& peer = session->client().peer;
  if (record.scheduled) {
    auto page = gates::GatePage::Map(std::move(kept.gates), std::move(kept.bell));
    if (page == nullptr || page->devices() != devices.size()) return false;
    scheduling_->Inherit(SchedulerSession(id, *peer.tenant, {devices.begin(), devices.end()}),
                         page);
    MayStayAwake(*session, page);
    session->SetGates(std::move(page));
  }
  if (record.limited && !host_memory_.Inherit(id, HostMemoryOf(*peer.tenant), record.tenant,
                                              record.slot, std::move(kept.host_memory))) {
    return false;
  }
  placements_.Inherit(id, std::move(devices), session->client().claimed_bytes);
  wire::Descriptor control = session->ControlSocket();
  if (control.valid()) {
    wire::SendMessage(control.get(), message::Pack(images::Forgotten{}));
    wire::SendMessage(control.get(), message::Pack(links::TellLinks{}));
  }
  std::string problem =
      images_.Serve(id, record.tenant, session->client().program, std::move(control));
  if (!problem.empty()) {
    Log(LogLevel::kError, session->subject(), problem);
    return false;
  }
  entrance_.InheritSession(peer.identity, session->client().descriptors);
  {
    base::MutexLock lock(mutex_);
    ++held_[record.tenant];
    sessions_[id] = session;
    session->formerly = record.formerly.value_or(std::vector<uint64_t>());
    session->earlier = {std::chrono::nanoseconds(record.earlier.value_or(0)),
                        record.earlier_up.value_or(0), record.earlier_down.value_or(0)};
    for (uint64_t number : session->formerly) moved_[number] = id;
  }
  SendNewTerms(live_.Get(), *session);
  if (record.local) inherited_clients_.emplace_back(session, std::move(kept.client));
  Log(LogLevel::kInfo, session->subject(),
      "of " + record.program + " ('" + record.identity + "' of tenant '" + record.tenant +
          "') goes on, worker " + std::to_string(session->worker().pid));
  std::string sentence;
  // True all the same: End has taken it out of all tables.
  (void)MayStay(session, &sentence);
  return true;
}

SessionTable::LocalClients SessionTable::InheritedClients() {
  return std::exchange(inherited_clients_, {});
}

std::string SessionTable::FarewellTo(const Peer& peer, uint64_t session) {
  base::MutexLock lock(mutex_);
  auto moved = moved_.find(session);
  return farewells_.For(moved == moved_.end() ? session : moved->second, peer);
}

void SessionTable::Close() {
  {
    base::MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  unsettled_changed_.NotifyAll();
  if (!left()) EndAll({static_cast<uint32_t>(transport::kLaunchFailed), "the server shuts down"});
}

void SessionTable::Leave() {
  {
    base::MutexLock lock(mutex_);
    ending_ = true;
    left_.store(true);
  }
  changed_.NotifyAll();
  unsettled_changed_.NotifyAll();
  for (const auto& session : List()) session->Leave();
}

}  // namespace longwire::daemon
