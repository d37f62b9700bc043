// The jobs of the keeper's other threads (job_thread.h).
#pragma once

#include "server/keeper/chunk_pool.h"

namespace longwire::keeper {

void Scrub(DeviceMemory& device, ScrubJob& job);
// `clears` is false only to prove that the scrubbing test can fail.
void Swap(DeviceMemory& device, bool clears, SwapJob& job);

}  // namespace longwire::keeper
