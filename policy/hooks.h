// The hooks that there are, each with the structure that it gets (policy/include/longwire).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "policy/include/longwire/policy.h"

namespace longwire::policy {

enum class Hook {
  kSessionOpened,
  kSessionClosed,
  kDeviceChanged,
  kQueueChanged,
  kTurnNext,
  kTurnBegins,
  kTurnEnded,
  kPlace,
  kRegionAdded,
  kRegionAccessed,
  kRegionRemoved,
  kSessionRuns,
  kEvictNext,
  kLaunch,
};

// Who asks: at most one policy is loaded for each.
enum class Asker { kScheduler, kPlacement, kKeepers, kLaunches };
inline constexpr Asker kAskers[] = {Asker::kScheduler, Asker::kPlacement, Asker::kKeepers,
                                    Asker::kLaunches};

struct HookShape {
  std::string_view name;
  size_t context_bytes;
  Asker asker = Asker::kScheduler;
};

inline constexpr HookShape kHooks[] = {
    {"session_opened", sizeof(lw_session)},
    {"session_closed", sizeof(lw_session)},
    {"device_changed", sizeof(lw_device)},
    {"queue_changed", sizeof(lw_queue)},
    {"turn_next", sizeof(lw_turn)},
    {"turn_begins", sizeof(lw_turn)},
    {"turn_ended", sizeof(lw_turn)},
    {"place", sizeof(lw_place), Asker::kPlacement},
    {"region_added", sizeof(lw_memory), Asker::kKeepers},
    {"region_accessed", sizeof(lw_memory), Asker::kKeepers},
    {"region_removed", sizeof(lw_memory), Asker::kKeepers},
    {"session_runs", sizeof(lw_memory), Asker::kKeepers},
    {"evict_next", sizeof(lw_memory), Asker::kKeepers},
    {"launch", sizeof(lw_launch), Asker::kLaunches},
};
inline constexpr size_t kHookCount = sizeof(kHooks) / sizeof(kHooks[0]);

}  // namespace longwire::policy
