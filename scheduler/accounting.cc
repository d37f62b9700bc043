#include "scheduler/accounting.h"

namespace longwire::scheduler {

void SlidingSum::Add(Time now, Time amount) {
  const int64_t number = now / slot_length_;
  Slot& slot = slots_[static_cast<size_t>(number % kSlots)];
  if (slot.number != number) slot = {number, Time{0}};
  slot.amount += amount;
}

Time SlidingSum::Sum(Time now) const {
  const int64_t oldest = now / slot_length_ - kSlots + 1;
  Time sum{0};
  for (const Slot& slot : slots_) {
    if (slot.number >= oldest) sum += slot.amount;
  }
  return sum;
}

GpuAccount& Accounting::OfTenant(const TenantName& tenant) {
  return tenants_.try_emplace(tenant, window_).first->second;
}

GpuAccount& Accounting::OfDevice(DeviceId device) {
  return devices_.try_emplace(device, window_).first->second;
}

void Accounting::Add(Time now, GpuAccount& tenant, GpuAccount& device, Time used) {
  for (GpuAccount* account : {&tenant, &device, &all_}) {
    account->total += used;
    account->recent.Add(now, used);
  }
}

double Accounting::Share(Time now, const GpuAccount& tenant) const {
  const Time all = all_.recent.Sum(now);
  if (all == Time{0}) return 0;
  return static_cast<double>(tenant.recent.Sum(now).count()) / static_cast<double>(all.count());
}

double Accounting::Busy(Time now, const GpuAccount& device) const {
  return static_cast<double>(device.recent.Sum(now).count()) / static_cast<double>(window_.count());
}

}  // namespace longwire::scheduler
