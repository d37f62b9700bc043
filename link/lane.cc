#include "link/lane.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "link/spare_cores.h"
#include "link/transport/codes.h"
#include "link/transport/log.h"

namespace longwire::link {
namespace {

using Clock = std::chrono::steady_clock;
using transport::Log;
using transport::LogLevel;
using transport::StreamPump;

constexpr std::chrono::milliseconds kConnectPatience{3300};
constexpr std::chrono::milliseconds kAttachPatience{3000};
constexpr std::chrono::milliseconds kRetryPause{100};
constexpr std::chrono::milliseconds kSuspendedPause{500};
constexpr uint32_t kAwakeLimit = 10'000'000;  // microseconds, whatever a server says
// For a link that goes on with a session whose time is almost over.
constexpr std::chrono::milliseconds kLastTry{1000};
// Time to notify the server that the program has gone; otherwise its session waits for a resume.
constexpr std::chrono::milliseconds kLastWords{3000};

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

void LogResumed(uint64_t session, uint32_t lane, Clock::duration away) {
  char text[96];
  std::string named = lane == 0 ? "" : " lane " + std::to_string(lane);
  snprintf(text, sizeof(text), "resumed%s after %.1f s without a connection", named.c_str(),
           std::chrono::duration<double>(away).count());
  Log(LogLevel::kInfo, session, text);
}

}  // namespace

bool Lane::CreateRings(size_t bytes) {
  up_ = wire::RingMemory::Create(bytes);
  down_ = wire::RingMemory::Create(bytes);
  if (up_ == nullptr || down_ == nullptr) return false;
  relay_ = std::make_unique<transport::RelayEnd>(down_, up_);
  return true;
}

bool Lane::AdoptRings(wire::Descriptor up, wire::Descriptor down) {
  up_ = wire::RingMemory::Map(up.Release());
  down_ = wire::RingMemory::Map(down.Release());
  if (up_ == nullptr || down_ == nullptr) return false;
  relay_ = std::make_unique<transport::RelayEnd>(down_, up_);
  relay_->Inherit(record_->epoch(number_));
  adopted_ = true;
  return true;
}

void Lane::Stop(const transport::Closed& closed) {
  base::MutexLock lock(mutex_);
  if (stopped_) return;
  stopped_ = true;
  stopped_at_ = Clock::now();
  stop_ = closed;
  if (pump_ != nullptr) pump_->Stop(stop_);
  if (up_ != nullptr) up_->PokeConsumer();
  stop_changed_.NotifyAll();
}

bool Lane::SleepUnlessStopped(std::chrono::milliseconds time) {
  base::MutexLock lock(mutex_);
  auto deadline = Clock::now() + time;
  while (!stopped_ && stop_changed_.WaitUntil(lock, deadline)) {
  }
  return !stopped_;
}

Clock::time_point Lane::stopped_at() {
  base::MutexLock lock(mutex_);
  return stopped_at_;
}

bool Lane::WaitForBytes() {
  wire::RingConsumer watch(up_);
  while (SleepUnlessStopped(std::chrono::milliseconds(0)) && !up_->closed()) {
    if (watch.WaitBeyond(0, {}, wire::Deadline::max())) return true;
  }
  return false;
}

// Connections that a former link tried count, too.
uint32_t Lane::NextEpoch(uint32_t epoch) {
  if (record_ == nullptr) return epoch + 1;
  epoch = std::max(epoch, record_->epoch(number_)) + 1;
  record_->SetEpoch(number_, epoch);
  return epoch;
}

// A connection that a former link lost stays lost since then.
void Lane::NoteLost(bool lost) {
  if (record_ == nullptr || (lost && record_->lost(number_))) return;
  record_->SetLost(number_, lost ? std::optional(Clock::now()) : std::nullopt);
}

// How long to try for the first connection of this link. The grace begins when a connection breaks;
// it does not cover the session's first connection.
std::chrono::milliseconds Lane::FirstPatience() {
  if (!adopted_) return std::max(right_.resume_grace, kConnectPatience);
  NoteLost(true);
  auto away = Clock::now() - record_->lost(number_).value_or(Clock::now());
  auto rest = right_.resume_grace -
              std::clamp<Clock::duration>(away, Clock::duration(0), right_.resume_grace);
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(rest), kLastTry);
}

