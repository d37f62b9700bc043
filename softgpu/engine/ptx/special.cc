#include "softgpu/engine/ptx/special.h"

#include <algorithm>
#include <array>

namespace softgpu {
namespace {

struct SpecialEntry {
  std::string_view name;
  Special id;
  bool wide = false;
};

constexpr std::array kSpecials = {
    SpecialEntry{"%clock", Special::kClock},
    SpecialEntry{"%clock64", Special::kClock64, true},
    SpecialEntry{"%clock_hi", Special::kClockHi},
    SpecialEntry{"%cluster_ctaid.x", Special::kClusterCtaX},
    SpecialEntry{"%cluster_ctaid.y", Special::kClusterCtaY},
    SpecialEntry{"%cluster_ctaid.z", Special::kClusterCtaZ},
    SpecialEntry{"%cluster_ctarank", Special::kClusterCtaRank},
    SpecialEntry{"%cluster_nctaid.x", Special::kClusterNctaX},
    SpecialEntry{"%cluster_nctaid.y", Special::kClusterNctaY},
    SpecialEntry{"%cluster_nctaid.z", Special::kClusterNctaZ},
    SpecialEntry{"%cluster_nctarank", Special::kClusterNctaRank},
    SpecialEntry{"%clusterid.x", Special::kClusterX},
    SpecialEntry{"%clusterid.y", Special::kClusterY},
    SpecialEntry{"%clusterid.z", Special::kClusterZ},
    SpecialEntry{"%ctaid.x", Special::kCtaidX},
    SpecialEntry{"%ctaid.y", Special::kCtaidY},
    SpecialEntry{"%ctaid.z", Special::kCtaidZ},
    SpecialEntry{"%dynamic_smem_size", Special::kDynamicSharedBytes},
    SpecialEntry{"%envreg1", Special::kEnvreg1},
    SpecialEntry{"%envreg2", Special::kEnvreg2},
    SpecialEntry{"%globaltimer", Special::kGlobaltimer, true},
    SpecialEntry{"%globaltimer_hi", Special::kGlobaltimerHi},
    SpecialEntry{"%globaltimer_lo", Special::kGlobaltimerLo},
    SpecialEntry{"%gridid", Special::kGridid, true},
    SpecialEntry{"%is_explicit_cluster", Special::kIsExplicitCluster},
    SpecialEntry{"%laneid", Special::kLaneid},
    SpecialEntry{"%lanemask_eq", Special::kLanemaskEq},
    SpecialEntry{"%lanemask_ge", Special::kLanemaskGe},
    SpecialEntry{"%lanemask_gt", Special::kLanemaskGt},
    SpecialEntry{"%lanemask_le", Special::kLanemaskLe},
    SpecialEntry{"%lanemask_lt", Special::kLanemaskLt},
    SpecialEntry{"%nclusterid.x", Special::kNclusterX},
    SpecialEntry{"%nclusterid.y", Special::kNclusterY},
    SpecialEntry{"%nclusterid.z", Special::kNclusterZ},
    SpecialEntry{"%nctaid.x", Special::kNctaidX},
    SpecialEntry{"%nctaid.y", Special::kNctaidY},
    SpecialEntry{"%nctaid.z", Special::kNctaidZ},
    SpecialEntry{"%nsmid", Special::kNsmid},
    SpecialEntry{"%ntid.x", Special::kNtidX},
    SpecialEntry{"%ntid.y", Special::kNtidY},
    SpecialEntry{"%ntid.z", Special::kNtidZ},
    SpecialEntry{"%nwarpid", Special::kNwarpid},
    SpecialEntry{"%reserved_smem_offset_0", Special::kReservedSharedBegin},
    SpecialEntry{"%reserved_smem_offset_1", Special::kReservedSharedMiddle},
    SpecialEntry{"%reserved_smem_offset_begin", Special::kReservedSharedBegin},
    SpecialEntry{"%reserved_smem_offset_cap", Special::kReservedSharedEnd},
    SpecialEntry{"%reserved_smem_offset_end", Special::kReservedSharedEnd},
    SpecialEntry{"%smid", Special::kSmid},
    SpecialEntry{"%tid.x", Special::kTidX},
    SpecialEntry{"%tid.y", Special::kTidY},
    SpecialEntry{"%tid.z", Special::kTidZ},
    SpecialEntry{"%total_smem_size", Special::kTotalSharedBytes},
    SpecialEntry{"%warpid", Special::kWarpid},
    SpecialEntry{"WARP_SZ", Special::kWarpSize},
};

}  // namespace

std::optional<SpecialName> FindSpecial(std::string_view name) {
  auto it = std::lower_bound(kSpecials.begin(), kSpecials.end(), name,
                             [](const SpecialEntry& a, std::string_view b) { return a.name < b; });
  if (it == kSpecials.end() || it->name != name) return std::nullopt;
  return SpecialName{it->id, it->wide};
}

}  // namespace softgpu
