#include "scheduler/pool/order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace longwire::scheduler::pool {

uint32_t ClassOf(const Wish& wish, uint64_t patience) {
  return wish.priority + (wish.waited >= patience ? 1 : 0);
}

Order::Order(const std::vector<HostState>& hosts, const std::vector<Wish>& wishes,
             const Turns& turns, const std::set<std::string>& first, uint64_t patience)
    : wishes_(wishes) {
  for (const HostState& host : hosts) {
    all_.sessions += host.sessions_limit;
    for (const DeviceState& device : host.devices) all_.bytes += device.total;
    for (const auto& [tenant, held] : host.held) {
      held_[tenant].sessions += held.sessions;
      held_[tenant].bytes += held.bytes;
    }
  }
  std::vector<size_t> by_age(wishes.size());
  std::iota(by_age.begin(), by_age.end(), size_t{0});
  std::ranges::stable_sort(by_age, {}, [&](size_t i) { return wishes[i].age; });
  for (size_t i : by_age) {
    const Wish& wish = wishes[i];
    const uint32_t its_class = ClassOf(wish, patience);
    Line& line =
        classes_[{-static_cast<int64_t>(its_class), !first.contains(wish.number)}][wish.tenant];
    auto served = turns.find({its_class, wish.tenant});
    if (line.wishes.empty()) line.held = held_[wish.tenant];
    line.served = served == turns.end() ? 0 : served->second;
    line.wishes.push_back(i);
  }
}

double Order::PartOf(const Held& held) const {
  const auto part = [](uint64_t of, uint64_t all) {
    return static_cast<double>(of) / static_cast<double>(std::max<uint64_t>(1, all));
  };
  return std::max(part(held.bytes, all_.bytes), part(held.sessions, all_.sessions));
}

bool Order::ComesBefore(const Line& one, const Line& other) const {
  const auto key = [this](const Line& line) {
    const Wish& wish = wishes_[line.wishes[line.next]];
    const uint32_t weight = std::max(1u, wish.weight);
    // In millionths, so that what is the same is not told apart by how it was rounded. Where two
    // have as much, one more is less of what the heavier one is due. Of those that are alike each
    // is looked at once before one is looked at again.
    return std::tuple(std::llround(PartOf(line.held) / weight * 1e6), -static_cast<int64_t>(weight),
                      line.next, line.served, wish.age, wish.number);
  };
  return key(one) < key(other);
}

std::optional<size_t> Order::Next() {
  if (classes_.empty()) return std::nullopt;
  Lines& lines = classes_.begin()->second;
  auto best = lines.begin();
  for (auto one = std::next(best); one != lines.end(); ++one) {
    if (ComesBefore(one->second, best->second)) best = one;
  }
  const size_t index = best->second.wishes[best->second.next++];
  if (best->second.next == best->second.wishes.size()) lines.erase(best);
  if (lines.empty()) classes_.erase(classes_.begin());
  return index;
}

void Order::Charge(const Wish& wish) {
  Held& held = held_[wish.tenant];
  ++held.sessions;
  held.bytes += BytesOf(wish);
  for (auto& [its_class, lines] : classes_) {
    auto line = lines.find(wish.tenant);
    if (line != lines.end()) line->second.held = held;
  }
}

std::vector<size_t> OrderOf(const std::vector<HostState>& hosts, const std::vector<Wish>& wishes,
                            const Turns& turns, const std::set<std::string>& first,
                            uint64_t patience) {
  Order order(hosts, wishes, turns, first, patience);
  std::vector<size_t> indices;
  while (auto index = order.Next()) {
    order.Charge(wishes[*index]);
    indices.push_back(*index);
  }
  return indices;
}

}  // namespace longwire::scheduler::pool
