// Time limits for sessions whose memory others need.
#pragma once

#include <chrono>

namespace longwire::keeper {

struct SwapTimes {
  std::chrono::nanoseconds answer =
      std::chrono::seconds(1);  // to answer; then the session is ended
  std::chrono::nanoseconds idle = std::chrono::milliseconds(20);  // to become idle when asked
  std::chrono::nanoseconds pause =
      std::chrono::milliseconds(10);  // after the answer that it is busy
  std::chrono::nanoseconds stay = std::chrono::milliseconds(100);  // at least, after a swap-in
  // How long a lease waits for busy sessions. A swap-in waits without limit.
  std::chrono::nanoseconds lease = std::chrono::seconds(10);
  // How long a lease waits for swapping in all: less than its worker waits for an answer.
  std::chrono::nanoseconds lease_in_all = std::chrono::seconds(25);
};

}  // namespace longwire::keeper
