// The lane as the connecting end of a bridge: what a link does for a lane of a client, this does
// towards another server's lane.
#include "link/transport/codes.h"
#include "server/daemon/sessions/lane.h"

namespace longwire::daemon {
namespace {

using transport::MessageStream;
using transport::StreamPump;

constexpr std::chrono::milliseconds kJoinPatience{5000};

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

std::string Lane::BeginJoin(uint32_t far_epoch, uint32_t* epoch) {
  base::MutexLock lock(mutex_);
  const auto deadline = Clock::now() + kJoinPatience;
  if (pump_ != nullptr) pump_->Abandon();
  ++waiting_;
  while (!ended_ && !left_ && !paused_ && (pump_ != nullptr || attaching_) &&
         changed_.WaitUntil(lock, deadline)) {
  }
  --waiting_;
  if (ended_ || left_ || paused_ || relay_ == nullptr || pump_ != nullptr || attaching_) {
    changed_.NotifyAll();
    return "the session's lane is not free";
  }
  *epoch = std::max(relay_->epoch(), far_epoch) + 1;
  attaching_ = true;
  detached_since_ = Clock::time_point::max();
  return {};
}

void Lane::EndJoin() {
  base::MutexLock lock(mutex_);
  attaching_ = false;
  joined_ = false;
  detached_since_ = Clock::now();
  changed_.NotifyAll();
}

std::string Lane::Greet(transport::ClientStream& stream, transport::Attach attach, uint32_t epoch) {
  attach.resume_position = relay_->received();
  attach.consumed = relay_->consumed();
  attach.kept_bytes = relay_->kept_bytes();
  attach.room_bytes = relay_->room_bytes();
  const std::string body = transport::EncodeAttach(attach);
  stream.StartWrite({relay_->sent(), relay_->received(), epoch, transport::kFrameAttach},
                    BytesOf(body), nullptr);
  const auto deadline = Clock::now() + kJoinPatience;
  if (stream.Wait(deadline) != MessageStream::Event::kWritten) return "it does not answer";
  stream.StartRead();
  if (stream.Wait(deadline) != MessageStream::Event::kRead) return "it does not answer";
  const transport::ReceivedFrame& frame = stream.received();
  const std::string answer = ControlBody(frame);
  transport::Closed closed;
  transport::Attached attached;
  if (frame.header.flags == transport::kFrameClosed &&
      DecodeClosed(BytesOf(answer), &closed) == wire::WireResult::kOk) {
    return "it refuses: " + closed.sentence;
  }
  if (frame.header.flags != transport::kFrameAttached ||
      DecodeAttached(BytesOf(answer), &attached) != wire::WireResult::kOk) {
    return "its answer cannot be read";
  }
  const uint64_t far_received = frame.header.position, far_consumed = frame.header.ack;
  base::MutexLock lock(mutex_);
  if (relay_->StartEpoch(epoch, far_received, far_consumed) != wire::WireResult::kOk) {
    return "it cannot go on where the bridge broke";
  }
  relay_->SetFarEnd(attached.kept_bytes, attached.room_bytes, 0);
  note_.epoch = epoch;
  note_.received = relay_->received();
  WriteNote();
  joined_ = true;
  return {};
}

std::string Lane::Join(transport::ClientStream& stream, const transport::Attach& attach,
                       uint32_t far_epoch, const std::function<void()>& joined) {
  uint32_t epoch = 0;
  std::string problem = BeginJoin(far_epoch, &epoch);
  if (!problem.empty()) return problem;
  problem = Greet(stream, attach, epoch);
  if (problem.empty()) {
    joined();
    StreamPump pump(stream, *relay_, counters_, StreamPump::Spinning::kNo);
    {
      base::MutexLock lock(mutex_);
      pump_ = &pump;
      if (ended_) pump.Stop(end_);
      if (waiting_ != 0 || left_ || paused_) pump.Abandon();
    }
    pump.Run();
    base::MutexLock lock(mutex_);
    pump_ = nullptr;
  }
  EndJoin();
  return problem;
}

bool Lane::joined() {
  base::MutexLock lock(mutex_);
  return joined_;
}

}  // namespace longwire::daemon
