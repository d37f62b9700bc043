// What the keeper's other threads do (job_thread.h).
#pragma once

#include "server/keeper/chunk_pool.h"

namespace longwire::keeper {

void Scrub(DeviceMemory& device, ScrubJob& job);
// `clears` is false only to show that the clearing's test can fail.
void Swap(DeviceMemory& device, bool clears, SwapJob& job);

}  // namespace longwire::keeper
