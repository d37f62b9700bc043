// What tenants and the scheduler have used, for `longwire status` and for Prometheus.
#pragma once

#include "proto/transport.pb.h"
#include "server/daemon/sessions/session_table.h"
#include "server/daemon/settings/peer.h"
#include "server/protocol/warden.h"

namespace longwire::daemon {

// Adds them to a reply that has the devices and the caller's sessions already. `stats` is nullptr
// while the warden does not answer. A caller that is no administrator sees its own tenant only.
void AddFigures(SessionTable& table, const warden::Stats* stats, const Peer& peer,
                transport::InspectReply* reply);

}  // namespace longwire::daemon
