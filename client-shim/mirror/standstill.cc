#include "client-shim/mirror/standstill.h"

#include <algorithm>

namespace longwire::shim {
namespace {

// Work that ends later than this after a state has ended by itself.
constexpr std::chrono::milliseconds kSoon{50};
constexpr std::chrono::milliseconds kOver{20};

}  // namespace

void Standstill::Observe(const Progress& progress, Clock::time_point now) {
  if (progress == progress_) return;
  std::erase_if(stand_since_, [&](const auto& one) { return !progress.contains(one.first); });
  for (const auto& one : progress) stand_since_.try_emplace(one, now);
  if (terms_.moves && unanswered_ && now - tried_ <= kSoon) NoteAnswer();
  progress_ = progress;
  since_ = now;
}

bool Standstill::AnyStandsFor(Clock::duration time, Clock::time_point now) const {
  return std::ranges::any_of(stand_since_,
                             [&](const auto& one) { return now - one.second >= time; });
}

bool Standstill::IsDue(Clock::time_point now) const {
  return !progress_.empty() && now - since_ >= pause_ && now - tried_ >= std::max(pause_, took_);
}

bool Standstill::IsOver(Clock::time_point now) const {
  return progress_.empty() && now - since_ >= kOver;
}

void Standstill::NoteState(Clock::time_point now, Clock::duration took) {
  took_ = took;
  if (unanswered_) pause_ = std::min(2 * pause_, terms_.most);
  unanswered_ = true;
  tried_ = now;
}

void Standstill::NoteAnswer() {
  if (!unanswered_) return;
  pause_ = terms_.least;
  unanswered_ = false;
}

}  // namespace longwire::shim
