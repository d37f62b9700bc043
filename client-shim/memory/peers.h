// Which devices' work reaches the allocations of which others: a chunk is mapped for its own
// device; peer access between contexts opens all allocations of a device.
#pragma once

#include <cstdint>
#include <vector>

#include "client-shim/context/context.h"

namespace longwire::shim {

// Work of `accessor` may reach the allocations of `owner`'s device from now on, or not any more.
void AddPeer(Context* accessor, Context* owner);
void RemovePeer(Context* accessor, Context* owner);
// For the sake of a pool's memory, which lies among the other allocations: what the device has then
// it keeps.
void AddPoolPeer(int accessor, int owner);
// The context ends: what it was given and what it gave ends, in the worker's driver too.
void DropPeers(Context* context);

// Gives what is mapped of the owner's memory to all devices that can have it; which those are, with
// the owner.
std::vector<int> LetPeersReach(int owner, uint64_t address, uint64_t bytes);

// Whether the device's work may reach the other one's allocations.
bool IsPeer(int accessor, int owner);

}  // namespace longwire::shim
