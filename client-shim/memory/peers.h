// Which devices can access the allocations of which others. A chunk is mapped for its own device
// only; peer access between contexts opens all allocations of a device.
#pragma once

#include <cstdint>
#include <vector>

#include "client-shim/context/context.h"

namespace longwire::shim {

// Grants `accessor`'s device access to the allocations of `owner`'s device, or revokes it.
void AddPeer(Context* accessor, Context* owner);
void RemovePeer(Context* accessor, Context* owner);
// The same for a pool, whose memory lies among the other allocations. It is never revoked.
void AddPoolPeer(int accessor, int owner);
// The context ends: access that it has or gave is revoked, in the worker's driver too.
void DropPeers(Context* context);

// Grants access to a mapped range of the owner's memory to all devices that can have peer access.
// Returns these devices, the owner first.
std::vector<int> LetPeersReach(int owner, uint64_t address, uint64_t bytes);

// As cuDeviceCanAccessPeer. Never between devices of different servers.
CUresult CanAccessPeer(int* can, int accessor, int owner);

// Whether `accessor` can access the allocations of `owner`; both are devices.
bool IsPeer(int accessor, int owner);

}  // namespace longwire::shim
