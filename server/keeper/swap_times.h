// The keeper's patience with sessions whose memory others need.
#pragma once

#include <chrono>

namespace longwire::keeper {

struct SwapTimes {
  std::chrono::nanoseconds answer = std::chrono::seconds(1);       // longer: it is ended
  std::chrono::nanoseconds idle = std::chrono::milliseconds(20);   // to become idle when asked
  std::chrono::nanoseconds pause = std::chrono::milliseconds(10);  // after it said that it is busy
  std::chrono::nanoseconds stay = std::chrono::milliseconds(100);  // the least, after coming back
  // How long a lease waits for sessions that are at work; who wants to come back waits for ever.
  std::chrono::nanoseconds lease = std::chrono::seconds(10);
  // And for all that is moved for it: less than its worker waits for an answer.
  std::chrono::nanoseconds lease_in_all = std::chrono::seconds(25);
};

}  // namespace longwire::keeper
