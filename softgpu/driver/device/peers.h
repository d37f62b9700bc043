// Peer access between contexts.
#pragma once

#include "softgpu/driver/state/driver.h"

namespace softgpu {

// A device reaches another's memory while one of its contexts may.
void RefreshPeerAccess(int accessor, int owner) LONGWIRE_REQUIRES(Driver::mutex);
// Takes the context out of every pair that it is part of.
void ForgetPeers(Context& context) LONGWIRE_EXCLUDES(Driver::mutex);

}  // namespace softgpu
