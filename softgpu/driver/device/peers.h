// Peer access between contexts.
#pragma once

#include "softgpu/driver/state/driver.h"

namespace softgpu {

// A device reaches another's memory while one of its contexts may. Driver::mutex held.
void RefreshPeerAccess(int accessor, int owner);
// Takes the context out of every pair that it is part of.
void ForgetPeers(Context& context);

}  // namespace softgpu
