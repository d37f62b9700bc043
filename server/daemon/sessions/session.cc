#include "server/daemon/sessions/session.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "base/poll_set.h"
#include "base/reason.h"
#include "server/protocol/message.h"
#include "wire/guards.h"
#include "wire/lost_descriptors.h"

namespace longwire::daemon {
namespace {

constexpr std::chrono::seconds kIntroducePatience{60};
constexpr std::chrono::milliseconds kCancelLook{50};

}  // namespace

ServerSession::ServerSession(uint64_t id, ClientDescription client, StartedWorker worker,
                             Clock::time_point opened)
    : id_(id),
      client_(std::move(client)),
      worker_(std::move(worker)),
      opened_(opened),
      proof_(client_.peer.proof) {}

bool ServerSession::AddLane(wire::Descriptor up, wire::Descriptor down) {
  auto lane = std::make_unique<Lane>();
  if (!lane->MapRings(std::move(up), std::move(down), !client_.local())) return false;
  lanes_.push_back(std::move(lane));
  return true;
}

bool ServerSession::MapRings() { return AddLane(std::move(worker_.up), std::move(worker_.down)); }

bool ServerSession::MakeNotes() {
  if (client_.local()) return true;
  notes_ = LaneNotes::Create();
  if (notes_ == nullptr) return false;
  for (uint32_t i = 0; i < lanes(); ++i) lanes_[i]->SetNotes(notes_, i, false);
  return true;
}

bool ServerSession::Inherit(std::vector<wire::Descriptor> rings, wire::Descriptor segment,
                            std::shared_ptr<LaneNotes> notes) {
  for (size_t i = 0; i + 1 < rings.size(); i += 2) {
    if (!AddLane(std::move(rings[i]), std::move(rings[i + 1]))) return false;
  }
  segment_ = std::move(segment);
  notes_ = std::move(notes);
  for (uint32_t i = 0; notes_ != nullptr && i < lanes(); ++i) {
    lanes_[i]->SetNotes(notes_, i, true);
  }
  return true;
}

bool ServerSession::TakeReply(wire::Message& message, wire::OpenReply* reply) {
  wire::Reader reader(message.bytes);
  if (reply->Decode(reader) != wire::WireResult::kOk) return false;
  size_t rings = 2 * size_t{reply->lanes}, segments = reply->segment_bytes != 0 ? 1 : 0;
  if (message.descriptors.size() != rings + segments) return false;
  if (wire::LostDescriptors(message)) return false;
  if (segments != 0) segment_ = std::move(message.descriptors.back());
  for (size_t i = 0; i < rings; i += 2) {
    if (!AddLane(std::move(message.descriptors[i]), std::move(message.descriptors[i + 1]))) {
      return false;
    }
  }
  return true;
}

bool ServerSession::Introduce(std::span<const std::byte> request,
                              const std::atomic<bool>& cancelled, wire::OpenReply* reply,
                              std::string* sentence) {
  base::AssertNoRankedLockHeld();
  std::vector<int> page;
  if (gates_ != nullptr) page = {gates_->memory_descriptor(), gates_->bell_descriptor()};
  bool taken = wire::SendMessage(worker_.control.get(), request, page);
  if (taken && !rules_.empty()) taken = wire::SendMessage(worker_.control.get(), rules_);
  if (taken && statistics_ != nullptr) {
    const int memory[] = {statistics_->descriptor()};
    taken = wire::SendMessage(worker_.control.get(), message::Pack(statistics::Terms{}), memory);
    statistics_->CloseDescriptor();
    statistics_ = nullptr;
  }
  if (!taken) {
    *sentence = "the worker did not take the session";
    return false;
  }
  auto deadline = Clock::now() + kIntroducePatience;
  while (Clock::now() < deadline) {
    bool closed = false;
    auto message = wire::ReceiveMessage(worker_.control.get(), kCancelLook, &closed);
    if (message) {
      if (TakeReply(*message, reply)) return true;
      *sentence = wire::LostDescriptors(*message)
                      ? "longwired cannot take the worker's rings: " + base::Reason(EMFILE)
                      : "the worker gave a broken answer, or its rings cannot be mapped: " +
                            base::Reason(errno);
      return false;
    }
    if (closed) {
      *sentence = "its worker ended while it opened the session; longwire-warden's log says why";
      return false;
    }
    if (cancelled.load()) {
      *sentence = "the client went away while the session was opened";
      return false;
    }
  }
  *sentence = "the worker did not answer";
  return false;
}

bool ServerSession::WorkerIsDead() const {
  return base::PollOne(worker_.pidfd.get(), POLLIN, std::chrono::milliseconds(0)) != 0;
}

wire::Descriptor ServerSession::ControlSocket() const {
  return wire::Descriptor(fcntl(worker_.control.get(), F_DUPFD_CLOEXEC, 0));
}

bool ServerSession::MayAttach(uint32_t lane, const transport::Token& token, const Peer& peer) {
  bool same = peer.identity == client_.peer.identity && peer.tenant != nullptr &&
              peer.tenant->name() == client_.peer.tenant->name();
  if (!same && !wire::GuardIsOff("identity")) return false;
  return lane < lanes_.size() && lanes_[lane]->TokenFits(token);
}

Proof ServerSession::proof() const {
  base::MutexLock lock(mutex_);
  return proof_;
}

void ServerSession::SetProof(const Proof& proof) {
  base::MutexLock lock(mutex_);
  proof_ = proof;
}

bool ServerSession::End(const transport::Closed& closed) {
  base::MutexLock lock(mutex_);
  if (ended_) return false;
  ended_ = true;
  end_ = closed;
  if (on_end_) on_end_(closed);
  for (auto& lane : lanes_) lane->End(closed);
  return true;
}

void ServerSession::SetMoves(std::string moves) {
  base::MutexLock lock(mutex_);
  moves_ = std::move(moves);
}

std::string ServerSession::moves() const {
  base::MutexLock lock(mutex_);
  return moves_;
}

void ServerSession::EndMove() {
  SetMoves("");
  moving_ = false;
}

bool ServerSession::Pause() {
  held_ = true;
  bool quiet = true;
  for (auto& lane : lanes_) quiet &= lane->Pause();
  return quiet;
}

void ServerSession::Resume(std::chrono::milliseconds longer) {
  for (auto& lane : lanes_) lane->Resume(longer);
  held_ = false;
}

bool ServerSession::GoOnFrom(ServerSession& other) {
  if (lanes() != other.lanes()) return false;
  for (uint32_t i = 0; i < lanes(); ++i) {
    if (!lane(i).GoOnFrom(other.lane(i))) return false;
  }
  notes_ = other.notes_;
  SetProof(other.proof());
  formerly = other.formerly;
  formerly.push_back(other.id());
  earlier.ran = other.earlier.ran + (opened_ - other.opened_);
  NoteBytes();
  return true;
}

std::optional<transport::Closed> ServerSession::end() const {
  base::MutexLock lock(mutex_);
  return end_;
}

bool ServerSession::Retire() {
  base::MutexLock lock(mutex_);
  return !std::exchange(ended_, true);
}

void ServerSession::Return() {
  base::MutexLock lock(mutex_);
  ended_ = false;
}

void ServerSession::GoOn(std::shared_ptr<LaneNotes> notes) {
  notes_ = std::move(notes);
  for (uint32_t i = 0; i < lanes(); ++i) lane(i).GoOn(notes_, i);
  NoteBytes();
}

// The logs' positions count them from the session's first worker on.
void ServerSession::NoteBytes() {
  earlier.bytes_up = earlier.bytes_down = 0;
  earlier.bytes_up = bytes_up();
  earlier.bytes_down = bytes_down();
}

bool ServerSession::WorkerEnds(std::chrono::milliseconds patience) const {
  return base::PollOne(worker_.pidfd.get(), POLLIN, patience) != 0;
}

void ServerSession::Leave() {
  for (auto& lane : lanes_) lane->Leave();
}

void ServerSession::set_on_end(std::function<void(const transport::Closed&)> on_end) {
  base::MutexLock lock(mutex_);
  on_end_ = std::move(on_end);
  if (ended_ && on_end_) on_end_(end_.value_or(transport::Closed()));
}

std::vector<int> ServerSession::shared_descriptors() const {
  std::vector<int> all;
  for (const auto& lane : lanes_) {
    all.push_back(lane->up_descriptor());
    all.push_back(lane->down_descriptor());
  }
  if (segment_.valid()) all.push_back(segment_.get());
  return all;
}

template <class Count>
uint64_t ServerSession::Sum(Count count) const {
  uint64_t sum = 0;
  for (const auto& lane : lanes_) sum += count(*lane);
  return sum;
}

uint64_t ServerSession::bytes_saved() const {
  return Sum([](const Lane& lane) { return lane.counters().saved.load(); });
}

uint64_t ServerSession::bytes_up() const {
  return Sum([](const Lane& lane) { return lane.bytes_up(); }) - earlier.bytes_up;
}

uint64_t ServerSession::bytes_down() const {
  return Sum([](const Lane& lane) { return lane.bytes_down(); }) - earlier.bytes_down;
}

uint64_t ServerSession::messages_up() const {
  return Sum([](const Lane& lane) { return lane.counters().messages_in.load(); });
}

uint64_t ServerSession::messages_down() const {
  return Sum([](const Lane& lane) { return lane.counters().messages_out.load(); });
}

}  // namespace longwire::daemon
