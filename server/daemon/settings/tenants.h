// Identities, and the tenants to which the configuration assigns them.
//
// An identity is the common name of a verified client certificate, "uid:N" for a program at the
// local socket, or "loopback" for a connection without TLS from this host.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string_view>

#include "server/config/live_config.h"

namespace longwire::daemon {

inline constexpr std::string_view kLoopbackIdentity = "loopback";
inline constexpr std::string_view kUidPrefix = "uid:";

// The tenant of the identity; nullptr when there is none. In a configuration without tenants every
// identity belongs to "default", which has no limits.
std::shared_ptr<const config::Tenant> FindTenant(const config::LiveConfig::Snapshot& config,
                                                 std::string_view identity);

// True if the configuration names a uid other than `own`.
bool NamesOtherUsers(const config::Config& config, uid_t own);

}  // namespace longwire::daemon
