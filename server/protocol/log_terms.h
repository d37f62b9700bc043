// From the daemon to the warden and to the workers of sessions, when a worker serves one and when
// the configuration has changed. No answer. A worker of an earlier release ignores it, and a warden
// gets it from version 14 on.
#pragma once

#include <cstdint>
#include <tuple>

namespace longwire::message {

struct LogTerms {
  static constexpr uint32_t kKind = 122;
  uint32_t lines_per_second = 10;  // about one session (admission.log_lines_per_second)
  auto Fields() { return std::tie(lines_per_second); }
};

}  // namespace longwire::message
