// A suspended session goes on in a new worker (docs/moving.md). Until its ticket is gone every
// failure leaves it suspended: what the new worker does before that, nobody has seen.
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/printable.h"
#include "base/reason.h"
#include "base/start_thread.h"
#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/daemon/moving/successor.h"
#include "server/daemon/moving/suspended_head.h"
#include "server/daemon/sessions/session_record.h"
#include "server/protocol/message.h"
#include "wire/rings/copy_ring.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

// Of a worker that takes nothing.
constexpr timeval kFeedPatience{60, 0};
// That wait until the worker takes them.
constexpr size_t kCheckedPieces = 8;
constexpr uint64_t kHeldLimit = uint64_t{1} << 30;  // bytes in one ring

}  // namespace

class SessionTable::Restorer {
 public:
  explicit Restorer(SessionTable& table)
      : table_(table),
        counted_(table.move_figures_, MoveKind::kRestore),
        new_(std::in_place, table) {}
  ~Restorer() {
    stream_ = {};
    new_.reset();
    if (in_pool_) table_.pool_->NotOpened(placed_);
    if (admitted_) table_.Release(client_.peer, client_.descriptors);
    if (claimed_) table_.suspended_.GiveBack(ticket_.session());
  }
  Restorer(const Restorer&) = delete;
  Restorer& operator=(const Restorer&) = delete;

  bool Run(const std::string& name, std::optional<int32_t> device, std::string* sentence) {
    begun_ = Clock::now();
    counted_.Is(CountedMove::At::kSession);
    if (!Open(name, sentence)) return false;
    CheckpointReader from(file_.get());
    if (!from.ReadHead(sentence) || !Claim(from, sentence) || !ReadRings(from, sentence)) {
      return false;
    }
    counted_.Is(CountedMove::At::kPlace);
    if (!Admit(sentence) || !Place(device, sentence)) return false;
    Pair stream;
    *sentence = "longwired has no sockets left: " + base::Reason(errno);
    if (!MakePair(SOCK_STREAM, &stream)) return false;
    stream_ = std::move(stream.ours);
    setsockopt(stream_.get(), SOL_SOCKET, SO_SNDTIMEO, &kFeedPatience, sizeof(kFeedPatience));
    if (!new_->Start(head_.request, client_.peer, &placed_, std::move(stream.theirs), sentence)) {
      return false;
    }
    counted_.Is(CountedMove::At::kStandsStill);
    return Feed(from, sentence) && new_->IsRebuilt(sentence) && GoOn(sentence);
  }

