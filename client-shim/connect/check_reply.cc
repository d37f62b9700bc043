#include "client-shim/connect/check_reply.h"

#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/memory_sizes.h"
#include "wire/guards.h"
#include "wire/limits.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kLargestGranularity = uint64_t{1} << 30;

bool IsPowerOfTwo(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

// A size of memory, 0 included, that chunks can have.
bool IsSize(uint64_t bytes, uint64_t granularity) {
  return bytes <= base::kMaxMemoryBytes && bytes % granularity == 0;
}

// Without overflow, for windows that do not wrap around (wire/open.cc).
bool Holds(const wire::Window& outer, const wire::Window& inner) {
  return inner.base >= outer.base && inner.bytes <= outer.bytes &&
         inner.base - outer.base <= outer.bytes - inner.bytes;
}

bool Overlap(const wire::Window& a, const wire::Window& b) {
  return a.base < b.base + b.bytes && b.base < a.base + a.bytes;
}

std::string InWords(const wire::Window& window) {
  char text[64];
  std::snprintf(text, sizeof(text), "%#llx bytes at %#llx",
                static_cast<unsigned long long>(window.bytes),
                static_cast<unsigned long long>(window.base));
  return text;
}

std::string ProblemOfWindows(const wire::OpenReply& reply, const Asked& asked) {
  static const bool guard_off = wire::GuardIsOff("windows");
  const uint64_t granularity = reply.allocation_granularity;
  std::vector<wire::Window> seen;
  for (const wire::DeviceDescription& device : reply.devices) {
    const wire::Window& window = device.window;
    bool offered = std::ranges::any_of(
        asked.windows, [&](const wire::Window& candidate) { return Holds(candidate, window); });
    bool whole =
        window.bytes != 0 && window.base % granularity == 0 && IsSize(window.bytes, granularity);
    bool apart = std::ranges::none_of(
        seen, [&](const wire::Window& other) { return Overlap(other, window); });
    if ((!offered || !whole || !apart) && !guard_off) {
      return "it puts a device's memory where none was offered (" + InWords(window) + ")";
    }
    seen.push_back(window);
  }
  if (reply.segment_base == 0) return "";
  const wire::Window segment{reply.segment_base, reply.segment_bytes};
  bool offered = std::ranges::any_of(
      asked.windows, [&](const wire::Window& candidate) { return Holds(candidate, segment); });
  bool good = offered && segment.bytes != 0 && segment.base % base::kDeviceGranularityBytes == 0 &&
              std::ranges::none_of(
                  seen, [&](const wire::Window& other) { return Overlap(other, segment); });
  if (good || guard_off) return "";
  return "it puts pinned memory where no room was offered (" + InWords(segment) + ")";
}

std::string ProblemOfLeases(const wire::DeviceDescription& device, uint64_t granularity) {
  uint64_t sum = 0;
  for (const wire::LeasedChunk& chunk : device.leased) {
    bool good = chunk.bytes != 0 && IsSize(chunk.bytes, granularity);
    sum += good ? chunk.bytes : 0;
    if (!good || sum > device.window.bytes) return "it lends memory of an impossible size";
  }
  return "";
}

// Attributes by which the client divides or counts.
struct Bounds {
  CUdevice_attribute attribute;
  int least, most;
};
constexpr Bounds kBounds[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1, 1 << 16},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1, 1 << 10},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1, 1 << 16},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1, 1 << 20},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 0, 1 << 24},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0, 1 << 30},
};

std::string ProblemOfAttributes(const wire::DeviceDescription& device) {
  for (const wire::DeviceAttribute& known : device.attributes) {
    for (const Bounds& bounds : kBounds) {
      if (known.attribute != bounds.attribute || known.code != CUDA_SUCCESS) continue;
      if (known.value >= bounds.least && known.value <= bounds.most) continue;
      return "its device has " + std::to_string(known.value) + " as attribute " +
             std::to_string(known.attribute);
    }
  }
  return "";
}

std::string ProblemOfSizes(const wire::OpenReply& reply, const Asked& asked) {
  const uint64_t granularity = reply.allocation_granularity;
  if (!IsPowerOfTwo(granularity) || granularity < base::kDeviceGranularityBytes ||
      granularity > kLargestGranularity) {
    return "it allocates memory by " + std::to_string(granularity) + " bytes";
  }
  if (reply.upload_window < wire::kCopyPieceBytes ||
      reply.upload_window > wire::kUploadWindowBytes) {
    return "its window for uploads has " + std::to_string(reply.upload_window) + " bytes";
  }
  if (reply.stream_share == 0) return "it lets no call be queued";
  if (!IsSize(reply.largest_chunk, granularity)) {
    return "its largest chunk has " + std::to_string(reply.largest_chunk) + " bytes";
  }
  if (reply.lanes > asked.lanes) return "it has more lanes than were asked for";
  if (reply.bridge_lanes > asked.bridge_lanes || reply.bridge_lanes > reply.lanes) {
    return "it has more lanes for bridges than were asked for";
  }
  bool good = asked.shares_memory && IsSize(reply.segment_bytes, base::kDeviceGranularityBytes);
  if (reply.segment_bytes != 0 && !good) {
    return "its segment for pinned memory has " + std::to_string(reply.segment_bytes) + " bytes";
  }
  return "";
}

}  // namespace

std::string ProblemOfReply(const wire::OpenReply& reply, const Asked& asked) {
  std::string problem = ProblemOfSizes(reply, asked);
  if (problem.empty()) problem = ProblemOfWindows(reply, asked);
  for (const wire::DeviceDescription& device : reply.devices) {
    if (problem.empty()) problem = ProblemOfLeases(device, reply.allocation_granularity);
    if (problem.empty()) problem = ProblemOfAttributes(device);
  }
  return problem;
}

}  // namespace longwire::shim
