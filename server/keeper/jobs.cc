#include "server/keeper/jobs.h"

namespace longwire::keeper {

void Scrub(DeviceMemory& device, ScrubJob& job) { job.code = device.Zero(job.handle, job.bytes); }

void Swap(DeviceMemory& device, bool clears, SwapJob& job) {
  for (HostPart& part : job.parts) {
    if (part.clear && clears) device.ClearHost(part);
  }
  switch (job.kind) {
    case SwapJob::Kind::kOut:
      job.code = device.CopyOut(job.handle, job.bytes, job.parts);
      break;
    case SwapJob::Kind::kBack:
      job.code = device.CopyIn(job.handle, job.bytes, job.parts);
      break;
    case SwapJob::Kind::kFill:
      job.code = device.Fill(job.handle, job.bytes, *job.from);
      job.from.reset();
      break;
    case SwapJob::Kind::kClear:
      break;
    case SwapJob::Kind::kPin: {
      std::byte* data = device.Pin(job.bytes);
      if (data != nullptr) job.parts.push_back({data, job.bytes});
      break;
    }
  }
}

}  // namespace longwire::keeper
