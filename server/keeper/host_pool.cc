#include "server/keeper/host_pool.h"

#include <iterator>

namespace longwire::keeper {

void HostPool::Add(std::byte* data, uint64_t bytes) {
  regions_[slots_] = data;
  first_of_[data] = slots_;
  for (uint64_t at = 0; at + slot_ <= bytes; at += slot_) clean_.insert(clean_.end(), slots_++);
}

void HostPool::Append(uint32_t slot, bool clear, std::vector<HostPart>* parts) const {
  auto region = std::prev(regions_.upper_bound(slot));
  std::byte* data = region->second + (slot - region->first) * slot_;
  if (!parts->empty() && slot != region->first) {
    HostPart& last = parts->back();
    if (last.clear == clear && last.data + last.bytes == data) {
      last.bytes += slot_;
      return;
    }
  }
  parts->push_back({data, slot_, clear});
}

bool HostPool::TakeFrom(Slots& slots, uint64_t* wanted, bool clear, std::vector<HostPart>* parts) {
  while (*wanted != 0 && !slots.empty()) {
    Append(*slots.begin(), clear, parts);
    slots.erase(slots.begin());
    ++used_;
    --*wanted;
  }
  return *wanted == 0;
}

std::vector<HostPart> HostPool::Take(uint64_t worker, uint64_t bytes) {
  std::vector<HostPart> parts;
  uint64_t wanted = (bytes + slot_ - 1) / slot_;
  if (wanted == 0 || wanted > room() / slot_) return parts;
  if (auto own = freed_.find(worker); own != freed_.end()) {
    TakeFrom(own->second, &wanted, false, &parts);
  }
  if (TakeFrom(clean_, &wanted, false, &parts) || TakeFrom(left_, &wanted, true, &parts)) {
    return parts;
  }
  for (auto& [other, slots] : freed_) {
    if (TakeFrom(slots, &wanted, true, &parts)) break;
  }
  return parts;
}

template <class Each>
void HostPool::ForSlots(const std::vector<HostPart>& parts, Each each) const {
  for (const HostPart& part : parts) {
    auto region = std::prev(first_of_.upper_bound(part.data));
    auto slot = region->second +
                static_cast<uint32_t>(static_cast<uint64_t>(part.data - region->first) / slot_);
    for (uint64_t at = 0; at < part.bytes; at += slot_) each(slot++);
  }
}

void HostPool::Free(uint64_t worker, const std::vector<HostPart>& parts) {
  Slots& to = worker == 0 ? left_ : freed_[worker];
  ForSlots(parts, [&](uint32_t slot) {
    to.insert(slot);
    --used_;
  });
}

void HostPool::Gone(uint64_t worker) {
  auto own = freed_.find(worker);
  if (own == freed_.end()) return;
  left_.merge(own->second);
  freed_.erase(own);
}

std::vector<HostPart> HostPool::NextClears() {
  std::vector<HostPart> parts;
  for (size_t i = 0; i < kClearAtOnce && !left_.empty(); ++i) {
    Append(*left_.begin(), true, &parts);
    left_.erase(left_.begin());
    ++clearing_;
  }
  return parts;
}

void HostPool::Cleared(const std::vector<HostPart>& parts) {
  ForSlots(parts, [&](uint32_t slot) {
    clean_.insert(slot);
    --clearing_;
  });
}

}  // namespace longwire::keeper
