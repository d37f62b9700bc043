// The CUresult values that link and daemon answer with; neither includes cuda.h.
#pragma once

#include <cstdint>

namespace longwire::transport {

inline constexpr int32_t kOutOfMemory = 2;
inline constexpr int32_t kDeviceUnavailable = 46;
inline constexpr int32_t kNoDevice = 100;
inline constexpr int32_t kLaunchFailed = 719;
inline constexpr int32_t kSystemDriverMismatch = 803;
inline constexpr int32_t kUnknown = 999;

}  // namespace longwire::transport
