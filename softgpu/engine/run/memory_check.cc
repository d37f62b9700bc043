#include <bit>
#include <cstdio>

#include "softgpu/engine/run/cluster_memory.h"

namespace softgpu {

bool CheckLanes(Warp& w, const Instruction& ins, const uint64_t* lane, uint64_t bytes) {
  const PrivateMemory& memory = PrivateMemory::Get();
  for (uint32_t m = w.exec; m != 0; m &= m - 1) {
    uint64_t address = lane[std::countr_zero(m)];
    bool allowed = w.arena->Allows(address, bytes, w.device) || memory.Contains(address, bytes);
    bool aligned = (address & (bytes - 1)) == 0;
    if (allowed && aligned) continue;
    if (std::string absent = AbsentBlock(w, address); !absent.empty()) {
      Fault(w, ins, kIllegalAddress, absent);
      return false;
    }
    char text[96];
    std::snprintf(text, sizeof text, "%s address 0x%llx, %llu bytes",
                  allowed ? "misaligned" : "illegal", static_cast<unsigned long long>(address),
                  static_cast<unsigned long long>(bytes));
    Fault(w, ins, allowed ? kMisalignedAddress : kIllegalAddress, text);
    return false;
  }
  return true;
}

}  // namespace softgpu
