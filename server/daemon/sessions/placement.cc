#include "server/daemon/sessions/placement.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "policy/placing.h"

namespace longwire::daemon {
namespace {

using Clock = std::chrono::steady_clock;

// What a session leases when it opens (server/worker/process/open_session.cc): a device with less
// to lend is full.
constexpr uint64_t kFirstLease = uint64_t{64} << 20;
// What a new session computes is not seen for so long: it counts as one that computes all the time.
// Without that all that begin at once went to the device that was least busy before.
constexpr std::chrono::seconds kUnseen{2};
constexpr uint64_t kWarm = 0;  // the session of workers that wait for one

std::string Devices(uint32_t count) {
  return std::to_string(count) + (count == 1 ? " device" : " devices");
}

bool IsServed(const warden::DeviceStats& device) {
  return device.keeper_pid != 0 && device.lendable != 0;
}

// What the session has there so far, leased or from the driver.
uint64_t LeasedBy(uint64_t session, int32_t device, const warden::Stats& stats) {
  uint64_t leased = 0;
  for (const warden::SessionStats& entry : stats.sessions) {
    if (entry.session == session && entry.device == device) leased += entry.leased;
  }
  if (!stats.charges) return leased;
  for (const warden::SessionCharge& entry : stats.charges->sessions) {
    if (entry.session == session && entry.device == device) leased += entry.charged;
  }
  return leased;
}

uint64_t RoomOf(uint64_t session, uint64_t promised, int32_t device, const warden::Stats& stats) {
  return std::max({kFirstLease, promised, LeasedBy(session, device, stats)});
}

// Of devices that are smaller than that all of it will do.
uint64_t FirstLease(const std::vector<scheduler::DeviceLoad>& loads) {
  uint64_t bytes = kFirstLease;
  for (const scheduler::DeviceLoad& load : loads) bytes = std::min(bytes, load.total_bytes);
  return bytes;
}

// In the driver's order; none with a sentence. Each has room for `bytes`.
std::vector<int32_t> ChooseBy(const std::vector<scheduler::DeviceLoad>& loads, uint32_t devices,
                              uint64_t bytes, config::Placement policy, policy::Program* program,
                              std::string* sentence) {
  if (loads.empty()) {
    *sentence = "no device of the server can be used now; its log says why";
    return {};
  }
  scheduler::PlacementRequest request{devices, bytes};
  auto placement = scheduler::MakePlacement(config::Placement_Name(policy));
  auto chosen = program == nullptr ? placement->Place(loads, request)
                                   : policy::PlaceByScore(loads, request, *placement, *program);
  *sentence = chosen.refusal;
  std::vector<int32_t> ordinals(chosen.devices.begin(), chosen.devices.end());
  std::ranges::sort(ordinals);
  return ordinals;
}

}  // namespace

DevicesWish WishOf(const config::Tenant& tenant, const std::vector<std::string>& environment,
                   size_t served) {
  uint32_t most = tenant.has_devices() ? tenant.devices() : static_cast<uint32_t>(served);
  uint32_t usual = tenant.has_devices() ? tenant.devices() : 1;
  std::string prefix = kDevicesVariable;
  prefix += '=';
  for (const std::string& variable : environment) {
    if (!variable.starts_with(prefix)) continue;
    std::string_view text = std::string_view(variable).substr(prefix.size());
    uint32_t wanted = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), wanted);
    if (error != std::errc() || end != text.data() + text.size() || wanted == 0) {
      return {0, kDevicesVariable + (" is '" + std::string(text)) +
                     "'; it has to be how many devices the program shall see, 1 or more"};
    }
    if (tenant.has_devices() && wanted > most) {
      return {0, prefix + std::to_string(wanted) + ", but a session of the tenant '" +
                     tenant.name() + "' gets " + Devices(most) + " at most"};
    }
    return {wanted, ""};
  }
  // Nobody asked for a number, so a smaller server gives what it has.
  return {std::max(1u, std::min(usual, static_cast<uint32_t>(served))), ""};
}

// Memory of sessions that have ended counts as free: its keeper gets it back in a moment, and a
// lease waits for that.
std::vector<scheduler::DeviceLoad> PlacementTable::Loads(const warden::Stats& stats,
                                                         const std::map<uint32_t, double>& busy,
                                                         Swapping swapping) const {
  std::vector<scheduler::DeviceLoad> loads;
  const auto now = Clock::now();
  for (const warden::DeviceStats& device : stats.devices) {
    if (!IsServed(device) || cordoned_.contains(device.device)) continue;
    scheduler::DeviceLoad& load = loads.emplace_back();
    load.id = static_cast<scheduler::DeviceId>(device.device);
    load.total_bytes = device.lendable;
    if (auto found = busy.find(load.id); found != busy.end()) load.busy = found->second;
    uint64_t taken = LeasedBy(kWarm, device.device, stats);
    for (const auto& [session, placed] : placed_) {
      if (std::ranges::count(placed.devices, device.device) == 0) continue;
      ++load.sessions;
      if (now - placed.since < kUnseen) load.busy += 1;
      taken += RoomOf(session, placed.bytes, device.device, stats);
    }
    load.free_bytes = device.lendable - std::min(device.lendable, taken);
    if (swapping == Swapping::kNot) continue;
    // Idle sessions make room.
    uint64_t room = device.swap_host_memory - std::min(device.swap_host_memory, device.swapped);
    load.free_bytes += std::min(room, device.lendable - load.free_bytes);
  }
  return loads;
}

