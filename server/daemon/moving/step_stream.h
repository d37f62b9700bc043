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
#include "server/daemon/moving/step_content.h"

namespace longwire::daemon {

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
  bool Queue(ContentStep content, std::chrono::milliseconds patience, std::string* sentence);
  // The next message. False with the reason if it is broken, or none comes in time.
  bool Receive(google::protobuf::MessageLite* message, std::chrono::milliseconds patience,
               std::string* sentence);
  // The same; *is_content: it is a content, and in *content alone.
  bool Receive(google::protobuf::MessageLite* message, StepMessage* content, bool* is_content,
               std::chrono::milliseconds patience, std::string* sentence);
  // Whether Receive would not wait.
  bool HasReceived();
  bool is_broken();
  // In order. Returns the message of the other end about that.
  std::string End();

 private:
  struct Sending {
    std::span<const std::byte> bytes;
    std::shared_ptr<void> memory;  // where they are
  };
  static Sending Serialized(const google::protobuf::MessageLite& message);
  bool SendBehind(Sending sending, size_t waiting, std::chrono::milliseconds patience,
                  std::string* sentence);
  bool Take(StepMessage* message, std::chrono::milliseconds patience, std::string* sentence);
  void Serve();
  bool Begin(bool* reads, Sending* writes);
  void Happened(transport::MessageStream::Event event);
  void Stop();

  const std::shared_ptr<transport::MessageStream> stream_;
  base::Mutex mutex_{base::ranks::kStepStream};
  base::CondVar changed_;
  std::deque<StepMessage> received_ LONGWIRE_GUARDED_BY(mutex_);
  // Until they are written, which is done with the first.
  std::deque<Sending> sends_ LONGWIRE_GUARDED_BY(mutex_);
  bool reading_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool writing_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool broken_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool stops_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace longwire::daemon
