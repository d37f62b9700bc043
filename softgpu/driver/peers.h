// Peer access between contexts.
#pragma once

#include "softgpu/driver/driver.h"

namespace softgpu {

// Takes the context out of every pair that it is part of.
void ForgetPeers(Context& context);

}  // namespace softgpu
