// Between the engine's own files: running warps and blocks.
#pragma once

#include "softgpu/engine/run/machine.h"

namespace softgpu {

enum class WarpResult { kReady, kBlocked, kDone, kFailed };

WarpResult RunWarp(Warp& w);  // one slice
void DiscardFrame(Frame* frame);

}  // namespace softgpu
