// Predicts whether a received message will be answered soon, and so when to start the next read.
// A read makes gRPC send a flow-control update (WINDOW_UPDATE). If the read starts at once, the
// update is a packet of its own and costs both ends a system call; if it starts after the answer
// was written, the update goes with the answer. So the read waits while an answer is expected, as
// with a program that launches and waits. The wait is short, so that a burst without answers is not
// delayed.
#pragma once

#include <chrono>

namespace longwire::transport {

class AnswerPrediction {
 public:
  using Time = std::chrono::steady_clock::time_point;

  AnswerPrediction();
  // A message was received, or one was sent.
  void Received(Time now);
  void Sent(Time now);
  // True while an answer to the last received message is expected.
  bool Expects(Time now) const;

 private:
  const bool predicts_;  // off with LONGWIRE_DISABLE=answers-first
  bool unanswered_ = false;
  Time received_at_;
  Time::duration last_{};  // time that the last answer took
  int in_a_row_ = 0;       // messages in a row that were answered soon
};

}  // namespace longwire::transport
