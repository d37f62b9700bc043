// What an operator's program may say beside a policy: about sessions, and whose turn is next and
// for how long. The core asks; it holds every answer against its own bounds, so nobody starves.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/name_number.h"
#include "scheduler/types.h"

namespace longwire::scheduler {

// By which programs know a tenant.
constexpr uint64_t NumberOf(std::string_view tenant) { return base::NumberOfName(tenant); }

struct SessionTerms {
  SessionId session = 0;
  uint64_t tenant = 0;
  uint32_t devices = 0;
  // The answer; at first what is configured.
  PriorityClass priority_class = PriorityClass::kBestEffort;
  uint32_t weight = 1;
};

struct QueueChange {
  SessionId session = 0;
  uint64_t tenant = 0;
  DeviceId device = 0;
  bool busy = false;
  Time gpu_time{0};
};

// One gang's turn; those of several devices are not asked about.
struct TurnFacts {
  SessionId session = 0;  // one of the gang
  uint64_t tenant = 0;
  DeviceId device = 0;
  uint32_t weight = 1;
  Time waited{0};   // since it lined up
  Time charged{0};  // at the end: GPU time of this turn
};

// A turn that a program asks for lasts from the core's shortest to this.
inline constexpr Time kLongestTurn = std::chrono::seconds(1);
inline constexpr Time kShortestTurn = std::chrono::microseconds(100);

class Advice {
 public:
  virtual ~Advice() = default;

  // A session was opened, or its tenant's configuration was read again.
  virtual void OnOpened(Time now, SessionTerms* terms) = 0;
  virtual void OnClosed(Time now, const SessionTerms& terms) = 0;
  virtual void OnQueue(Time now, const QueueChange& change) = 0;

  // Whether it scores at all: then a turn ends when another gang waits, whoever is owed.
  virtual bool scores() const = 0;
  virtual uint64_t Score(Time now, const TurnFacts& turn) = 0;
  virtual Time TurnLength(Time now, const TurnFacts& turn, Time usual) = 0;
  virtual void OnTurnEnded(Time now, const TurnFacts& turn) = 0;
};

}  // namespace longwire::scheduler
