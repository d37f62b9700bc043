// What the daemon serves and to whom.
#pragma once

#include "proto/transport.pb.h"
#include "server/daemon/peer.h"
#include "server/daemon/session_table.h"

namespace longwire::daemon {

// As the peer may see it.
transport::InspectReply Inspect(SessionTable& table, const Peer& peer);
// As an administrator sees it.
transport::InspectReply InspectAll(SessionTable& table);

}  // namespace longwire::daemon