bool Lane::Attach() {
  const uint32_t epoch = NextEpoch(0);
  stream_ = StartStream(epoch);
  return stream_ != nullptr && relay_->StartEpoch(epoch, 0, 0) == wire::WireResult::kOk;
}

std::unique_ptr<transport::ClientStream> Lane::StartStream(uint32_t epoch) {
  auto stream = transport::ClientStream::Connect(
      server_.channel, kAttachPatience, number_ == 0 ? transport::kExecute : transport::kTransfer);
  if (stream == nullptr) return nullptr;
  const uint64_t position = abandons_ ? transport::kAbandoned : relay_->received();
  std::string body = transport::EncodeAttach(
      {right_.session, right_.token, position, relay_->consumed(), relay_->kept_bytes(),
       relay_->room_bytes(), number_, server_.packing, transport::kUnderstandsMoves});
  transport::FrameHeader header = {relay_->sent(), relay_->received(), epoch,
                                   transport::kFrameAttach};
  stream->StartWrite(header, BytesOf(body), nullptr);
  if (stream->Wait(Clock::now() + kAttachPatience) == transport::MessageStream::Event::kWritten) {
    return stream;
  }
  stream->End(true);
  return nullptr;
}

bool Lane::TakeAttached(std::span<const std::byte> body) {
  transport::Attached attached;
  if (DecodeAttached(body, &attached) != wire::WireResult::kOk) return false;
  right_.token = attached.token;
  // Before anything is sent: from the first frame on the server takes only this one.
  if (record_ != nullptr) record_->SetToken(number_, right_.token);
  // No flags that were not offered.
  relay_->SetFarEnd(attached.kept_bytes, attached.room_bytes, attached.packing & server_.packing);
  return true;
}

bool Lane::AwaitAttached(transport::ClientStream& stream, uint32_t epoch) {
  comes_again_ = false;
  stream.StartRead();
  auto event = stream.Wait(Clock::now() + kAttachPatience);
  if (event != transport::MessageStream::Event::kRead) return false;
  const transport::ReceivedFrame& frame = stream.received();
  std::string body = ControlBody(frame);
  if (frame.header.flags == transport::kFrameClosed) {
    if (transport::DecodeClosed(BytesOf(body), &closed_) != wire::WireResult::kOk) return false;
    right_.resume_grace = std::chrono::milliseconds(0);  // refused for good
    return false;
  }
  if (frame.header.flags == transport::kFrameMoved) {
    comes_again_ = true;
    TakeMoved(BytesOf(body));
    return false;
  }
  comes_again_ = frame.header.flags == transport::kFrameTerms;
  suspended_ = frame.header.flags == transport::kFrameTerms;
  if (suspended_) WaitWhileSuspended(BytesOf(body));
  if (frame.header.flags != transport::kFrameAttached || !TakeAttached(BytesOf(body))) return false;
  return relay_->StartEpoch(epoch, frame.header.position, frame.header.ack) ==
         wire::WireResult::kOk;
}

// Terms instead of an answer: the session is suspended, and its client waits that much longer.
void Lane::WaitWhileSuspended(std::span<const std::byte> body) {
  transport::Terms terms;
  suspended_ = transport::DecodeTerms(body, &terms) == wire::WireResult::kOk &&
               terms.resume_grace_milliseconds != 0;
  if (!suspended_) return;
  right_.resume_grace = std::chrono::milliseconds(terms.resume_grace_milliseconds);
  if (record_ == nullptr) return;
  record_->SetGrace(right_.resume_grace);
  record_->SetLost(number_, Clock::now());
}

// The session is at another server now.
void Lane::TakeMoved(std::span<const std::byte> body) {
  transport::Moved moved;
  suspended_ = false;
  std::string sentence = "what the server said cannot be read";
  if (whereabouts_ != nullptr && transport::DecodeMoved(body, &moved) == wire::WireResult::kOk &&
      whereabouts_->Move(moves_, moved, &sentence)) {
    return;
  }
  closed_ = {static_cast<uint32_t>(transport::kLaunchFailed),
             "the session has moved to another server, '" + moved.server +
                 "', where nobody can connect: " + sentence};
  right_.resume_grace = std::chrono::milliseconds(0);  // for good
}

