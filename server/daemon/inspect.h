// The daemon's devices, sessions and tenants, for `longwire status` and for metrics.
#pragma once

#include "proto/transport.pb.h"
#include "server/daemon/sessions/session_table.h"
#include "server/daemon/settings/peer.h"

namespace longwire::daemon {

// What the peer may see.
transport::InspectReply Inspect(SessionTable& table, const Peer& peer);
class Pool;
// Adds the pool, with the waiting programs of all, or of `tenant`; nothing without a pool.
void InspectPool(Pool* pool, bool all, const std::string& tenant, transport::InspectReply* reply);
// Adds that the server's host was taken out of service through its pool; without asking etcd.
void InspectWithdrawal(const Pool* pool, bool all, transport::InspectReply* reply);
// What an administrator may see.
transport::InspectReply InspectAll(SessionTable& table, const transport::InspectRequest& request);

}  // namespace longwire::daemon
