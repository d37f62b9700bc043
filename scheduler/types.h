// The scheduler's nouns: who asks for a device, of which class, and what time is.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace longwire::scheduler {

using SessionId = uint64_t;
using DeviceId = uint32_t;
using TenantName = std::string;

// Since an origin that the caller chooses and keeps; steady and never negative. Also spans of time.
using Time = std::chrono::nanoseconds;
inline constexpr Time kForever = Time::max();

// `time` plus `span`, at most kForever.
constexpr Time After(Time time, Time span) {
  return span >= kForever - time ? kForever : time + span;
}

enum class PriorityClass {
  kLatencyCritical,  // never held back, holds others back while it has work
  kBestEffort,
};

// A tenant's weight is clamped to the range from 1 to this.
inline constexpr uint32_t kMaxWeight = 10'000;

// Of a tenant, and of all its sessions.
struct TenantTerms {
  PriorityClass priority_class = PriorityClass::kBestEffort;
  uint32_t weight = 1;
  bool operator==(const TenantTerms&) const = default;
};

struct SessionInfo {
  SessionId id = 0;
  TenantName tenant;
  // The tenant's class and weight. They hold for all its sessions, so the newest word wins.
  PriorityClass priority_class = PriorityClass::kBestEffort;
  uint32_t weight = 1;
  std::vector<DeviceId> devices;
  // Sessions of a tenant with the same name here move together. Empty: alone until joined.
  std::string gang;
};

}  // namespace longwire::scheduler
