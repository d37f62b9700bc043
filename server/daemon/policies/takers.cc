#include "server/daemon/policies/takers.h"

#include <thread>

namespace longwire::daemon {
namespace {

using policy::Asker;
using policy::Program;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kPause{5};
constexpr size_t kNamedSessions = 8;  // in a sentence

std::string In(milliseconds patience) { return std::to_string(patience.count() / 1000) + " s"; }

// Empty: all keepers that run have it. Else which one has not. *absent: devices without a keeper.
std::string WhoIsMissing(const Program& program, const Takers& takers, std::string* absent) {
  std::string sentence;
  const auto keepers = takers.keepers(&sentence);
  if (!keepers) return "the keepers of the devices could not be asked (" + sentence + ")";
  absent->clear();
  std::string missing;
  for (const KeeperOfDevice& keeper : *keepers) {
    const std::string device = "device " + std::to_string(keeper.device);
    const auto number = static_cast<uint32_t>(keeper.device);
    if (keeper.number == 0) {
      *absent += (absent->empty() ? "" : ", ") + device;
    } else if (missing.empty() && !program.store().IsTakenBy(number, keeper.number)) {
      missing = "the keeper of " + device + " has not taken it";
    }
  }
  return missing;
}

// "4, 7 and 3 others".
std::string Named(const std::vector<uint64_t>& sessions) {
  std::string names;
  for (size_t i = 0; i < sessions.size() && i < kNamedSessions; ++i) {
    names += (i == 0 ? "" : ", ") + std::to_string(sessions[i]);
  }
  if (sessions.size() <= kNamedSessions) return names;
  return names + " and " + std::to_string(sessions.size() - kNamedSessions) + " others";
}

// Sessions whose workers have not heard within the patience.
std::vector<uint64_t> LateSessions(const Program& program, const Takers& takers,
                                   Clock::time_point end) {
  if (!program.IsAskedBy(Asker::kLaunches)) return {};
  std::vector<uint64_t> late = takers.late_sessions();
  while (!late.empty() && Clock::now() < end) {
    std::this_thread::sleep_for(kPause);
    late = takers.late_sessions();
  }
  return late;
}

// Ends it if a keeper does not take it in time. The result: devices without a keeper.
std::string AwaitKeepers(Program& program, const Takers& takers, milliseconds patience,
                         Clock::time_point end) {
  std::string absent;
  std::string missing = WhoIsMissing(program, takers, &absent);
  while (!missing.empty() && !program.ended() && Clock::now() < end) {
    std::this_thread::sleep_for(kPause);
    missing = WhoIsMissing(program, takers, &absent);
  }
  if (!missing.empty()) {
    program.End(missing + " within " + In(patience) +
                ": the log of longwire-warden says more; load it again when the keeper answers");
  }
  return absent;
}

// Who ends it writes the reason a moment later.
std::string WhyEnded(const Program& program) {
  const auto end = Clock::now() + milliseconds(200);
  std::string why = program.why_ended();
  while (why.empty() && Clock::now() < end) {
    std::this_thread::sleep_for(kPause);
    why = program.why_ended();
  }
  return why.empty() ? "who ended it did not say why" : why;
}

}  // namespace

bool AwaitTakers(Program& program, const Takers& takers, milliseconds patience,
                 std::string* sentence) {
  const auto end = Clock::now() + patience;
  std::string absent;
  if (program.IsAskedBy(Asker::kKeepers) && !program.ended()) {
    absent = AwaitKeepers(program, takers, patience, end);
  }
  std::vector<uint64_t> late;
  if (!program.ended()) late = LateSessions(program, takers, end);
  sentence->clear();
  if (program.ended()) {
    *sentence = WhyEnded(program);
    return false;
  }
  if (!absent.empty()) {
    *sentence = "there is no keeper now of " + absent + "; the next one gets it";
  }
  if (!late.empty()) {
    *sentence += (sentence->empty() ? "" : "; and ");
    *sentence += "not yet about launches of the sessions " + Named(late) +
                 ": their workers did not take it within " + In(patience) +
                 ", or are of an earlier release; those that take it later ask it from then on";
  }
  return true;
}

void AwaitLeavers(const Program& program, const Takers& takers, milliseconds patience,
                  std::string* sentence) {
  sentence->clear();
  const auto late = LateSessions(program, takers, Clock::now() + patience);
  if (late.empty()) return;
  *sentence = "what it said about launches still holds in the sessions " + Named(late) +
              ", whose workers did not answer within " + In(patience);
}

}  // namespace longwire::daemon