// True if the session is elsewhere than it was for this lane until now.
bool Lane::Follow() {
  if (whereabouts_ == nullptr) return false;
  const Whereabouts::Place place = whereabouts_->Get();
  if (place.moves == moves_) return false;
  moves_ = place.moves;
  right_.session = place.session;
  server_ = whereabouts_->Connect();
  closed_ = {static_cast<uint32_t>(transport::kLaunchFailed),
             "the session has moved to " + place.server + ", and there is no connection to it"};
  Log(LogLevel::kInfo, right_.session,
      "has moved to " + place.server + (number_ == 0 ? "" : ", lane " + std::to_string(number_)));
  if (followed_) followed_();
  return true;
}

bool Lane::Connect(std::chrono::milliseconds patience) {
  auto deadline = Clock::now() + patience;
  uint32_t epoch = relay_->epoch();
  while (Clock::now() < deadline && !up_->closed()) {
    if (Follow()) deadline = std::max(deadline, Clock::now() + right_.resume_grace);
    if (WaitUntilReady(server_, std::min(deadline, Clock::now() + kConnectPatience), nullptr)) {
      epoch = NextEpoch(epoch);
      stream_ = StartStream(epoch);
      if (stream_ != nullptr && AwaitAttached(*stream_, epoch)) {
        NoteLost(false);
        return true;
      }
      if (stream_ != nullptr) stream_->End(true);
      if (right_.resume_grace.count() == 0 || (abandons_ && !comes_again_)) return false;
      if (suspended_) deadline = Clock::now() + right_.resume_grace;
    }
    if (SleepUnlessStopped(suspended_ ? kSuspendedPause : kRetryPause)) continue;
    if (number_ != 0) return false;
    abandons_ = suspended_;
    deadline = std::min(deadline, stopped_at() + kLastWords);
    std::this_thread::sleep_for(kRetryPause);
  }
  return false;
}

StreamPump::Outcome Lane::PumpOnce() {
  // Lanes move large messages: a spinning thread would take the permit of one that waits for an
  // answer.
  auto spinning = number_ == 0 ? StreamPump::Spinning::kYes : StreamPump::Spinning::kNo;
  StreamPump pump(*stream_, *relay_, counters_, spinning);
  pump.set_on_attached([this](std::span<const std::byte> body) { return TakeAttached(body); });
  pump.set_on_terms([this](const transport::Terms& terms) {
    right_.resume_grace = std::chrono::milliseconds(terms.resume_grace_milliseconds);
    if (record_ != nullptr) record_->SetGrace(right_.resume_grace);
    relay_->ChangePacking(terms.packing & server_.packing);
    awake_allowed_ = uint64_t{std::min(terms.awake_microseconds, kAwakeLimit)} * 1000;
  });
  if (number_ == 0) {
    // The link asks: a daemon has many sessions, and sleeps for those that may not stay awake.
    pump.StayAwake(&awake_allowed_, &awake_spent_, StreamPump::Warmth::kAsks, HasSpareCores);
  }
  {
    base::MutexLock lock(mutex_);
    pump_ = &pump;
    if (stopped_) pump.Stop(stop_);
  }
  StreamPump::Outcome outcome = pump.Run();
  {
    base::MutexLock lock(mutex_);
    pump_ = nullptr;
  }
  if (outcome != StreamPump::Outcome::kBroken) closed_ = pump.closed();
  std::string said = stream_->End(outcome == StreamPump::Outcome::kViolation);
  if (outcome == StreamPump::Outcome::kBroken && !said.empty()) closed_.sentence = said;
  return outcome;
}

bool Lane::Relay() {
  closed_ = {static_cast<uint32_t>(transport::kLaunchFailed),
             "the connection to " + server_.server + " was lost"};
  if (stream_ == nullptr && !Connect(FirstPatience())) return false;
  while (true) {
    if (PumpOnce() != StreamPump::Outcome::kBroken) return true;
    Log(LogLevel::kWarning, right_.session, "connection lost: " + closed_.sentence);
    auto lost_at = Clock::now();
    NoteLost(true);
    closed_ = {static_cast<uint32_t>(transport::kLaunchFailed),
               "the connection to " + server_.server + " was lost"};
    bool goes_on = number_ == 0 || SleepUnlessStopped(std::chrono::milliseconds(0));
    if (!goes_on || !Connect(right_.resume_grace)) return false;
    LogResumed(right_.session, number_, Clock::now() - lost_at);
  }
}

void Lane::CloseRings(uint32_t code) {
  up_->Close(code);
  down_->Close(code);
}

}  // namespace longwire::link
