#include "server/daemon/sessions/identity_figures.h"

namespace longwire::daemon {

// Strangers could have any name: they are one.
IdentityFigures::Key IdentityFigures::Find(const Peer& peer) {
  if (peer.refused()) return {"", kOthers};
  Key key{peer.tenant->name(), peer.identity};
  if (counts_.contains(key) || counts_.size() < kIdentityLimit) return key;
  return {peer.tenant->name(), kOthers};
}

IdentityFigures::Key IdentityFigures::KeyOf(const Peer& peer) {
  base::MutexLock lock(mutex_);
  return Find(peer);
}

void IdentityFigures::Opened(const Peer& peer) {
  base::MutexLock lock(mutex_);
  ++counts_[Find(peer)].opened;
}

void IdentityFigures::Refused(const Peer& peer, RefusalReason reason) {
  base::MutexLock lock(mutex_);
  ++counts_[Find(peer)].refused;
  ++refusals_[peer.refused() ? "" : peer.tenant->name()][static_cast<size_t>(reason)];
}

void IdentityFigures::Ended(const Peer& peer, uint64_t bytes_up, uint64_t bytes_down,
                            double seconds) {
  base::MutexLock lock(mutex_);
  IdentityCounts& counts = counts_[Find(peer)];
  counts.bytes_up += bytes_up;
  counts.bytes_down += bytes_down;
  counts.seconds += seconds;
}

std::map<std::string, RefusalCounts> IdentityFigures::Refusals() {
  base::MutexLock lock(mutex_);
  return refusals_;
}

std::map<IdentityFigures::Key, IdentityCounts> IdentityFigures::Get() {
  base::MutexLock lock(mutex_);
  return counts_;
}

}  // namespace longwire::daemon
