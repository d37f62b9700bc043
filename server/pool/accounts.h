// What claims do to a host's capacity. cap/H is at every revision the sum of H's claims.
#pragma once

#include <map>
#include <string>

#include "server/pool/records.pb.h"

namespace longwire::pool {

using Claims = std::map<std::string, Claim>;  // by the session's number

// Of what the claim says, what counts on this device.
uint64_t BytesOn(const Claim& claim, const Device& device);
// False, and nothing changes, if it would be more than there is, or a device is not there.
[[nodiscard]] bool Take(const Claim& claim, Capacity* capacity);
// The opposite of Take.
void GiveBack(const Claim& claim, Capacity* capacity);
// The claim gets this device, too. False, and nothing changes, where there is no room.
[[nodiscard]] bool TakeAlso(int32_t ordinal, Claim* claim, Capacity* capacity);
// From now on it has the devices that `as` has, whatever else is promised there.
void SetDevices(const Claim& as, Claim* claim, Capacity* capacity);
// As if nothing were claimed, then all of `claims`, also where that is more than there is.
void Rewrite(const Claims& claims, Capacity* capacity);
// Whether it is what Rewrite would make.
bool Balances(const Claims& claims, const Capacity& capacity);

}  // namespace longwire::pool
