// Suspends a session into a file (docs/moving.md). Until its ticket is on disk every failure lets
// its worker go on; from then on the session is in the file.
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <ctime>

#include "base/poll_set.h"
#include "base/reason.h"
#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/daemon/moving/old_worker.h"
#include "server/daemon/moving/suspended_head.h"
#include "server/daemon/sessions/session_record.h"
#include "server/daemon/sessions/session_table.h"
#include "server/protocol/message.h"
#include "wire/rings/copy_ring.h"

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;
using transport::Log;
using transport::LogLevel;

// Without a byte from a worker that reads its device's memory.
constexpr milliseconds kStall{60'000};

}  // namespace

class SessionTable::Suspender {
 public:
  Suspender(SessionTable& table, std::shared_ptr<ServerSession> old, const std::string& file,
            uint64_t limit)
      : table_(table),
        old_(old),
        name_(file),
        limit_(limit),
        counted_(table.move_figures_, MoveKind::kCheckpoint),
        worker_(std::in_place, old) {}
  ~Suspender() {
    stream_ = {};
    worker_.reset();  // it goes on
    if (made_) table_.suspended_.Discard(name_);
    if (suspended_) return;
    old_->EndMove();
    table_.SendTerms(*table_.live_.Get());  // a client that came meanwhile got more time
    table_.Detached();
  }
  Suspender(const Suspender&) = delete;
  Suspender& operator=(const Suspender&) = delete;

  bool Run(std::string* sentence) {
    const auto config = table_.live_.Get();
    counted_.Is(CountedMove::At::kSession);
    *sentence = BoundToItsPlace(old_->client(), *config);
    if (!sentence->empty()) return false;
    *sentence = "it has several devices";
    if (old_->worker().keepers.size() != 1) return false;
    std::optional<CheckpointKey> key;
    counted_.Is(CountedMove::At::kPlace);
    if (!KeyOf(*config, &key, sentence)) return false;
    file_ = table_.suspended_.Create(name_, sentence);
    made_ = file_.valid();
    Pair stream;
    if (!made_) return false;
    *sentence = "longwired has no sockets left: " + base::Reason(errno);
    if (!MakePair(SOCK_STREAM, &stream)) return false;
    stream_ = std::move(stream.ours);
    counted_.Is(CountedMove::At::kSession);
    if (!worker_->Ask(std::move(stream.theirs), sentence)) return false;
    counted_.Is(CountedMove::At::kHold);
    if (!worker_->Hold(sentence)) return false;
    counted_.Is(CountedMove::At::kStandsStill);
    held_ = Clock::now();
    bytes_ = table_.LeasedBy(old_->id());
    old_->SetMoves("stands still while it is written into " + name_);
    CheckpointWriter to(file_.get(), key, limit_);
    if (!WriteSession(to, sentence) || !to.Finish(sentence)) return false;
    return Commit(to, sentence);
  }

 private:
  bool WriteSession(CheckpointWriter& to, std::string* sentence) {
    if (!WriteRings(to)) {
      to.Finish(sentence);
      if (sentence->empty()) *sentence = "its logs cannot be written down";
      return false;
    }
    *sentence = "it ended meanwhile";
    if (!worker_->Write() || !CopyStream(to, sentence)) return false;
    return worker_->HasWritten(sentence);
  }

  bool WriteRings(CheckpointWriter& to) {
    SuspendedHead head;
    head.request = worker_->request();
    std::vector<std::span<const std::byte>> contents;
    for (uint32_t i = 0; i < old_->lanes(); ++i) {
      for (wire::RingMemory* ring : {&old_->lane(i).up_ring(), &old_->lane(i).down_ring()}) {
        wire::HeldBytes held;
        if (!wire::ReadRing(*ring, &held, &contents.emplace_back())) return false;
        head.rings.push_back({held.bytes, held.written, held.released});
      }
    }
    const std::vector<std::byte> packed = message::Pack(head);
    const auto bytes = static_cast<uint32_t>(packed.size());
    bool written = bytes <= kMaxSuspendedHead && to.Write(std::as_bytes(std::span(&bytes, 1))) &&
                   to.Write(packed);
    for (const auto& one : contents) written = written && to.Write(one);
    return written;
  }

