#include "link/transport/answer_prediction.h"

#include <algorithm>

#include "wire/switches.h"

namespace longwire::transport {
namespace {

// As long as a thread spins before it sleeps.
constexpr std::chrono::microseconds kSoon{50};
// If the answer does not come, it may depend on the next message, which is not read yet. So the
// wait is about twice the time of the last answer.
constexpr std::chrono::microseconds kLeastWait{5};
// A step of many calls also ends with one answer: a single answer predicts nothing.
constexpr int kEnough = 2;

}  // namespace

AnswerPrediction::AnswerPrediction() : predicts_(!wire::IsSwitchedOff("answers-first")) {}

void AnswerPrediction::Received(Time now) {
  if (unanswered_) in_a_row_ = 0;
  unanswered_ = true;
  received_at_ = now;
}

void AnswerPrediction::Sent(Time now) {
  if (!unanswered_) return;
  unanswered_ = false;
  last_ = now - received_at_;
  in_a_row_ = last_ <= kSoon ? in_a_row_ + 1 : 0;
}

bool AnswerPrediction::Expects(Time now) const {
  return predicts_ && unanswered_ && in_a_row_ >= kEnough &&
         now - received_at_ <= std::min<Time::duration>(2 * last_ + kLeastWait, kSoon);
}

}  // namespace longwire::transport
