// The CUresults that processes without cuda.h answer with.
#pragma once

#include <cstdint>

namespace longwire::base {

inline constexpr int32_t kSuccess = 0;
inline constexpr int32_t kInvalidValue = 1;
inline constexpr int32_t kOutOfMemory = 2;
inline constexpr int32_t kNotInitialized = 3;
inline constexpr int32_t kDeviceUnavailable = 46;
inline constexpr int32_t kNoDevice = 100;
inline constexpr int32_t kNotReady = 600;
inline constexpr int32_t kLaunchFailed = 719;
inline constexpr int32_t kNotPermitted = 800;
inline constexpr int32_t kNotSupported = 801;
inline constexpr int32_t kSystemNotReady = 802;
inline constexpr int32_t kSystemDriverMismatch = 803;
inline constexpr int32_t kUnknown = 999;

}  // namespace longwire::base
