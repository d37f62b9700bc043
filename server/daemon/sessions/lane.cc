#include "server/daemon/sessions/lane.h"

#include <algorithm>
#include <cstdio>

#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "link/transport/packing_choice.h"
#include "wire/rings/copy_ring.h"

namespace longwire::daemon {
namespace {

using transport::StreamPump;

constexpr std::chrono::milliseconds kAttachPatience{3000};

void LogResumed(const transport::Attach& attach, Clock::duration away) {
  char text[96];
  std::string lane = attach.lane == 0 ? "" : " lane " + std::to_string(attach.lane);
  snprintf(text, sizeof(text), "resumed%s after %.1f s without a connection", lane.c_str(),
           std::chrono::duration<double>(away).count());
  transport::Log(transport::LogLevel::kInfo, attach.session, text);
}

}  // namespace

bool Lane::MapRings(wire::Descriptor up, wire::Descriptor down, bool relayed) {
  relayed_ = relayed;
  up_ = wire::RingMemory::Map(up.Release());
  down_ = wire::RingMemory::Map(down.Release());
  if (up_ == nullptr || down_ == nullptr) return false;
  if (relayed) relay_ = std::make_unique<transport::RelayEnd>(up_, down_);
  return true;
}

void Lane::SetToken(const transport::Token& token) {
  base::MutexLock lock(mutex_);
  note_.token = HashToken(token);
  WriteNote();
}

void Lane::WriteNote() {
  if (notes_ != nullptr) notes_->Write(index_, note_);
}

void Lane::SetNotes(std::shared_ptr<LaneNotes> notes, uint32_t index, bool inherited) {
  base::MutexLock lock(mutex_);
  notes_ = std::move(notes);
  index_ = index;
  if (!inherited || relay_ == nullptr) return WriteNote();
  note_ = notes_->Read(index);
  // The client has sent something, so it had the answer.
  if (!note_.first_attach && relay_->received() != note_.received) note_.previous_good = false;
  relay_->Inherit(note_.epoch);
  counters_.bytes_in = relay_->received();
  counters_.bytes_out = relay_->sent();
}

bool Lane::TokenFits(const transport::Token& token) {
  base::MutexLock lock(mutex_);
  // The last answer with a new token may have been lost with its connection. A client that resumes
  // sends nothing before it has the answer; on the first attach it does not wait.
  bool unheard =
      note_.previous_good && (note_.first_attach || messages_at_attach_ == counters_.messages_in);
  bool current = TokenMatches(token, note_.token);
  bool previous = TokenMatches(token, note_.previous_token);
  return current || (previous && unheard);
}

Lane::TakenOver Lane::TakeOver(uint32_t epoch, const transport::Attach& attach, bool compression) {
  base::MutexLock lock(mutex_);
  if (ended_ || left_ || relay_ == nullptr) return TakenOver::kNo;
  if (paused_) return TakenOver::kPaused;
  if (epoch <= relay_->epoch()) return TakenOver::kOlder;
  // The older connection may not have reached its pump yet: it is stopped when it does.
  ++waiting_;
  if (pump_ != nullptr) pump_->Abandon();
  auto deadline = Clock::now() + kAttachPatience;
  while (!ended_ && !left_ && !paused_ && (pump_ != nullptr || attaching_) &&
         changed_.WaitUntil(lock, deadline)) {
  }
  --waiting_;
  if (paused_) {
    changed_.NotifyAll();
    return TakenOver::kPaused;
  }
  if (ended_ || left_ || pump_ != nullptr || attaching_) return TakenOver::kNo;
  if (epoch <= relay_->epoch()) return TakenOver::kOlder;
  bool first = relay_->epoch() == 0;
  if (relay_->StartEpoch(epoch, attach.resume_position, attach.consumed) != wire::WireResult::kOk) {
    return TakenOver::kNo;
  }
  relay_->SetFarEnd(attach.kept_bytes, attach.room_bytes,
                    transport::AgreedPacking(attach.packing, compression));
  wanted_packing_ = attach.packing;
  understands_terms_ = attach.understands_terms != 0;
  link_follows_ = attach.understands_terms >= transport::kUnderstandsMoves;
  attaching_ = true;
  note_.first_attach = first;
  note_.epoch = epoch;
  note_.received = relay_->received();
  WriteNote();
  detached_since_ = Clock::time_point::max();
  messages_at_attach_ = counters_.messages_in.load();
  return TakenOver::kYes;
}

bool Lane::SendAttached(transport::ServerStream& stream, const transport::Token& shown) {
  transport::Token token{};
  if (!NewToken(&token)) return false;
  {
    base::MutexLock lock(mutex_);
    note_.previous_token = HashToken(shown);
    note_.previous_good = true;
    note_.token = HashToken(token);
    WriteNote();
  }
  transport::FrameHeader header = relay_->ControlHeader(transport::kFrameAttached);
  header.position = relay_->received();
  std::string body = transport::EncodeAttached(
      {token, relay_->kept_bytes(), relay_->room_bytes(), relay_->sends_packed()});
  stream.StartWrite(header, std::as_bytes(std::span(body)), nullptr);
  return stream.Wait(Clock::now() + kAttachPatience) == transport::MessageStream::Event::kWritten;
}

std::optional<StreamPump::Outcome> Lane::Relay(transport::ServerStream& stream,
                                               const transport::Attach& attach, uint32_t epoch,
                                               bool compression, transport::Closed* closed) {
  // An older connection may not have been noticed as broken.
  Clock::time_point detached = std::min(detached_since(), Clock::now());
  TakenOver taken = TakeOver(epoch, attach, compression);
  if (taken == TakenOver::kOlder) return std::nullopt;
  if (taken == TakenOver::kPaused) return StreamPump::Outcome::kBroken;  // it comes again
  if (taken == TakenOver::kNo) {
    *closed = {static_cast<uint32_t>(transport::kLaunchFailed),
               "the session cannot be continued from the position that the client sent"};
    return StreamPump::Outcome::kViolation;
  }
  StreamPump::Outcome outcome = StreamPump::Outcome::kBroken;
  if (SendAttached(stream, attach.token)) {
    if (!IsFirstAttach()) LogResumed(attach, Clock::now() - detached);
    // Lanes move large messages: a spinning thread would take the permit of one that waits for an
    // answer.
    StreamPump pump(stream, *relay_, counters_,
                    attach.lane == 0 ? StreamPump::Spinning::kYes : StreamPump::Spinning::kNo);
    if (awake_ != nullptr) {
      pump.StayAwake(&awake_->allowed, &awake_->spent, StreamPump::Warmth::kAnswers);
    }
    {
      base::MutexLock lock(mutex_);
      pump_ = &pump;
      if (ended_) pump.Stop(end_);
      if (waiting_ != 0 || left_ || paused_) pump.Abandon();
      SendTerms();
    }
    outcome = pump.Run();
    *closed = pump.closed();
    base::MutexLock lock(mutex_);
    pump_ = nullptr;
  }
  base::MutexLock lock(mutex_);
  attaching_ = false;
  detached_since_ = Clock::now();
  changed_.NotifyAll();
  return outcome;
}

bool Lane::IsFirstAttach() {
  base::MutexLock lock(mutex_);
  return note_.first_attach;
}

void Lane::SetTerms(std::chrono::milliseconds resume_grace, bool compression) {
  base::MutexLock lock(mutex_);
  terms_ = {resume_grace, compression};
  SendTerms();
}

void Lane::SendTerms() {
  if (!terms_ || pump_ == nullptr || !understands_terms_) return;
  const uint64_t awake = awake_ == nullptr ? 0 : awake_->wanted.load();
  pump_->ChangeTerms({static_cast<uint32_t>(terms_->resume_grace.count()),
                      transport::AgreedPacking(wanted_packing_, terms_->compression),
                      static_cast<uint32_t>(awake / 1000)});
}

void Lane::End(const transport::Closed& closed) {
  base::MutexLock lock(mutex_);
  if (ended_) return;
  ended_ = true;
  end_ = closed;
  // The rest of the down log, with the worker's last records, is still sent.
  if (pump_ != nullptr) pump_->Stop(closed);
  up_->Close(closed.code);
  down_->Close(closed.code);
  changed_.NotifyAll();
}

void Lane::Leave() {
  base::MutexLock lock(mutex_);
  left_ = true;
  if (pump_ != nullptr) pump_->Abandon();
  changed_.NotifyAll();
}

bool Lane::Pause() {
  base::MutexLock lock(mutex_);
  paused_ = true;
  if (pump_ != nullptr) pump_->Abandon();
  changed_.NotifyAll();
  auto deadline = Clock::now() + kAttachPatience;
  while ((pump_ != nullptr || attaching_ || waiting_ != 0) && changed_.WaitUntil(lock, deadline)) {
  }
  return pump_ == nullptr && !attaching_ && waiting_ == 0;
}

void Lane::WaitNoLonger() {
  base::MutexLock lock(mutex_);
  const bool away = detached_since_ != Clock::time_point::max();
  if (away) detached_since_ = std::min(detached_since_, Clock::now());
}

void Lane::Resume(std::chrono::milliseconds longer) {
  base::MutexLock lock(mutex_);
  paused_ = false;
  // Its client was kept away: it has all its time from now on.
  if (detached_since_ != Clock::time_point::max()) detached_since_ = Clock::now() + longer;
}

bool Lane::GoOnFrom(Lane& other) {
  std::shared_ptr<LaneNotes> notes;
  uint32_t index = 0;
  {
    base::MutexLock lock(other.mutex_);
    notes = other.notes_;
    index = other.index_;
    if (other.ended_ || notes == nullptr) return false;
  }
  if (!wire::CopyRing(*other.up_, *up_) || !wire::CopyRing(*other.down_, *down_)) return false;
  GoOn(std::move(notes), index);
  set_link_follows(other.link_follows());
  return true;
}

void Lane::GoOn(std::shared_ptr<LaneNotes> notes, uint32_t index) {
  relay_ = std::make_unique<transport::RelayEnd>(up_, down_);
  SetNotes(std::move(notes), index, true);
  base::MutexLock lock(mutex_);
  detached_since_ = Clock::now();
}

Clock::time_point Lane::detached_since() {
  base::MutexLock lock(mutex_);
  return relayed_ ? detached_since_ : Clock::time_point::max();
}

bool Lane::link_follows() {
  base::MutexLock lock(mutex_);
  return link_follows_;
}

void Lane::set_link_follows(bool follows) {
  base::MutexLock lock(mutex_);
  link_follows_ = follows;
}

uint32_t Lane::epoch() {
  base::MutexLock lock(mutex_);
  return relay_ == nullptr ? 0 : relay_->epoch();
}

uint64_t Lane::bytes_up() const {
  return relayed_ ? counters_.bytes_in.load() : wire::RingProducer(up_).written();
}

uint64_t Lane::bytes_down() const {
  return relayed_ ? counters_.bytes_out.load() : wire::RingProducer(down_).written();
}

}  // namespace longwire::daemon
