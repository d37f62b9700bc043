// The scheduler's input. An event about a session that is not open is ignored: it was sent before
// the sender knew that the session had ended.
#pragma once

#include <variant>

#include "scheduler/options.h"
#include "scheduler/types.h"

namespace longwire::scheduler {

class Policy;

struct SessionOpened {
  SessionInfo session;
};

struct SessionClosed {
  SessionId session = 0;
};

// The configuration was read again; holds for the tenant's open sessions too.
struct TenantChanged {
  TenantName tenant;
  PriorityClass priority_class = PriorityClass::kBestEffort;
  uint32_t weight = 1;
};

enum class Activity {
  kIdle,     // no calls at all
  kQueued,   // calls wait, behind a closed gate or for their client; none is unfinished
  kRunning,  // calls are unfinished on the device
};

// A worker reports each change of activity, answers each closing of a gate as soon as nothing is
// unfinished (even when it had not begun anything), and repeats itself now and then while it runs
// (ten times a second will do), so that long work is charged while it lasts.
struct ActivityReported {
  SessionId session = 0;
  DeviceId device = 0;
  Activity activity = Activity::kIdle;
  Time gpu_time{0};  // used since the session opened
};

// The longest recent gap between two launches of a session; it counts for latency-critical ones.
struct LaunchGapObserved {
  SessionId session = 0;
  DeviceId device = 0;
  Time gap{0};
};

// Two sessions of one tenant can from now on wait for each other on their devices (IPC, shared
// descriptors, peer mappings), so they move together. Sessions of two tenants stay apart.
struct GangJoined {
  SessionId first = 0;
  SessionId second = 0;
};

// The configuration was read again: how devices are shared from now on. The policy must outlive the
// core, or the next such event.
struct SharingChanged {
  const Policy* policy = nullptr;
  Options options;
};

// Core::next_tick() has come.
struct Tick {};

using Event = std::variant<SessionOpened, SessionClosed, TenantChanged, ActivityReported,
                           LaunchGapObserved, GangJoined, SharingChanged, Tick>;

}  // namespace longwire::scheduler
