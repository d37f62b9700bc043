// Why a session was not opened.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace longwire::daemon {

// The words of docs/metrics.md are in the same order.
enum class RefusalReason : uint8_t {
  kNotAllowed,
  kVersion,
  kRate,
  kIdentitySessions,
  kTenantSessions,
  kServerSessions,
  kDescriptors,
  kDraining,
  kStopping,
  kNoDevice,
  kWorker,
};

inline constexpr std::array kRefusalReasons = {
    "not_allowed",     "version",         "rate",        "identity_sessions",
    "tenant_sessions", "server_sessions", "descriptors", "draining",
    "stopping",        "no_device",       "worker",
};

struct OpeningRefusal {
  int32_t code = 0;  // of transport::Code; 0: none
  RefusalReason reason = RefusalReason::kWorker;
  std::string sentence;  // for people
};

// How many, by reason.
using RefusalCounts = std::array<uint64_t, kRefusalReasons.size()>;
static_assert(kRefusalReasons.size() == static_cast<size_t>(RefusalReason::kWorker) + 1);

}  // namespace longwire::daemon
