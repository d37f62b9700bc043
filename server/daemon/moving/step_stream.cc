#include "server/daemon/moving/step_stream.h"

#include <cerrno>
#include <utility>

#include "base/reason.h"
#include "base/start_thread.h"

namespace longwire::daemon {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using transport::MessageStream;

// Of messages that wait to be received: what is behind them waits at the sender.
constexpr size_t kReceivedLimit = 4;
// Of queued messages, with the one that is written.
constexpr size_t kQueuedLimit = 4;
constexpr milliseconds kStreamLook{1'000};
constexpr const char* kStreamBroken = "the connection between the servers broke";

bool Parse(const StepMessage& from, google::protobuf::MessageLite* message) {
  std::string text;
  for (std::span<const std::byte> part : from.parts) {
    text.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  return message->ParseFromString(text);
}

}  // namespace

StepStream::StepStream(std::shared_ptr<MessageStream> stream) : stream_(std::move(stream)) {
  if (base::StartThread(&thread_, [this] { Serve(); })) return;
  base::MutexLock lock(mutex_);
  broken_ = true;
}

StepStream::~StepStream() {
  Stop();
  if (!ended_) stream_->End(true);
}

void StepStream::Stop() {
  {
    base::MutexLock lock(mutex_);
    stops_ = true;
  }
  stream_->Wake();
  if (thread_.joinable()) thread_.join();
}

std::string StepStream::End() {
  Stop();
  if (std::exchange(ended_, true)) return {};
  {
    base::MutexLock lock(mutex_);
    broken_ = true;  // for whoever still wants to send or receive
  }
  return stream_->End(false);
}

void StepStream::Serve() {
  bool reads = false;
  Sending writes;
  while (Begin(&reads, &writes)) {
    if (reads) stream_->StartRead();
    if (writes.memory != nullptr) {
      stream_->StartWrite({}, writes.bytes, std::move(writes.memory));
      writes = {};
    }
    Happened(stream_->Wait(Clock::now() + kStreamLook));
  }
}

// What is to be begun now. False at the end.
bool StepStream::Begin(bool* reads, Sending* writes) {
  base::MutexLock lock(mutex_);
  if (stops_ || broken_) return false;
  *reads = !reading_ && received_.size() < kReceivedLimit;
  reading_ = reading_ || *reads;
  if (!sends_.empty() && !writing_) {
    *writes = sends_.front();
    writing_ = true;
  }
  return true;
}

void StepStream::Happened(MessageStream::Event event) {
  base::MutexLock lock(mutex_);
  if (event == MessageStream::Event::kRead) {
    received_.push_back({stream_->KeepReceived(), stream_->received().body});
    reading_ = false;
  } else if (event == MessageStream::Event::kWritten) {
    sends_.pop_front();
    writing_ = false;
  } else if (event == MessageStream::Event::kBroken) {
    broken_ = true;
  }
  changed_.NotifyAll();
}

bool StepStream::Send(const google::protobuf::MessageLite& message, milliseconds patience,
                      std::string* sentence) {
  return SendBehind(Serialized(message), 0, patience, sentence);
}

bool StepStream::Queue(const google::protobuf::MessageLite& message, milliseconds patience,
                       std::string* sentence) {
  return SendBehind(Serialized(message), kQueuedLimit, patience, sentence);
}

bool StepStream::Queue(ContentStep content, milliseconds patience, std::string* sentence) {
  const std::span<const std::byte> bytes = content.Message();
  return SendBehind({bytes, content.memory()}, kQueuedLimit, patience, sentence);
}

StepStream::Sending StepStream::Serialized(const google::protobuf::MessageLite& message) {
  auto text = std::make_shared<std::string>(message.SerializeAsString());
  return {std::as_bytes(std::span(*text)), text};
}

// Returns once at most `waiting` are left.
bool StepStream::SendBehind(Sending sending, size_t waiting, milliseconds patience,
                            std::string* sentence) {
  const auto deadline = Clock::now() + patience;
  base::MutexLock lock(mutex_);
  sends_.push_back(std::move(sending));
  lock.Unlock();
  stream_->Wake();
  lock.Lock();
  while (!broken_ && sends_.size() > waiting && changed_.WaitUntil(lock, deadline)) {
  }
  if (!broken_ && sends_.size() <= waiting) return true;
  // The other end has answered and ended the call, maybe before the system said that it was sent.
  if (broken_ && !received_.empty()) return true;
  *sentence = broken_ ? kStreamBroken : "the other server does not take in time what it is sent";
  broken_ = true;  // half of something would be no message
  return false;
}

bool StepStream::Take(StepMessage* message, milliseconds patience, std::string* sentence) {
  const auto deadline = Clock::now() + patience;
  base::MutexLock lock(mutex_);
  while (!broken_ && received_.empty() && changed_.WaitUntil(lock, deadline)) {
  }
  if (received_.empty()) {
    *sentence = broken_ ? kStreamBroken : "the other server does not answer in time";
    return false;
  }
  *message = std::move(received_.front());
  received_.pop_front();
  lock.Unlock();
  stream_->Wake();  // there is room for the next
  *sentence = "what the other server says cannot be read";
  return true;
}

bool StepStream::Receive(google::protobuf::MessageLite* message, milliseconds patience,
                         std::string* sentence) {
  StepMessage received;
  return Take(&received, patience, sentence) && Parse(received, message);
}

bool StepStream::Receive(google::protobuf::MessageLite* message, StepMessage* content,
                         bool* is_content, milliseconds patience, std::string* sentence) {
  *content = {};  // what it held may be reused
  if (!Take(content, patience, sentence)) return false;
  *is_content = LeaveContent(content);
  return *is_content || Parse(*content, message);
}

bool StepStream::is_broken() {
  base::MutexLock lock(mutex_);
  return broken_;
}

bool StepStream::HasReceived() {
  base::MutexLock lock(mutex_);
  return broken_ || !received_.empty();
}

}  // namespace longwire::daemon