  // What the worker writes, to its end.
  bool CopyStream(CheckpointWriter& to, std::string* sentence) {
    while (true) {
      *sentence = "its worker does not write on";
      if (base::PollOne(stream_.get(), POLLIN, kStall) == 0) return false;
      const std::span<std::byte> space = to.Space();
      ssize_t got = recv(stream_.get(), space.data(), space.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return got == 0;
      if (!to.Filled(static_cast<size_t>(got))) {
        to.Finish(sentence);
        return false;
      }
    }
  }

  Ticket TicketOf(const CheckpointWriter& to) {
    Ticket ticket;
    SessionRecord record = RecordOfClient(*old_);
    record.lanes = old_->lanes();
    record.claim = "";
    record.claimed_bytes = 0;
    record.time_limit = TimeLeft(*old_);  // it stands still from here on
    record.formerly.emplace();
    record.program_id = old_->client().program_id;
    record.alone = 0;
    record.earlier = std::chrono::nanoseconds(old_->age()).count();
    ticket.numbers = old_->formerly;
    ticket.numbers.push_back(old_->id());
    ticket.identity = record.identity;
    ticket.tenant = record.tenant;
    ticket.program = record.program;
    ticket.record = Encode(record);
    ticket.file = name_;
    ticket.salt.assign(to.head().salt.begin(), to.head().salt.end());
    ticket.digest.assign(to.digest().begin(), to.digest().end());
    ticket.since = static_cast<uint64_t>(time(nullptr));
    struct stat about {};
    if (fstat(file_.get(), &about) == 0) ticket.bytes = static_cast<uint64_t>(about.st_size);
    ticket.device = old_->worker().keepers.front().device;
    for (uint32_t i = 0; i < old_->lanes(); ++i) {
      ticket.lanes.push_back(LaneOf(old_->notes()->Read(i)));
    }
    return ticket;
  }

  bool Commit(const CheckpointWriter& to, std::string* sentence) {
    *sentence = "it ended meanwhile";
    {
      base::MutexLock lock(table_.mutex_);
      if (table_.ending_ || !table_.sessions_.contains(old_->id()) || !old_->Retire()) return false;
    }
    if (!table_.suspended_.Add(TicketOf(to), sentence)) {
      old_->Return();
      if (old_->WorkerIsDead()) {
        table_.End(old_, {static_cast<uint32_t>(transport::kLaunchFailed), "its worker ended"});
      }
      return false;
    }
    // From here on there is no way back: the next daemon would find the ticket.
    suspended_ = true;
    made_ = false;
    counted_.Done(Clock::now() - held_, bytes_, {});
    {
      base::MutexLock lock(table_.mutex_);
      table_.sessions_.erase(old_->id());
      for (uint64_t number : old_->formerly) table_.moved_.erase(number);
    }
    bool gone = worker_->End([this] { table_.warden_->Kill(old_->id()); });
    table_.PutAway(*old_, "suspended into " + name_);
    table_.Detached();
    *sentence = "session " + std::to_string(old_->id()) + " is suspended in " +
                table_.suspended_.folder() + "/" + name_ + "; longwire admin restore " + name_ +
                " lets it go on";
    if (!gone) *sentence += ". Its worker does not end yet: the device's memory is not free";
    return true;
  }

  SessionTable& table_;
  const std::shared_ptr<ServerSession> old_;
  const std::string name_;
  const uint64_t limit_;  // of the file, in bytes
  CountedMove counted_;
  Clock::time_point held_;
  uint64_t bytes_ = 0;  // of device memory
  std::optional<OldWorker> worker_;
  wire::Descriptor file_, stream_;
  bool made_ = false;
  bool suspended_ = false;
};

bool SessionTable::Suspend(uint64_t id, const std::string& file, std::string* sentence,
                           uint64_t limit) {
  auto session = FindToMove(id, sentence);
  if (session == nullptr) return false;
  bool done = Suspender(*this, session, file, limit).Run(sentence);
  if (!done) *sentence = "session " + std::to_string(id) + " is not suspended: " + *sentence;
  Log(done ? LogLevel::kInfo : LogLevel::kWarning, session->subject(), *sentence);
  return done;
}

}  // namespace longwire::daemon