 private:
  bool Open(const std::string& name, std::string* sentence) {
    const std::string& folder = table_.suspended_.folder();
    *sentence = "this server has no suspended sessions: its configuration has no checkpoint_dir";
    if (folder.empty()) return false;
    *sentence =
        "'" + base::Printable(name) + "' is no name of a file below checkpoint_dir, " + folder;
    if (!IsFileName(name)) return false;
    file_ = wire::Descriptor(
        open((folder + "/" + name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    *sentence = folder + "/" + name + " cannot be read: " + base::Reason(errno) +
                "; longwire status names the files of suspended sessions";
    return file_.valid();
  }

  bool Claim(CheckpointReader& from, std::string* sentence) {
    const Digest& salt = from.head().salt;
    auto ticket = table_.suspended_.Claim(std::string(salt.begin(), salt.end()), sentence);
    claimed_ = ticket.has_value();
    if (!claimed_) return false;
    ticket_ = *ticket;
    SessionRecord record;
    *sentence = "its ticket is of another version";
    if (!Decode(ticket_.record, &record)) return false;
    const auto config = table_.live_.Get();
    client_ = ClientOf(record, config);
    earlier_ = std::chrono::nanoseconds(record.earlier.value_or(0));
    *sentence = BoundToItsPlace(client_, *config);
    std::optional<CheckpointKey> key;
    return sentence->empty() && KeyOf(*config, &key, sentence) && from.Unseal(key, sentence);
  }

  bool ReadRings(CheckpointReader& from, std::string* sentence) {
    uint32_t bytes = 0;
    if (!from.Read(std::as_writable_bytes(std::span(&bytes, 1)), sentence)) return false;
    const char* const kOther = "the file's content is of another kind";
    std::vector<std::byte> packed(std::min(bytes, kMaxSuspendedHead));
    if (!from.Read(packed, sentence)) return false;
    *sentence = kOther;
    if (message::Unpack(packed, &head_) != wire::WireResult::kOk ||
        head_.rings.size() != 2 * ticket_.lanes.size()) {
      return false;
    }
    for (const SuspendedRing& ring : head_.rings) {
      *sentence = kOther;
      if (ring.released > ring.written || ring.written - ring.released > kHeldLimit) return false;
      contents_.emplace_back(ring.written - ring.released);
      if (!from.Read(contents_.back(), sentence)) return false;
    }
    return true;
  }

  bool Admit(std::string* sentence) {
    OpeningRefusal refusal;
    admitted_ = table_.Admit(client_.peer, client_.descriptors, &refusal);
    *sentence = refusal.sentence;
    return admitted_;
  }

  bool Place(std::optional<int32_t> device, std::string* sentence) {
    placed_.time_left = client_.time_limit;
    if (table_.pool_ != nullptr) {
      return in_pool_ =
                 table_.pool_->Place(client_.peer, head_.request, device, &placed_, sentence);
    }
    if (device) {
      placed_.devices = {*device};
    } else {
      placed_.bytes = ticket_.bytes;
    }
    return true;
  }

  // The worker's part, and whether the file is the one that the ticket is for. Pieces are checked
  // while the worker takes those before them.
  bool Feed(CheckpointReader& from, std::string* sentence) {
    PieceQueue checked(kCheckedPieces);
    std::thread feeder;
    *sentence = "the system starts no more threads";
    if (!base::StartThread(&feeder, [this, &checked] { FeedPieces(checked); })) return false;
    const bool whole = Check(from, checked, sentence);
    checked.Close(!whole);
    feeder.join();
    stream_ = {};
    return whole;
  }

  bool Check(CheckpointReader& from, PieceQueue& checked, std::string* sentence) {
    std::vector<std::byte> piece;
    while (from.Rest(&piece, sentence)) {
      if (piece.empty()) {
        *sentence = "the file is not the one in which the session was suspended";
        return ticket_.digest == std::string(from.digest().begin(), from.digest().end());
      }
      // A worker that takes no more says why; the rest of the file is looked at first.
      (void)checked.Push(std::move(piece));
    }
    return false;
  }

  void FeedPieces(PieceQueue& checked) {
    std::vector<std::byte> piece;
    while (checked.Pop(&piece)) {
      if (!Send(piece)) return checked.Close(true);
    }
  }

  bool Send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      ssize_t sent = send(stream_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(sent));
    }
    return true;
  }

  // Rings and notes as they were, then the worker runs, then the ticket goes, then clients come.
  bool GoOn(std::string* sentence) {
    const auto& next = new_->session();
    *sentence = "its logs do not fit into the new worker's";
    if (!FillRings(*next)) return false;
    next->formerly = ticket_.numbers;
    next->earlier.ran = earlier_;
    *sentence = table_.check_ ? table_.check_(*next) : "";
    if (!sentence->empty()) return false;
    *sentence = table_.ServeWorker(*next, *next->client().peer.tenant);
    if (!sentence->empty()) return false;
    *sentence = "its new worker ended";
    if (!new_->Go() || next->WorkerIsDead() ||
        !table_.suspended_.Remove(ticket_.session(), sentence)) {
      table_.Abandon(next->id());
      return false;
    }
    admitted_ = claimed_ = false;
    {
      base::MutexLock lock(table_.mutex_);
      table_.Enter(next);
    }
    if (in_pool_) table_.pool_->Opened(placed_);
    in_pool_ = false;
    table_.identities_.Opened(client_.peer);
    *sentence = "session " + std::to_string(ticket_.session()) + " goes on on device " +
                std::to_string(new_->device()) + " and is session " + std::to_string(next->id()) +
                " there";
    Log(LogLevel::kInfo, next->subject(), *sentence);
    counted_.Done(Clock::now() - begun_, table_.LeasedBy(next->id()), {});
    table_.HasBegun(next);
    return true;
  }

  bool FillRings(ServerSession& next) {
    auto notes = LaneNotes::Create();
    if (notes == nullptr || next.lanes() != ticket_.lanes.size()) return false;
    for (uint32_t i = 0; i < next.lanes(); ++i) {
      wire::RingMemory* const rings[] = {&next.lane(i).up_ring(), &next.lane(i).down_ring()};
      for (size_t way = 0; way < 2; ++way) {
        const SuspendedRing& held = head_.rings[2 * i + way];
        const wire::HeldBytes positions{held.bytes, held.written, held.released};
        if (!wire::FillRing(*rings[way], positions, contents_[2 * i + way])) return false;
      }
      notes->Write(i, NoteOf(ticket_.lanes[i]));
    }
    next.GoOn(std::move(notes));
    return true;
  }

  SessionTable& table_;
  CountedMove counted_;
  Clock::time_point begun_;
  std::optional<Successor> new_;
  wire::Descriptor file_, stream_;
  Ticket ticket_;
  ClientDescription client_;
  Clock::duration earlier_{0};  // for which it ran before it was suspended
  SuspendedHead head_;
  std::vector<std::vector<std::byte>> contents_;  // of the rings
  PlacedSession placed_;
  bool claimed_ = false;
  bool admitted_ = false;
  bool in_pool_ = false;  // has a place there, which is not opened yet
};

bool SessionTable::Restore(const std::string& file, std::optional<int32_t> device,
                           std::string* sentence) {
  bool done = Restorer(*this).Run(file, device, sentence);
  if (done) return true;
  *sentence = base::Printable(file) + " is not restored: " + *sentence;
  Log(LogLevel::kWarning, *sentence);
  return false;
}

}  // namespace longwire::daemon
