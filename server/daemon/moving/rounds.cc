#include "server/daemon/moving/rounds.h"

#include "wire/switches.h"

namespace longwire::daemon {
namespace {

// A program that makes objects all the time is never caught up with.
constexpr int kRoundLimit = 4;
// What came during one that took no longer is not worth another one.
constexpr std::chrono::milliseconds kShortRound{50};

const bool kRebuildsAhead = !wire::IsSwitchedOff("rebuilt-ahead");

}  // namespace

bool RunRounds(const std::function<Round(std::string*)>& round, int* rounds,
               std::string* sentence) {
  for (*rounds = 0; kRebuildsAhead && *rounds < kRoundLimit; ++*rounds) {
    const auto begun = Clock::now();
    const Round done = round(sentence);
    if (done != Round::kDone) return done == Round::kNotNow;
    if (Clock::now() - begun < kShortRound) {
      ++*rounds;
      break;
    }
  }
  return true;
}

std::string VoidText(const std::string& why) {
  return "what was rebuilt while it ran is void (" + why +
         "): it is rebuilt once more, while it stands still";
}

std::string TextOf(const CallsAgain& calls) {
  return "; of its calls " + std::to_string(calls.before) + " ran again before that and " +
         std::to_string(calls.still) + " meanwhile";
}

}  // namespace longwire::daemon
