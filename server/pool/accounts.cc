#include "server/pool/accounts.h"

#include <algorithm>

#include "server/pool/keys.h"

namespace longwire::pool {
namespace {

bool Has(const Claim& claim, const Device& device) {
  return std::ranges::count(claim.devices(), device.ordinal()) != 0;
}

// A placer that does not know what it is to be alone places nothing there.
void SetFormat(Capacity* capacity) {
  const bool alone = std::ranges::any_of(capacity->devices(), &Device::alone);
  if (alone) {
    capacity->set_format(kFormatAlone);
  } else if (capacity->format() == kFormatAlone) {
    capacity->set_format(kUsualFormat);
  }
}

void Add(const Claim& claim, Capacity* capacity) {
  capacity->set_sessions(capacity->sessions() + 1);
  for (Device& device : *capacity->mutable_devices()) {
    if (!Has(claim, device)) continue;
    device.set_bytes(device.bytes() + BytesOn(claim, device));
    device.set_sessions(device.sessions() + 1);
    if (claim.alone()) device.set_alone(true);
  }
  SetFormat(capacity);
}

}  // namespace

uint64_t BytesOn(const Claim& claim, const Device& device) {
  return std::min<uint64_t>(claim.bytes(), device.total());
}

bool Take(const Claim& claim, Capacity* capacity) {
  if (capacity->cordoned() || capacity->sessions() >= capacity->sessions_limit()) return false;
  int found = 0;
  for (const Device& device : capacity->devices()) {
    if (!Has(claim, device)) continue;
    ++found;
    if (device.cordoned() || device.bytes() + BytesOn(claim, device) > device.total()) return false;
    if (device.alone() || (claim.alone() && device.sessions() != 0)) return false;
  }
  if (found == 0 || found != claim.devices_size()) return false;
  Add(claim, capacity);
  return true;
}

void GiveBack(const Claim& claim, Capacity* capacity) {
  capacity->set_sessions(capacity->sessions() - std::min(1u, capacity->sessions()));
  for (Device& device : *capacity->mutable_devices()) {
    if (!Has(claim, device)) continue;
    device.set_bytes(device.bytes() - std::min<uint64_t>(device.bytes(), BytesOn(claim, device)));
    device.set_sessions(device.sessions() - std::min(1u, device.sessions()));
    if (claim.alone()) device.set_alone(false);
  }
  SetFormat(capacity);
}

bool TakeAlso(int32_t ordinal, Claim* claim, Capacity* capacity) {
  for (const Device& device : capacity->devices()) {
    if (device.ordinal() != ordinal) continue;
    if (Has(*claim, device)) return true;
    if (device.cordoned() || device.alone() || (claim->alone() && device.sessions() != 0) ||
        device.bytes() + BytesOn(*claim, device) > device.total()) {
      return false;
    }
    GiveBack(*claim, capacity);
    claim->add_devices(ordinal);
    Add(*claim, capacity);
    return true;
  }
  return false;
}

void SetDevices(const Claim& as, Claim* claim, Capacity* capacity) {
  GiveBack(*claim, capacity);
  *claim->mutable_devices() = as.devices();
  Add(*claim, capacity);
}

void Rewrite(const Claims& claims, Capacity* capacity) {
  capacity->set_sessions(0);
  for (Device& device : *capacity->mutable_devices()) {
    device.set_bytes(0);
    device.set_sessions(0);
    device.set_alone(false);
  }
  SetFormat(capacity);
  for (const auto& [number, claim] : claims) Add(claim, capacity);
}

bool Balances(const Claims& claims, const Capacity& capacity) {
  Capacity rewritten = capacity;
  Rewrite(claims, &rewritten);
  return rewritten.SerializeAsString() == capacity.SerializeAsString();
}

}  // namespace longwire::pool
