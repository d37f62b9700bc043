#include "scheduler/fair_queue.h"

#include <algorithm>
#include <limits>

#include "scheduler/state.h"

namespace longwire::scheduler {

template <class Change>
void FairQueue::Update(uint64_t tenant, Change change) {
  Share& share = shares_[tenant];
  if (!share.waiting.empty()) lines_.erase({share.virtual_time, tenant});
  change(share);
  if (!share.waiting.empty()) lines_.emplace(share.virtual_time, tenant);
}

void FairQueue::Push(Gang& gang) {
  AdvanceClock();
  Update(gang.tenant->id, [&](Share& share) {
    share.virtual_time = std::max(share.virtual_time, clock_);
    share.waiting.emplace(gang.arrival, &gang);
  });
  ++size_;
}

void FairQueue::Remove(Gang& gang) {
  AdvanceClock();
  Update(gang.tenant->id, [&](Share& share) { size_ -= share.waiting.erase(gang.arrival); });
}

Gang* FairQueue::Front() const {
  if (lines_.empty()) return nullptr;
  return shares_.at(lines_.begin()->second).waiting.begin()->second;
}

void FairQueue::Serve(const Tenant& tenant) {
  serving_ = &shares_[tenant.id];
  AdvanceClock();
}

void FairQueue::Stop() {
  AdvanceClock();
  serving_ = nullptr;
}

void FairQueue::Charge(const Tenant& tenant, Time used) {
  const double cost = static_cast<double>(used.count()) / tenant.weight;
  Update(tenant.id, [&](Share& share) { share.virtual_time += cost; });
}

void FairQueue::AdvanceClock() {
  double least = std::numeric_limits<double>::infinity();
  if (!lines_.empty()) least = lines_.begin()->first;
  if (serving_ != nullptr) least = std::min(least, serving_->virtual_time);
  if (least != std::numeric_limits<double>::infinity()) clock_ = std::max(clock_, least);
}

}  // namespace longwire::scheduler
