// The stream of a HandOver call, at either end: protobuf messages, each in a frame. A thread of its
// own serves it, so that a connection that breaks is noticed while its user is busy, and keeps
// alive however long that takes. Used by one thread at a time.
#pragma once

#include <google/protobuf/message_lite.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/transport/message_stream.h"

namespace longwire::daemon {

// Bytes of content in one message: a frame is not larger than wire::kMaxBatchBytes.
inline constexpr size_t kStepBytes = (size_t{1} << 20) - 4096;

class StepStream {
 public:
  // The stream has begun.
  explicit StepStream(std::shared_ptr<transport::MessageStream> stream);
  // Cuts it off if nobody has ended it.
  ~StepStream();
  StepStream(const StepStream&) = delete;
  StepStream& operator=(const StepStream&) = delete;

  // Returns once it is on its way. False with the reason if it is broken, or the other end does not
  // take it in time.
  bool Send(const google::protobuf::MessageLite& message, std::chrono::milliseconds patience,
            std::string* sentence);
  // The same for one of many messages: returns once few are before it. A Send behind it is on its
  // way after it.
  bool Queue(const google::protobuf::MessageLite& message, std::chrono::milliseconds patience,
             std::string* sentence);
  // The next message. False with the reason if it is broken, or none comes in time.
  bool Receive(google::protobuf::MessageLite* message, std::chrono::milliseconds patience,
               std::string* sentence);
  // Whether Receive would not wait.
  bool HasReceived();
  // In order. Returns the message of the other end about that.
  std::string End();

 private:
  bool SendBehind(const google::protobuf::MessageLite& message, size_t waiting,
                  std::chrono::milliseconds patience, std::string* sentence);
  void Serve();
  bool Begin(bool* reads, std::shared_ptr<std::string>* writes);
  void Happened(transport::MessageStream::Event event);
  void Stop();

  const std::shared_ptr<transport::MessageStream> stream_;
  base::Mutex mutex_{base::ranks::kStepStream};
  base::CondVar changed_;
  std::deque<std::string> received_ LONGWIRE_GUARDED_BY(mutex_);
  // Until they are written, which is done with the first.
  std::deque<std::shared_ptr<std::string>> sends_ LONGWIRE_GUARDED_BY(mutex_);
  bool reading_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool writing_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool broken_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool stops_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace longwire::daemon
