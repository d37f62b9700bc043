// What is free, as the keeper writes it into a page of shared memory (server/protocol/info_page.h).
#include "server/worker/memory/keeper_client.h"
#include "wire/switches.h"

namespace longwire::worker {
namespace {

const bool kPages = !wire::IsSwitchedOff("info-pages");

}  // namespace

// What the session has changed by what its keepers do not answer: a page knows of that only when
// one of them was asked afterwards. What they answer a page knows before the answer, but other
// devices' pages do not.
uint64_t KeeperClient::Changes() const {
  uint64_t changes = said_;
  for (const KeeperClient* other : others_) changes += other->said_ + other->had_;
  return changes;
}

// With the lock, what is counted is also sent.
uint64_t KeeperClient::ChangesSaid() {
  base::MutexLock lock(held_mutex_);
  return Changes();
}

bool KeeperClient::KnownInfo(keeper::Info* info) const {
  const keeper::InfoView* view = view_;
  return view != nullptr && known_ == Changes() &&
         view->Read(info, std::chrono::steady_clock::now());
}

void KeeperClient::TakePage(const wire::Message& packet, uint64_t changes) {
  known_ = changes;
  if (packet.descriptors.empty() || !kPages) return;
  auto view = keeper::InfoView::Map(packet.descriptors.front());
  if (view == nullptr) return;
  view_ = view.get();
  views_.push_back(std::move(view));
}

}  // namespace longwire::worker
