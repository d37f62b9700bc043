#include "link/transport/answer_prediction.h"

#include "wire/guards.h"

namespace longwire::transport {
namespace {

// As long as a thread looks for something to do before it sleeps.
constexpr std::chrono::microseconds kSoon{50};
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
  in_a_row_ = now - heard_at_ <= kSoon ? in_a_row_ + 1 : 0;
}

bool AnswerPrediction::Expects(Time now) const {
  return predicts_ && unanswered_ && in_a_row_ >= kEnough && now - heard_at_ <= kSoon;
}

}  // namespace longwire::transport
