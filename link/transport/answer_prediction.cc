#include "link/transport/answer_prediction.h"

#include <algorithm>

#include "wire/switches.h"

namespace longwire::transport {
namespace {

// As long as a thread looks for something to do before it sleeps.
constexpr std::chrono::microseconds kSoon{50};
// Where it does not come, what was expected may hang on the next message, which is not read yet: so
// an answer is waited for about twice as long as the last one took.
constexpr std::chrono::microseconds kLeastWait{5};
// A step of many calls ends with one answer, too: one alone says nothing of the next message.
constexpr int kEnough = 2;

}  // namespace

AnswerPrediction::AnswerPrediction() : predicts_(!wire::IsSwitchedOff("answers-first")) {}

void AnswerPrediction::Heard(Time now) {
  if (unanswered_) in_a_row_ = 0;
  unanswered_ = true;
  heard_at_ = now;
}

void AnswerPrediction::Said(Time now) {
  if (!unanswered_) return;
  unanswered_ = false;
  last_ = now - heard_at_;
  in_a_row_ = last_ <= kSoon ? in_a_row_ + 1 : 0;
}

bool AnswerPrediction::Expects(Time now) const {
  return predicts_ && unanswered_ && in_a_row_ >= kEnough &&
         now - heard_at_ <= std::min<Time::duration>(2 * last_ + kLeastWait, kSoon);
}

}  // namespace longwire::transport
