// What is known of devices' health, in a reply that has the devices already.
#pragma once

#include "proto/transport.pb.h"
#include "server/protocol/warden.h"

namespace longwire::daemon {

void AddHealth(const warden::Stats& stats, transport::InspectReply* reply);

}  // namespace longwire::daemon
