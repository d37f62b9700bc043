// What is counted of programs, for whom asks.
#pragma once

#include <string>

#include "proto/transport.pb.h"
#include "server/daemon/sessions/session_table.h"
#include "server/daemon/settings/peer.h"

namespace longwire::daemon {

// The rules in force for a program of each tenant that the caller sees, and how often they were
// used.
void AddRules(SessionTable& table, const Peer& peer, const std::string& program,
              transport::InspectReply* reply);
void AddPrograms(SessionTable& table, const Peer& peer, transport::InspectReply* reply);

}  // namespace longwire::daemon
