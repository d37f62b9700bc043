#include "softgpu/driver/device/peers.h"

#include <algorithm>

#include "softgpu/driver/memory/address_space.h"

namespace softgpu {

void RefreshPeerAccess(int accessor, int owner) {
  auto all = Driver::Get().contexts.All();
  bool enabled = std::any_of(
      all.begin(), all.end(), [&](const auto& context) LONGWIRE_REQUIRES(Driver::mutex) {
        return context->device == accessor &&
               std::any_of(context->peers.begin(), context->peers.end(),
                           [&](const Context* peer) { return peer->device == owner; });
      });
  AddressSpace::Get().SetPeerAccess(owner, accessor, enabled);
}

void ForgetPeers(Context& context) {
  base::MutexLock lock(Driver::mutex);
  auto peers = std::move(context.peers);
  context.peers.clear();
  for (Context* peer : peers) RefreshPeerAccess(context.device, peer->device);
  for (auto& other : Driver::Get().contexts.All()) {
    if (other->peers.erase(&context) != 0) RefreshPeerAccess(other->device, context.device);
  }
}

}  // namespace softgpu
