// What becomes of sessions that are suspended, but for their suspending and restoring: their
// clients wait, they are ended, and the next daemon finds them.
#include <algorithm>

#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/config/config.h"
#include "server/daemon/moving/old_worker.h"
#include "server/daemon/moving/suspended_head.h"
#include "server/daemon/sessions/recording.h"
#include "server/daemon/sessions/session_table.h"

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;
using transport::Log;
using transport::LogLevel;

std::string TextOf(const TokenHash& hash) { return {hash.begin(), hash.end()}; }

TokenHash HashOf(const std::string& text) {
  TokenHash hash{};
  if (text.size() == hash.size()) std::ranges::copy(text, hash.begin());
  return hash;
}

}  // namespace

TicketLane LaneOf(const LaneNote& note) {
  return {TextOf(note.token), TextOf(note.previous_token), note.received,
          note.epoch,         note.previous_good,          note.first_attach};
}

LaneNote NoteOf(const TicketLane& lane) {
  LaneNote note;
  note.token = HashOf(lane.token);
  note.previous_token = HashOf(lane.previous_token);
  note.received = lane.received;
  note.epoch = lane.epoch;
  note.previous_good = lane.previous_good;
  note.first_attach = lane.first_attach;
  return note;
}

bool KeyOf(const config::Config& config, std::optional<CheckpointKey>* key, std::string* sentence) {
  if (config.checkpoint_key().empty()) return true;
  return ReadCheckpointKey(config.checkpoint_key(), &key->emplace(), sentence);
}

std::optional<milliseconds> SessionTable::WaitFor(const transport::Attach& attach,
                                                  const Peer& peer) {
  auto ticket = suspended_.Find(attach.session);
  if (!ticket || !MayWaitFor(*ticket, attach, peer)) return std::nullopt;
  return RestOf(*ticket, config::CheckpointGrace(*live_.Get()));
}

bool SessionTable::EndSuspended(uint64_t id, const std::string& why) {
  auto ticket = suspended_.Find(id);
  if (!ticket || !suspended_.Claim(ticket->session())) return false;
  std::string sentence;
  if (!suspended_.Remove(ticket->session(), &sentence)) {
    Log(LogLevel::kError, ticket->session(), "cannot be ended: " + sentence);
    suspended_.GiveBack(ticket->session());
    return false;
  }
  Log(LogLevel::kWarning, {.session = ticket->session(), .tenant = ticket->tenant},
      "ended while it was suspended: " + why);
  base::MutexLock lock(mutex_);
  for (uint64_t number : ticket->numbers) {
    farewells_.Add(number, ticket->identity, ticket->tenant, why,
                   config::ResumeGrace(*live_.Get()));
  }
  return true;
}

bool SessionTable::EndLateSuspended() {
  bool any = false;
  const auto grace = config::CheckpointGrace(*live_.Get());
  for (uint64_t session : suspended_.Late(grace, &any)) {
    any |= !EndSuspended(session,
                         "it was suspended and nobody restored it in time "
                         "(checkpoint_grace)");
  }
  return any;
}

void SessionTable::PutAway(ServerSession& session, const std::string& why) {
  usage_->Ended(RecordOf(session, {0, why}));
  auto seconds = std::chrono::duration<double>(Clock::now() - session.opened()).count();
  identities_.Ended(session.client().peer, session.bytes_up(), session.bytes_down(), seconds);
  Release(session.client().peer, session.client().descriptors);
  Abandon(session.id());
  if (pool_ != nullptr) pool_->Gone(session);
}

bool SessionTable::TakeOut(const std::shared_ptr<ServerSession>& session, const std::string& why) {
  {
    base::MutexLock lock(mutex_);
    if (!session->Retire()) return false;
    sessions_.erase(session->id());
    for (uint64_t number : session->formerly) moved_.erase(number);
  }
  PutAway(*session, why);
  return true;
}

void SessionTable::SettleTicket(const std::shared_ptr<ServerSession>& session) {
  auto ticket = suspended_.Find(session->id());
  for (uint64_t number : session->formerly) {
    if (!ticket) ticket = suspended_.Find(number);
  }
  if (!ticket) return;
  std::string sentence;
  if (OldWorker::GoesOn(session)) {
    if (suspended_.Remove(ticket->session(), &sentence)) {
      return Log(LogLevel::kWarning, session->subject(),
                 "goes on in its worker: the daemon before this one ended while it was suspended "
                 "or restored, and " +
                     ticket->file + " is void");
    }
    // What the worker has done since then nobody has seen.
    Log(LogLevel::kError, session->subject(), sentence);
  }
  if (!TakeOut(session, "suspended into " + ticket->file)) return;
  Log(LogLevel::kInfo, session->subject(), "is suspended in " + ticket->file);
}

}  // namespace longwire::daemon
