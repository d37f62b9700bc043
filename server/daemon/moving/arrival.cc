#include "server/daemon/moving/arrival.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/printable.h"
#include "base/reason.h"
#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/admission/descriptor_plan.h"
#include "server/config/config.h"
#include "server/daemon/moving/step_point.h"
#include "server/daemon/moving/suspended_head.h"
#include "wire/rings/copy_ring.h"

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;
using transport::Log;
using transport::LogLevel;

// A session whose beginning is in doubt stands still for so long: as one whose client is away, and
// long enough for the other server's daemon to be restarted.
constexpr milliseconds kLeastPatience{5'000};

// From the end of that until a link that waits there comes here.
constexpr milliseconds kForwardPatience{10'000};

const char* const kOtherLogs = "what the other server says of its logs is of another kind";

TicketLane ToldLane(const transport::HandOverLane& told) {
  return {told.token(), told.previous_token(), told.received(),
          told.epoch(), told.previous_good(),  told.first_attach()};
}

}  // namespace

SessionTable::Arrival::Arrival(SessionTable& table, transport::HandOverOffer offer, Peer client,
                               std::string from)
    : table_(table),
      offer_(std::move(offer)),
      client_(std::move(client)),
      from_(std::move(from)),
      new_(std::in_place, table) {}

SessionTable::Arrival::~Arrival() {
  (void)Discard();
  if (listed_) {
    base::MutexLock lock(table_.mutex_);
    table_.arriving_.Remove(offer_.move());
  }
  if (feed_ != nullptr) feed_->End();
  new_.reset();
  if (in_pool_) table_.pool_->NotOpened(placed_);
  if (admitted_) table_.Release(client_, descriptors_);
}

bool SessionTable::Arrival::Start(std::string* sentence) {
  wire::OpenRequest opening;
  wire::Reader reader(std::as_bytes(std::span(offer_.request())));
  *sentence = "the session's opening cannot be read";
  if (opening.Decode(reader) != wire::WireResult::kOk) return false;
  ClientDescription description;
  description.program = base::Printable(opening.program);
  description.peer = client_;
  *sentence = BoundToItsPlace(description, *table_.live_.Get());
  if (!sentence->empty()) return false;
  *sentence =
      "that is the server itself, where the session is; longwire admin migrate SESSION DEVICE "
      "moves it to another of its devices";
  if (table_.IsGiven(offer_.move())) return false;
  descriptors_ = admission::DescriptorsOfSession(std::min(opening.lanes, wire::kMaxLanes), false);
  OpeningRefusal refusal;
  admitted_ = table_.Admit(client_, descriptors_, &refusal);
  *sentence = refusal.sentence;
  if (!admitted_) return false;
  Pair stream;
  *sentence = "longwired has no sockets left: " + base::Reason(errno);
  if (!MakePair(SOCK_STREAM, &stream)) return false;
  feed_ = std::make_shared<ContentFeed>(std::move(stream.ours));
  placed_.time_left = offer_.time_left();
  if (!Place(sentence) ||
      !new_->Start(offer_.request(), client_, &placed_, std::move(stream.theirs), sentence)) {
    return false;
  }
  accepted_ = Clock::now();
  base::MutexLock lock(table_.mutex_);
  listed_ = table_.arriving_.Add(offer_.move(), from_, feed_);
  return true;
}

bool SessionTable::Arrival::Place(std::string* sentence) {
  std::optional<int32_t> device;
  if (offer_.has_device()) device = offer_.device();
  if (table_.pool_ != nullptr) {
    *sentence = "that server is in a pool, whose sessions have their places from the pool";
    if (!offer_.has_place()) return false;
    const transport::HandOverPlace& told = offer_.place();
    return in_pool_ = table_.pool_->TakePlace(
               client_,
               {"", "", told.number(), told.ticket(), told.from_host(), told.from_number()}, device,
               &placed_, sentence);
  }
  *sentence = "that server is not in the pool from which the session comes";
  if (offer_.has_place()) return false;
  if (device) {
    placed_.devices = {*device};
  } else {
    placed_.bytes = offer_.bytes();
  }
  return true;
}

// The other server has measured what is left after this one had said that a worker waits. Counted
// from before that, it ends here when it would have ended there, or earlier, however long messages
// take.
bool SessionTable::Arrival::TakeLimit(milliseconds left, std::string* sentence) {
  if (offer_.time_left() == 0) return true;
  ServerSession& next = *new_->session();
  const auto limit = std::chrono::floor<std::chrono::seconds>(accepted_ - next.opened() + left);
  *sentence = "its time limit is over";
  if (left.count() == 0 || limit.count() <= 0) return false;
  next.SetTimeLimit(static_cast<uint64_t>(limit.count()));
  return true;
}

bool SessionTable::Arrival::IsRebuilt(std::string* sentence) {
  feed_->End();
  return new_->IsRebuilt(sentence);
}

bool SessionTable::Arrival::TakeRings(const transport::HandOverRings& rings,
                                      std::string* sentence) {
  rings_ = rings;
  ServerSession& next = *new_->session();
  if (!TakeLimit(milliseconds(rings_.time_left_milliseconds()), sentence)) return false;
  *sentence = kOtherLogs;
  if (rings_.lanes_size() != static_cast<int>(next.lanes()) ||
      rings_.rings_size() != 2 * rings_.lanes_size()) {
    return false;
  }
  for (uint32_t i = 0; i < next.lanes(); ++i) {
    const size_t sizes[] = {next.lane(i).up_ring().bytes(), next.lane(i).down_ring().bytes()};
    for (size_t way = 0; way < 2; ++way) {
      const transport::HandOverRing& ring = rings_.rings(static_cast<int>(2 * i + way));
      if (ring.bytes() != sizes[way] || ring.released() > ring.written() ||
          ring.written() - ring.released() > sizes[way]) {
        return false;
      }
      contents_.emplace_back().reserve(ring.written() - ring.released());
    }
  }
  return true;
}

bool SessionTable::Arrival::TakeRingBytes(const std::string& bytes, std::string* sentence) {
  auto left = std::as_bytes(std::span(bytes));
  while (filled_ < contents_.size() && !left.empty()) {
    const transport::HandOverRing& ring = rings_.rings(static_cast<int>(filled_));
    std::vector<std::byte>& content = contents_[filled_];
    const size_t lacks = ring.written() - ring.released() - content.size();
    const auto part = left.first(std::min(lacks, left.size()));
    content.insert(content.end(), part.begin(), part.end());
    left = left.subspan(part.size());
    if (part.size() == lacks) ++filled_;
  }
  *sentence = kOtherLogs;
  return left.empty();
}

bool SessionTable::Arrival::FillRings() {
  ServerSession& next = *new_->session();
  auto notes = LaneNotes::Create();
  if (notes == nullptr || contents_.size() != 2 * size_t{next.lanes()}) return false;
  for (uint32_t i = 0; i < next.lanes(); ++i) {
    wire::RingMemory* const rings[] = {&next.lane(i).up_ring(), &next.lane(i).down_ring()};
    for (size_t way = 0; way < 2; ++way) {
      const transport::HandOverRing& ring = rings_.rings(static_cast<int>(2 * i + way));
      const wire::HeldBytes held{ring.bytes(), ring.written(), ring.released()};
      const std::vector<std::byte>& content = contents_[2 * i + way];
      if (content.size() != ring.written() - ring.released() ||
          !wire::FillRing(*rings[way], held, content)) {
        return false;
      }
    }
    notes->Write(i, NoteOf(ToldLane(rings_.lanes(static_cast<int>(i)))));
  }
  next.GoOn(std::move(notes));
  next.lane(0).set_link_follows(true);  // else the other server would have kept it
  contents_.clear();
  return true;
}

bool SessionTable::Arrival::Prepare(std::shared_ptr<Arrival> self, std::string* sentence) {
  const auto& next = new_->session();
  *sentence = "its logs do not fit into the new worker's";
  if (!FillRings()) return false;
  *sentence = table_.check_ ? table_.check_(*next) : "";
  if (!sentence->empty()) return false;
  *sentence = table_.ServeWorker(*next, *next->client().peer.tenant);
  if (!sentence->empty()) return false;
  *sentence = "its new worker ended";
  if (next->WorkerIsDead()) return false;
  patience_ = std::max(config::ResumeGrace(*table_.live_.Get()), kLeastPatience);
  deadline_ = Clock::now() + patience_;
  *sentence = "the server shuts down";
  {
    base::MutexLock lock(table_.mutex_);
    if (table_.ending_) return false;
    // A number of another server's choice: the one that was there first stays.
    *sentence = "a move with this number is here already";
    if (!table_.arrivals_.try_emplace(offer_.move(), std::move(self)).second) return false;
  }
  table_.Unsettled();
  return true;
}

bool SessionTable::Arrival::Begin(std::string* sentence) {
  {
    base::MutexLock lock(mutex_);
    if (state_ == State::kBegun) return true;
    *sentence = "its time was over";
    if (state_ == State::kDiscarded) return false;
    if (!BeginOnce(sentence)) {
      state_ = State::kDiscarded;
      return false;
    }
    state_ = State::kBegun;
  }
  const auto& next = new_->session();
  Log(LogLevel::kInfo, next->subject(),
      "has come from another server, where it was session " + std::to_string(offer_.session()) +
          ", for '" + client_.identity + "' of tenant '" + client_.tenant->name() +
          "', and goes on on device " + std::to_string(device()) +
          (feed_->is_wide() ? "; its memory came by two connections" : ""));
  table_.HasBegun(next);
  return true;
}

// First it is noted: whoever asks the next longwired hears that it has begun.
bool SessionTable::Arrival::BeginOnce(std::string* sentence) {
  const auto& next = new_->session();
  const ComeSession come{1, offer_.move(), next->id(), static_cast<uint64_t>(time(nullptr))};
  if (!table_.move_notes_.AddCome(come, sentence)) return false;
  AtStep("there-noted");
  admitted_ = false;
  // Its client has all its time from now on, and before that it may be kept at the other server, if
  // that does not hear that the session has begun.
  next->Resume(patience_ + kForwardPatience);
  const bool goes = new_->Go();
  {
    base::MutexLock lock(table_.mutex_);
    table_.Enter(next);
  }
  if (in_pool_) table_.pool_->Opened(placed_);
  in_pool_ = false;
  table_.identities_.Opened(client_);
  if (!goes) {
    table_.End(next, {static_cast<uint32_t>(transport::kLaunchFailed),
                      "its new worker ended at the switch"});
  }
  return true;
}

bool SessionTable::Arrival::Discard() {
  base::MutexLock lock(mutex_);
  if (state_ == State::kBegun) return false;
  state_ = State::kDiscarded;
  return true;
}

std::shared_ptr<ContentFeed> SessionTable::FeedOf(const std::string& move,
                                                  const std::string& from) {
  base::MutexLock lock(mutex_);
  return arriving_.Find(move, from);
}

bool SessionTable::EndArrival(const std::string& move, ArrivalEnd end, uint64_t* session,
                              std::string* sentence) {
  std::shared_ptr<Arrival> arrival;
  {
    base::MutexLock lock(mutex_);
    auto found = arrivals_.find(move);
    if (found != arrivals_.end()) arrival = found->second;
  }
  bool done = false;
  *sentence =
      "there is no such session that waits to begin; its time was over, or longwired there "
      "was restarted";
  if (end == ArrivalEnd::kForget) {
    // The other server sends its client here.
    auto come = move_notes_.FindCome(move);
    auto begun = come ? Find(come->session) : nullptr;
    if (begun != nullptr) begun->lane(0).WaitNoLonger();
    move_notes_.RemoveCome(move);
    done = true;
  } else if (end == ArrivalEnd::kDiscard) {
    done = arrival != nullptr && arrival->Discard();
  } else if (arrival != nullptr) {
    done = arrival->Begin(sentence);
    *session = arrival->session();
  } else if (auto come = move_notes_.FindCome(move)) {
    *session = come->session;
    done = true;
  }
  base::MutexLock lock(mutex_);
  if (arrival != nullptr) arrivals_.erase(move);
  return done;
}

void SessionTable::DropArrivals() {
  std::map<std::string, std::shared_ptr<Arrival>> arrivals;
  base::MutexLock lock(mutex_);
  arrivals.swap(arrivals_);
  lock.Unlock();
  arrivals.clear();
}

// False if none is left that waits.
bool SessionTable::EndLateArrivals() {
  std::vector<std::shared_ptr<Arrival>> late;
  base::MutexLock lock(mutex_);
  for (auto one = arrivals_.begin(); one != arrivals_.end();) {
    const bool is_late = one->second->IsLate();
    if (is_late) late.push_back(one->second);
    one = is_late ? arrivals_.erase(one) : std::next(one);
  }
  const bool more = !arrivals_.empty();
  lock.Unlock();
  for (const auto& arrival : late) {
    if (!arrival->Discard()) continue;
    Log(LogLevel::kWarning, arrival->session(),
        "was prepared for its move to this server, which did not hear in time that it begins here: "
        "it is thrown away");
  }
  return more;
}

}  // namespace longwire::daemon
