// Whether a wish fits a host, and where.
#include <algorithm>
#include <tuple>

#include "scheduler/placement/placement.h"
#include "scheduler/pool/pool.h"

namespace longwire::scheduler::pool {
namespace {

// Free for new promises.
uint64_t FreeOf(const DeviceState& device) {
  if (device.alone) return 0;
  return device.total - std::min(device.total, device.promised);
}

double BusyOf(const HostState& host) {
  double sum = 0;
  for (const DeviceState& device : host.devices) sum += device.busy;
  return host.devices.empty() ? 0 : sum / static_cast<double>(host.devices.size());
}

uint64_t FreeOf(const HostState& host) {
  uint64_t sum = 0;
  for (const DeviceState& device : host.devices) sum += FreeOf(device);
  return sum;
}

double SessionsPerDevice(const HostState& host) {
  return static_cast<double>(host.sessions) /
         static_cast<double>(std::max<size_t>(1, host.devices.size()));
}

bool HaveCommon(const Protocols& one, const Protocols& other) {
  if (one.newest == 0 || other.newest == 0) return true;
  return one.oldest <= other.newest && other.oldest <= one.newest;
}

std::string Text(const Protocols& protocols) {
  return "protocol " + std::to_string(protocols.oldest) + " to " + std::to_string(protocols.newest);
}

}  // namespace

uint64_t Need(const Wish& wish, const DeviceState& device) {
  return std::max(wish.bytes, std::min(kLeastBytes, device.total));
}

uint64_t BytesOf(const Wish& wish) { return wish.devices * std::max(wish.bytes, kLeastBytes); }

std::string Obstacle(const Wish& wish, const HostState& host) {
  if (!host.closed.empty()) return host.closed;
  if (!wish.only.empty() && wish.only != host.name) return "the program has to run elsewhere";
  if (std::ranges::count(wish.avoid, host.name) != 0) return "it has refused this program";
  for (const auto& [name, value] : wish.labels) {
    auto found = host.labels.find(name);
    if (found == host.labels.end() || found->second != value) {
      return "it has no label " + name + "=" + value;
    }
  }
  if (!HaveCommon(wish.protocols, host.protocols)) {
    return "it speaks " + Text(host.protocols) + ", the program " + Text(wish.protocols);
  }
  if (host.cordoned) return "it takes no new sessions";
  const auto fit = std::ranges::count_if(host.devices, [&](const DeviceState& device) {
    return !device.cordoned && device.total >= wish.bytes && device.total != 0;
  });
  if (static_cast<size_t>(fit) >= wish.devices && wish.devices != 0) return {};
  return "it has " + std::to_string(fit) + " such devices, and the program asks for " +
         std::to_string(wish.devices);
}

std::string WhyFull(const Wish& wish, const HostState& host, bool own) {
  if (!own && host.sessions >= host.sessions_limit) {
    return "it has all of its " + std::to_string(host.sessions_limit) + " sessions";
  }
  auto limit = host.of_tenants.find(wish.tenant);
  const uint64_t of_tenant =
      limit == host.of_tenants.end() ? host.sessions_of_tenant : limit->second;
  auto held = host.held.find(wish.tenant);
  if (of_tenant != 0 && held != host.held.end() && held->second.sessions >= of_tenant) {
    return "tenant '" + wish.tenant + "' has all of its " + std::to_string(of_tenant) +
           " sessions there";
  }
  auto identity = host.identities.find(wish.identity);
  if (host.sessions_of_identity != 0 && identity != host.identities.end() &&
      identity->second >= host.sessions_of_identity) {
    return "'" + wish.identity + "' has all of its " + std::to_string(host.sessions_of_identity) +
           " sessions there";
  }
  return {};
}

std::vector<Lack> LacksOf(const Wish& wish, const HostState& host) {
  std::vector<Lack> missing;
  for (const DeviceState& device : host.devices) {
    if (device.cordoned || device.total == 0 || device.total < wish.bytes) continue;
    const uint64_t need = Need(wish, device), free = FreeOf(device);
    missing.push_back({need - std::min(need, free), device.ordinal});
  }
  std::ranges::sort(missing, [](const Lack& one, const Lack& other) {
    return std::tie(one.bytes, one.device) < std::tie(other.bytes, other.device);
  });
  if (missing.size() > wish.devices) missing.resize(wish.devices);
  return missing;
}

uint64_t Lacks(const Wish& wish, const HostState& host) {
  uint64_t sum = 0;
  for (const Lack& lack : LacksOf(wish, host)) sum += lack.bytes;
  // A session that has to end first counts as memory that has to come back.
  return host.sessions < host.sessions_limit ? sum : sum + std::max(wish.bytes, kLeastBytes);
}

std::vector<int32_t> ChooseDevices(const Wish& wish, const HostState& host,
                                   const std::string& policy, bool by_hints) {
  if (!WhyFull(wish, host).empty()) return {};
  std::vector<DeviceLoad> loads;
  for (const DeviceState& device : host.devices) {
    const uint64_t need = Need(wish, device);
    const uint64_t free = by_hints ? std::min(FreeOf(device), device.free_seen) : FreeOf(device);
    if (device.cordoned || device.total == 0 || free < need) continue;
    loads.push_back({static_cast<DeviceId>(device.ordinal), device.total, FreeOf(device),
                     device.sessions, device.busy});
  }
  auto placement = MakePlacement(policy);
  if (placement == nullptr) placement = MakePlacement("least_loaded");
  PlacementAnswer answer = placement->Place(loads, {wish.devices, 0});
  std::vector<int32_t> devices(answer.devices.begin(), answer.devices.end());
  std::ranges::sort(devices);
  return devices;
}

std::string KindOf(const std::string& tenant, const std::string& program) {
  return tenant + "\n" + program;
}

size_t CachedFor(const Wish& wish, const HostState& host) {
  return static_cast<size_t>(std::ranges::count_if(
      wish.images, [&](const std::string& image) { return host.images.contains(image); }));
}

bool IsBefore(const Wish& wish, const HostState& one, const HostState& other,
              const std::string& policy) {
  if (policy == "affinity") {
    const std::string kind = KindOf(wish.tenant, wish.program);
    const bool known = one.programs.contains(kind);
    if (known != other.programs.contains(kind)) return known;
    const auto cached = std::pair(CachedFor(wish, one), CachedFor(wish, other));
    if (cached.first != cached.second) return cached.first > cached.second;
  }
  const auto free = std::pair(FreeOf(one), FreeOf(other));
  const auto sessions = std::pair(SessionsPerDevice(one), SessionsPerDevice(other));
  if (policy == "pack") {
    return std::tuple(free.first, -sessions.first, one.name) <
           std::tuple(free.second, -sessions.second, other.name);
  }
  // Differences of less than a twentieth are gone before the session has begun.
  const auto steps = [&](const HostState& host) {
    return policy == "spread" ? 0 : static_cast<int>(BusyOf(host) * 20);
  };
  return std::tuple(steps(one), sessions.first, free.second, one.name) <
         std::tuple(steps(other), sessions.second, free.first, other.name);
}

void Take(const Wish& wish, const std::vector<int32_t>& devices, HostState* host, bool alone) {
  ++host->sessions;
  host->programs.insert(KindOf(wish.tenant, wish.program));
  Held& held = host->held[wish.tenant];
  ++held.sessions;
  ++host->identities[wish.identity];
  held.bytes += devices.size() * std::max(wish.bytes, kLeastBytes);
  for (DeviceState& device : host->devices) {
    if (std::ranges::count(devices, device.ordinal) == 0) continue;
    const uint64_t need = Need(wish, device);
    device.promised += need;
    ++device.sessions;
    device.alone |= alone;
    if (device.free_seen != UINT64_MAX) device.free_seen -= std::min(device.free_seen, need);
  }
}

}  // namespace longwire::scheduler::pool
