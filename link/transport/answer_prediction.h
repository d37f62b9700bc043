// When to ask for the next message. gRPC tells the far end of the room that a read has made: in a
// message of its own where the next read is asked for at once, which costs both ends a system call
// and more, or along with what is written next, if the read is asked for after that. So where each
// message is answered by one soon, as with a program that launches and waits, the read waits for
// the answer. Of a burst that is not answered no message may wait long.
#pragma once

#include <chrono>

namespace longwire::transport {

class AnswerPrediction {
 public:
  using Time = std::chrono::steady_clock::time_point;

  AnswerPrediction();
  // A message came, or one went.
  void Heard(Time now);
  void Said(Time now);
  // Whether an answer to the last message is still to be expected.
  bool Expects(Time now) const;

 private:
  const bool predicts_;  // off with LONGWIRE_DISABLE=answers-first
  bool unanswered_ = false;
  Time heard_at_;
  Time::duration last_{};  // what the last answer took
  int in_a_row_ = 0;       // messages that were answered soon
};

}  // namespace longwire::transport
