// Special registers: what PTX calls them, and which there are.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace softgpu {

enum class Special : uint32_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kWarpSize,
  kSmid,
  kNsmid,
  kGridid,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kClock,
  kClockHi,
  kClock64,
  kGlobaltimer,
  kGlobaltimerLo,
  kGlobaltimerHi,
  kEnvreg1,
  kEnvreg2,
  kClusterX,
  kClusterY,
  kClusterZ,
  kNclusterX,
  kNclusterY,
  kNclusterZ,
  kClusterCtaX,
  kClusterCtaY,
  kClusterCtaZ,
  kClusterNctaX,
  kClusterNctaY,
  kClusterNctaZ,
  kClusterCtaRank,
  kClusterNctaRank,
  kIsExplicitCluster,
  kZero,
  kTotalSharedBytes,
  kDynamicSharedBytes,
  kReservedSharedBegin,
  kReservedSharedMiddle,
  kReservedSharedEnd,
  // Not in PTX text: where extern shared memory starts, the parameters' and locals' addresses.
  kDynamicSharedOffset,
  kParameterAddress,
  kFrameAddress,
};
struct SpecialName {
  Special id;
  bool wide;  // 64 bits
};
std::optional<SpecialName> FindSpecial(std::string_view name);

}  // namespace softgpu
