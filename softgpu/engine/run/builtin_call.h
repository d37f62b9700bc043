// What handlers of the device library's functions read and write: the call's arguments and result
// of a lane.
#pragma once

#include <algorithm>
#include <cstring>

#include "softgpu/engine/run/machine.h"

namespace softgpu {

inline const CallSite& Site(const Instruction& i) { return *static_cast<const CallSite*>(i.data); }

template <class T>
T Argument(const Warp& w, const Instruction& i, int lane, size_t index) {
  T value{};
  if (index < Site(i).arguments.size()) {
    const LocalSlot& slot = Site(i).arguments[index];
    std::memcpy(&value, reinterpret_cast<const void*>(w.LocalAddress(lane) + slot.offset),
                std::min<size_t>(sizeof value, slot.bytes));
  }
  return value;
}

template <class T>
void Result(const Warp& w, const Instruction& i, int lane, T value) {
  if (Site(i).results.empty()) return;
  const LocalSlot& slot = Site(i).results[0];
  std::memcpy(reinterpret_cast<void*>(w.LocalAddress(lane) + slot.offset), &value,
              std::min<size_t>(sizeof value, slot.bytes));
}

}  // namespace softgpu
