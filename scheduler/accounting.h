// Who used how much GPU time: since the beginning, and within a sliding window.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

#include "scheduler/types.h"

namespace longwire::scheduler {

// A sum over the last `window`, kept in slots: what is older than the window, to a slot's length,
// no longer counts. Add is O(1), Sum O(slots).
class SlidingSum {
 public:
  explicit SlidingSum(Time window) : slot_length_(std::max(window / kSlots, Time{1})) {}

  void Add(Time now, Time amount);
  Time Sum(Time now) const;

 private:
  static constexpr int64_t kSlots = 60;
  struct Slot {
    int64_t number = -1;  // since the origin of time
    Time amount{0};
  };

  Time slot_length_;
  std::array<Slot, kSlots> slots_;
};

// Of a tenant or of a device.
struct GpuAccount {
  explicit GpuAccount(Time window) : recent(window) {}
  Time total{0};
  SlidingSum recent;
};

// Accounts are never dropped, so totals never run backwards: there are as many tenants as are
// configured and as many devices as the host has.
class Accounting {
 public:
  explicit Accounting(Time window) : window_(window), all_(window) {}

  // Good as long as this object.
  GpuAccount& OfTenant(const TenantName& tenant);
  GpuAccount& OfDevice(DeviceId device);

  void Add(Time now, GpuAccount& tenant, GpuAccount& device, Time used);

  // The account's part of all GPU time within the window, 0 to 1; 0 if there was none.
  double Share(Time now, const GpuAccount& tenant) const;
  // GPU time within the window by the window's length. Above 1 where sessions overlap.
  double Busy(Time now, const GpuAccount& device) const;

 private:
  const Time window_;
  std::map<TenantName, GpuAccount> tenants_;
  std::map<DeviceId, GpuAccount> devices_;
  GpuAccount all_;
};

}  // namespace longwire::scheduler
