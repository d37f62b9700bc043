#include "server/daemon/session.h"

#include <poll.h>

#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "wire/guards.h"

namespace longwire::daemon {
namespace {

using transport::StreamPump;

constexpr std::chrono::seconds kIntroducePatience{60};
constexpr std::chrono::milliseconds kCancelLook{50};
constexpr std::chrono::milliseconds kAttachPatience{3000};

}  // namespace

Session::Session(uint64_t id, ClientDescription client, StartedWorker worker)
    : id_(id), client_(std::move(client)), worker_(std::move(worker)) {}

bool Session::MapRings() {
  up_ = wire::RingMemory::Map(worker_.up.Release());
  down_ = wire::RingMemory::Map(worker_.down.Release());
  if (up_ == nullptr || down_ == nullptr) return false;
  if (!client_.local()) relay_ = std::make_unique<transport::RelayEnd>(up_, down_);
  return true;
}

bool Session::Introduce(std::span<const std::byte> request, const std::atomic<bool>& cancelled,
                        wire::OpenReply* reply, std::string* sentence) {
  std::vector<int> page;
  if (gates_ != nullptr) page = {gates_->memory_descriptor(), gates_->bell_descriptor()};
  if (!wire::SendMessage(worker_.control.get(), request, page)) {
    *sentence = "the worker did not take the session";
    return false;
  }
  auto deadline = Clock::now() + kIntroducePatience;
  while (Clock::now() < deadline) {
    bool closed = false;
    auto message = wire::ReceiveMessage(worker_.control.get(), kCancelLook, &closed);
    if (message) {
      wire::Reader reader(message->bytes);
      if (reply->Decode(reader) == wire::WireResult::kOk) return true;
      *sentence = "the worker gave a broken answer";
      return false;
    }
    if (closed) {
      *sentence = "the worker ended while it opened the session";
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

bool Session::WorkerIsDead() const {
  pollfd look{worker_.pidfd.get(), POLLIN, 0};
  return poll(&look, 1, 0) > 0;
}

void Session::SetToken(const transport::Token& token) {
  std::lock_guard lock(mutex_);
  token_ = HashToken(token);
}

bool Session::MayAttach(const transport::Token& token, const Peer& peer) {
  bool same = peer.identity == client_.peer.identity && peer.tenant != nullptr &&
              peer.tenant->name() == client_.peer.tenant->name();
  if (!same && !wire::GuardIsOff("identity")) return false;
  std::lock_guard lock(mutex_);
  // The last answer with a new token may have been lost together with its connection.
  bool unheard = previous_good_ && counters_.messages_in.load() == messages_at_attach_;
  bool current = TokenMatches(token, token_);
  bool previous = TokenMatches(token, previous_token_);
  return current || (previous && unheard);
}

bool Session::TakeOver(uint32_t epoch, const transport::Attach& attach) {
  std::unique_lock lock(mutex_);
  if (ended_ || relay_ == nullptr) return false;
  if (pump_ != nullptr) pump_->Abandon();
  bool free = changed_.wait_for(lock, kAttachPatience,
                                [&] { return ended_ || (pump_ == nullptr && !attaching_); });
  if (!free || ended_) return false;
  if (relay_->StartEpoch(epoch, attach.resume_position) != wire::WireResult::kOk) return false;
  relay_->SetFarEnd(attach.kept_bytes, attach.room_bytes);
  attaching_ = true;
  detached_since_ = Clock::time_point::max();
  messages_at_attach_ = counters_.messages_in.load();
  return true;
}

bool Session::SendAttached(transport::ServerStream& stream) {
  transport::Token token{};
  if (!NewToken(&token)) return false;
  {
    std::lock_guard lock(mutex_);
    previous_token_ = token_;
    previous_good_ = true;
    token_ = HashToken(token);
  }
  transport::FrameHeader header = relay_->ControlHeader(transport::kFrameAttached);
  header.position = relay_->received();
  std::string body = transport::EncodeAttached({token, relay_->kept_bytes(), relay_->room_bytes()});
  stream.StartWrite(header, std::as_bytes(std::span(body)), nullptr);
  return stream.Wait(Clock::now() + kAttachPatience) == transport::MessageStream::Event::kWritten;
}

StreamPump::Outcome Session::Relay(transport::ServerStream& stream, const transport::Attach& attach,
                                   uint32_t epoch, transport::Closed* closed) {
  if (!TakeOver(epoch, attach)) {
    *closed = {static_cast<uint32_t>(transport::kLaunchFailed),
               "the session cannot be continued from where the client says"};
    return StreamPump::Outcome::kViolation;
  }
  StreamPump::Outcome outcome = StreamPump::Outcome::kBroken;
  if (SendAttached(stream)) {
    StreamPump pump(stream, *relay_, counters_);
    {
      std::lock_guard lock(mutex_);
      pump_ = &pump;
      if (ended_) pump.Stop(end_);
    }
    outcome = pump.Run();
    *closed = pump.closed();
    std::lock_guard lock(mutex_);
    pump_ = nullptr;
  }
  std::lock_guard lock(mutex_);
  attaching_ = false;
  detached_since_ = Clock::now();
  changed_.notify_all();
  return outcome;
}

bool Session::End(const transport::Closed& closed) {
  std::lock_guard lock(mutex_);
  if (ended_) return false;
  ended_ = true;
  end_ = closed;
  // The rest of the down log, with the worker's last words, still goes out.
  if (pump_ != nullptr) pump_->Stop(closed);
  if (on_end_) on_end_(closed);
  up_->Close(closed.code);
  down_->Close(closed.code);
  changed_.notify_all();
  return true;
}

void Session::set_on_end(std::function<void(const transport::Closed&)> on_end) {
  std::lock_guard lock(mutex_);
  on_end_ = std::move(on_end);
  if (ended_ && on_end_) on_end_(end_);
}

Clock::time_point Session::detached_since() {
  std::lock_guard lock(mutex_);
  return client_.local() ? Clock::time_point::max() : detached_since_;
}

uint64_t Session::bytes_up() const {
  return client_.local() ? wire::RingProducer(up_).written() : counters_.bytes_in.load();
}

uint64_t Session::bytes_down() const {
  return client_.local() ? wire::RingProducer(down_).written() : counters_.bytes_out.load();
}

uint32_t Session::epoch() {
  std::lock_guard lock(mutex_);
  return relay_ == nullptr ? 0 : relay_->epoch();
}

}  // namespace longwire::daemon
