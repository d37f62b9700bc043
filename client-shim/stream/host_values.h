// Values in pinned memory that a stream writes or waits for. They happen in this process, at that
// point of the stream: a value that is written comes after what the stream's work wrote, and work
// behind a wait sees what the program wrote before the value.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "client-shim/stream/stream.h"

namespace longwire::shim {

enum class HostValueKind { kWrite, kWait };

struct HostValue {
  HostValueKind kind = HostValueKind::kWrite;
  uint64_t address = 0;
  uint64_t value = 0;
  unsigned flags = 0;  // of a wait: CUstreamWaitValue_flags
  uint32_t bytes = 4;  // or 8
};

// CUDA_ERROR_NOT_SUPPORTED while the stream captures.
CUresult QueueHostValue(Stream* stream, const HostValue& value);

}  // namespace longwire::shim