std::vector<int32_t> PlacementTable::Forecast(uint32_t devices, config::Placement policy,
                                              const warden::Stats& stats,
                                              const std::map<uint32_t, double>& busy,
                                              std::string* sentence) {
  base::MutexLock lock(mutex_);
  std::vector<scheduler::DeviceLoad> loads = Loads(stats, busy);
  std::vector<int32_t> chosen = Choose(loads, devices, FirstLease(loads), policy, sentence);
  return chosen.empty() ? Choose(loads, devices, 0, policy, sentence) : chosen;
}

std::vector<int32_t> PlacementTable::Place(uint64_t session, uint32_t devices,
                                           config::Placement policy, const warden::Stats& stats,
                                           const std::map<uint32_t, double>& busy,
                                           std::string* sentence, uint64_t bytes) {
  base::MutexLock lock(mutex_);
  std::vector<scheduler::DeviceLoad> loads = Loads(stats, busy);
  bytes = std::max(bytes, FirstLease(loads));
  std::vector<int32_t> ordinals = Choose(loads, devices, bytes, policy, sentence);
  if (!ordinals.empty()) placed_[session] = {ordinals, bytes, Clock::now()};
  return ordinals;
}

std::string PlacementTable::WhyNotAt(int32_t device, const warden::Stats& stats) const {
  const std::string number = std::to_string(device);
  if (cordoned_.contains(device)) {
    return "device " + number + " is cordoned; longwire admin uncordon " + number +
           " lets it have sessions again";
  }
  const auto same = [&](const warden::DeviceStats& one) { return one.device == device; };
  if (std::ranges::any_of(stats.devices, same)) {
    return "device " + number + " cannot be used now; longwire status says why";
  }
  return "the server has no device " + number + "; longwire status lists those that it has";
}

bool PlacementTable::PlaceAt(uint64_t session, const std::vector<int32_t>& devices, uint64_t bytes,
                             const warden::Stats& stats, std::string* sentence, uint64_t kept_by) {
  base::MutexLock lock(mutex_);
  if (kept_by != 0) placed_.erase(kept_by);
  const std::vector<scheduler::DeviceLoad> loads = Loads(stats, {});
  for (int32_t device : devices) {
    auto load = std::ranges::find(loads, static_cast<scheduler::DeviceId>(device),
                                  &scheduler::DeviceLoad::id);
    *sentence = WhyNotAt(device, stats);
    if (load == loads.end()) return false;
    *sentence = "device " + std::to_string(device) + " has less memory free than was promised";
    if (load->free_bytes < std::min(bytes, load->total_bytes)) return false;
  }
  *sentence = "the place has no devices";
  if (devices.empty()) return false;
  placed_[session] = {devices, bytes, Clock::now()};
  return true;
}

void PlacementTable::Keep(uint64_t number, std::vector<int32_t> devices, uint64_t bytes) {
  base::MutexLock lock(mutex_);
  placed_[number] = {std::move(devices), bytes, {}};
}

PlacementTable::Occupied PlacementTable::WhoIsWhere(const warden::Stats& stats) {
  base::MutexLock lock(mutex_);
  Occupied occupied;
  occupied.devices = Loads(stats, {}, Swapping::kNot);
  occupied.least = FirstLease(occupied.devices);
  for (const auto& [session, placed] : placed_) {
    if (placed.devices.size() != 1) continue;
    scheduler::Occupant& one = occupied.sessions.emplace_back();
    const int32_t device = placed.devices.front();
    one.session = session;
    one.device = static_cast<scheduler::DeviceId>(device);
    one.bytes = LeasedBy(session, device, stats);
    one.room = RoomOf(session, placed.bytes, device, stats);
  }
  return occupied;
}

std::map<int32_t, uint64_t> PlacementTable::Free(const warden::Stats& stats) {
  base::MutexLock lock(mutex_);
  std::map<int32_t, uint64_t> free;
  for (const scheduler::DeviceLoad& load : Loads(stats, {})) {
    free[static_cast<int32_t>(load.id)] = load.free_bytes;
  }
  return free;
}

std::vector<int32_t> PlacementTable::Choose(const std::vector<scheduler::DeviceLoad>& loads,
                                            uint32_t devices, uint64_t bytes,
                                            config::Placement policy, std::string* sentence) const {
  std::vector<int32_t> chosen = ChooseBy(loads, devices, bytes, policy, program_.get(), sentence);
  if (!chosen.empty() || cordoned_.empty()) return chosen;
  std::string list;
  for (int32_t device : cordoned_) list += (list.empty() ? "" : ", ") + std::to_string(device);
  *sentence += " The server's administrator lets no new sessions onto device " + list + ".";
  return chosen;
}

int32_t PlacementTable::DeviceOf(uint64_t session, size_t place) {
  base::MutexLock lock(mutex_);
  const auto found = placed_.find(session);
  if (found == placed_.end() || found->second.devices.empty()) return 0;
  const auto& devices = found->second.devices;
  return devices[place < devices.size() ? place : 0];
}

void PlacementTable::Use(std::shared_ptr<policy::Program> program) {
  base::MutexLock lock(mutex_);
  program_ = std::move(program);
}

void PlacementTable::Cordon(int32_t device, bool cordoned) {
  base::MutexLock lock(mutex_);
  if (cordoned) {
    cordoned_.insert(device);
  } else {
    cordoned_.erase(device);
  }
}

std::set<int32_t> PlacementTable::Cordoned() {
  base::MutexLock lock(mutex_);
  return cordoned_;
}

void PlacementTable::Inherit(uint64_t session, std::vector<int32_t> devices, uint64_t bytes) {
  base::MutexLock lock(mutex_);
  placed_[session] = {std::move(devices), bytes, {}};
}

void PlacementTable::Forget(uint64_t session) {
  base::MutexLock lock(mutex_);
  placed_.erase(session);
}

}  // namespace longwire::daemon
