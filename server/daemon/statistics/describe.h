// What is counted of programs, for whom asks.
#pragma once

#include "proto/transport.pb.h"
#include "server/daemon/sessions/session_table.h"
#include "server/daemon/settings/peer.h"

namespace longwire::daemon {

void AddPrograms(SessionTable& table, const Peer& peer, transport::InspectReply* reply);

}  // namespace longwire::daemon
