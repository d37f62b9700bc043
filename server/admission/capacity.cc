#include "server/admission/capacity.h"

#include "wire/guards.h"

namespace longwire::admission {

std::optional<Capacity::Share> Capacity::Take(const std::string& party, Limits limits, size_t own) {
  base::MutexLock lock(mutex_);
  Party& state = parties_[party];
  // Capacity are alike: the party's own ones are used first.
  const bool is_own = state.count - state.shared < own;
  const bool full = !is_own && (state.shared >= limits.each || shared_ >= limits.all);
  if (full && !wire::GuardIsOff("waiting")) {
    if (state.count == 0) parties_.erase(party);
    refused_.fetch_add(1);
    return std::nullopt;
  }
  ++state.count;
  ++taken_;
  if (!is_own) {
    ++state.shared;
    ++shared_;
  }
  return Share(this, party);
}

size_t Capacity::taken() {
  base::MutexLock lock(mutex_);
  return taken_;
}

void Capacity::Share::Leave() {
  if (capacity_ == nullptr) return;
  base::MutexLock lock(capacity_->mutex_);
  auto found = capacity_->parties_.find(party_);
  Party& state = found->second;
  if (state.shared != 0) {
    --state.shared;
    --capacity_->shared_;
  }
  --capacity_->taken_;
  if (--state.count == 0) capacity_->parties_.erase(found);
  capacity_ = nullptr;
}

}  // namespace longwire::admission
