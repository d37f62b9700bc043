#include "client-shim/memory/peers.h"

#include <set>
#include <utility>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/context/properties.h"
#include "client-shim/memory/device_memory.h"
#include "client-shim/session/session.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/calls.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim {
namespace {

using Pair = std::pair<Context*, Context*>;  // accessor, owner

struct Peers {
  // Held while access is opened or closed, which waits where memory is being leased.
  base::Mutex change_mutex LONGWIRE_ACQUIRED_BEFORE(mutex);
  base::Mutex mutex{base::ranks::kPeers};
  std::set<Pair> pairs LONGWIRE_GUARDED_BY(mutex);
  std::set<std::pair<int, int>> of_pools LONGWIRE_GUARDED_BY(mutex);  // devices: accessor, owner
};

Peers& ThePeers() {
  static NeverDestroyed<Peers> peers;
  return *peers;
}

bool DevicePair(const Peers& peers, int accessor, int owner) LONGWIRE_REQUIRES(peers.mutex) {
  for (const Pair& pair : peers.pairs) {
    if (pair.first->device == accessor && pair.second->device == owner) return true;
  }
  return peers.of_pools.count({accessor, owner}) != 0;
}

// A device has access to another's memory while a pair of their contexts or a pool grants it.
template <class Change>
void Update(int accessor, int owner, Change change) {
  Peers& peers = ThePeers();
  base::MutexLock changing(peers.change_mutex);
  base::MutexLock lock(peers.mutex);
  bool before = DevicePair(peers, accessor, owner);
  change(peers);
  bool after = DevicePair(peers, accessor, owner);
  lock.Unlock();
  if (before == after) return;
  MemoryOf(owner)->SetPeerAccess(FindDevice(accessor)->server_ordinal, after);
}

}  // namespace

void AddPeer(Context* accessor, Context* owner) {
  Update(accessor->device, owner->device, [&](Peers& peers) {
    peers.mutex.AssertHeld();
    peers.pairs.insert({accessor, owner});
  });
}

void RemovePeer(Context* accessor, Context* owner) {
  Update(accessor->device, owner->device, [&](Peers& peers) {
    peers.mutex.AssertHeld();
    peers.pairs.erase({accessor, owner});
  });
}

void AddPoolPeer(int accessor, int owner) {
  Update(accessor, owner, [&](Peers& peers) {
    peers.mutex.AssertHeld();
    peers.of_pools.insert({accessor, owner});
  });
}

void DropPeers(Context* context) {
  std::vector<Pair> pairs;
  Peers& peers = ThePeers();
  {
    base::MutexLock lock(peers.mutex);
    for (const Pair& pair : peers.pairs) {
      if (pair.first == context || pair.second == context) pairs.push_back(pair);
    }
  }
  for (auto [accessor, owner] : pairs) {
    calls::cuCtxDisablePeerAccess disable;
    disable.peerContext = owner->number.load();
    accessor->session->CallAndWait({accessor->number.load(), nullptr, 0}, disable);
    RemovePeer(accessor, owner);
  }
}

CUresult CanAccessPeer(int* can, int accessor, int owner) {
  const Device *one = FindDevice(accessor), *other = FindDevice(owner);
  *can = 0;
  if (one == nullptr || other == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (one->session != other->session) return CUDA_SUCCESS;
  return forward::cuDeviceCanAccessPeer(can, accessor, owner);
}

std::vector<int> LetPeersReach(int owner, uint64_t address, uint64_t bytes) {
  std::vector<int> accessors = {owner};
  for (int device = 0; FindDevice(device) != nullptr; ++device) {
    int can = 0;
    if (device == owner) continue;
    if (CanAccessPeer(&can, device, owner) != CUDA_SUCCESS || can == 0) continue;
    const Device* found = FindDevice(device);
    SubmitAccess(*found->session, address, bytes, found->server_ordinal, true);
    accessors.push_back(device);
  }
  return accessors;
}

bool IsPeer(int accessor, int owner) {
  Peers& peers = ThePeers();
  base::MutexLock lock(peers.mutex);
  return DevicePair(peers, accessor, owner);
}

}  // namespace longwire::shim
