// A program on several hosts: where one alone has not enough devices for it.
#include <algorithm>
#include <tuple>

#include "scheduler/pool/pool.h"

namespace longwire::scheduler::pool {
namespace {

// What one host could give.
struct Offer {
  const HostState* host;
  std::vector<int32_t> devices;
};

// What the program needs at each of its hosts, at least.
Wish OnePartOf(const Wish& wish) {
  Wish part = wish;
  part.devices = 1;
  return part;
}

// Devices that nobody uses: turns of several hosts do not agree, and kernels that wait for each
// other would stall.
std::vector<int32_t> Unused(const Wish& part, const HostState& host) {
  std::vector<int32_t> devices;
  if (!host.gives_alone || !Obstacle(part, host).empty() || !WhyFull(part, host).empty()) {
    return devices;
  }
  for (const DeviceState& device : host.devices) {
    const bool fits = !device.cordoned && device.total != 0 && Need(part, device) <= device.total;
    if (fits && device.sessions == 0 && !device.alone) devices.push_back(device.ordinal);
  }
  return devices;
}

std::vector<Offer> OffersOf(const Wish& wish, const std::vector<HostState>& hosts,
                            const MayGive& may) {
  const Wish part = OnePartOf(wish);
  std::vector<Offer> offers;
  for (const HostState& host : hosts) {
    std::vector<int32_t> devices = Unused(part, host);
    if (devices.size() > wish.devices) devices.resize(wish.devices);
    // What is kept for others may be all of a host, or some of it.
    while (!devices.empty() && !may(host, devices)) devices.pop_back();
    if (!devices.empty()) offers.push_back({&host, std::move(devices)});
  }
  return offers;
}

// The smallest offer that suffices, or else the largest.
Offer TakeBest(const Wish& wish, size_t missing, const std::string& policy,
               std::vector<Offer>* offers) {
  auto best = std::ranges::max_element(*offers, [&](const Offer& one, const Offer& other) {
    const auto rank = [&](const Offer& offer) {
      const bool enough = offer.devices.size() >= missing;
      const auto size = static_cast<int64_t>(offer.devices.size());
      return std::tuple(enough, enough ? -size : size);
    };
    if (rank(one) != rank(other)) return rank(one) < rank(other);
    return IsBefore(wish, *other.host, *one.host, policy);
  });
  Offer offer = std::move(*best);
  offers->erase(best);
  if (offer.devices.size() > missing) offer.devices.resize(missing);
  return offer;
}

}  // namespace

std::vector<Part> ChooseApart(const Wish& wish, const std::vector<HostState>& hosts,
                              const std::string& policy, const MayGive& may) {
  if (wish.hosts < 2 || wish.devices < 2 || !wish.only.empty()) return {};
  std::vector<Offer> offers = OffersOf(wish, hosts, may);
  std::vector<Part> parts;
  size_t missing = wish.devices;
  while (missing != 0 && !offers.empty() && parts.size() < wish.hosts) {
    Offer offer = TakeBest(wish, missing, policy, &offers);
    missing -= offer.devices.size();
    Part& part = parts.emplace_back();
    part.host = offer.host->name;
    part.devices = std::move(offer.devices);
    for (const DeviceState& device : offer.host->devices) {
      if (std::ranges::count(part.devices, device.ordinal) == 0) continue;
      part.bytes = std::max(part.bytes, Need(wish, device));
    }
  }
  // One host alone is found without this.
  if (missing != 0 || parts.size() < 2) return {};
  return parts;
}

size_t FreeApart(const Wish& wish, const std::vector<HostState>& hosts) {
  const Wish part = OnePartOf(wish);
  size_t free = 0;
  for (const HostState& host : hosts) free += Unused(part, host).size();
  return free;
}

}  // namespace longwire::scheduler::pool
