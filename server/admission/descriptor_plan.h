// How the descriptors that the daemon may have are divided: strangers that connect use up a part,
// never those of sessions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace longwire::admission {

struct DescriptorPlan {
  size_t limit = 0;     // that this process may have (RLIMIT_NOFILE)
  size_t waiting = 0;   // connections without a session, each of them with what a stream needs
  size_t sessions = 0;  // descriptors for sessions and their connections
};

// `wanted`: how many connections may wait, where there are descriptors enough.
DescriptorPlan PlanDescriptors(size_t limit, size_t wanted);
// For this process.
DescriptorPlan PlanOwnDescriptors(size_t wanted);

// What a session needs at most, with its connections and with what passes through in a message.
size_t DescriptorsOfSession(uint32_t lanes, bool local);

}  // namespace longwire::admission
