// Chooses the devices of a session: how many, by its tenant and its program, and which, by the
// configured policy. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "policy/program.h"
#include "proto/config.pb.h"
#include "scheduler/placement/placement.h"
#include "scheduler/placement/rebalance.h"
#include "server/protocol/warden.h"

namespace longwire::daemon {

// With this environment variable a program asks for fewer devices than its tenant's sessions may
// have. If the tenant has no number, a session gets one device and may ask for all.
inline constexpr const char* kDevicesVariable = "LONGWIRE_DEVICES";

struct DevicesWish {
  uint32_t devices = 0;  // 0: refused
  std::string refusal;   // a sentence
};
// `environment` is the opening request's, `served` how many devices the server has.
DevicesWish WishOf(const config::Tenant& tenant, const std::vector<std::string>& environment,
                   size_t served);

// Which session is on which devices. A session counts from its placement on, before the warden
// knows it, so that sessions that open at the same time are not placed on the same device.
class PlacementTable {
 public:
  // Chooses for the session, in the driver's order of the devices; none with a sentence. Devices
  // whose keepers do not run are left out. `busy` is the recent utilization of each device, 0 to 1.
  // `bytes`: what the program needs on each; 0: it did not say.
  std::vector<int32_t> Place(uint64_t session, uint32_t devices, config::Placement policy,
                             const warden::Stats& stats, const std::map<uint32_t, double>& busy,
                             std::string* sentence, uint64_t bytes = 0);
  // Puts the session where a pool has placed it, with what was promised to it on each device.
  // False with a sentence if there is no room. `kept_by`: what was kept under that number is free
  // for it.
  bool PlaceAt(uint64_t session, const std::vector<int32_t>& devices, uint64_t bytes,
               const warden::Stats& stats, std::string* sentence, uint64_t kept_by = 0);
  // From now on these bytes are taken on each of the devices, also where they are not free yet.
  // Forget takes it back.
  void Keep(uint64_t number, std::vector<int32_t> devices, uint64_t bytes);
  // Who has what, for a plan that moves sessions: what is free without swapping.
  struct Occupied {
    std::vector<scheduler::DeviceLoad> devices;
    std::vector<scheduler::Occupant> sessions;  // those on one device; what placement knows of them
    uint64_t least = 0;                         // bytes that a session needs which does not say
  };
  Occupied WhoIsWhere(const warden::Stats& stats);
  // Bytes that could be promised now, by device.
  std::map<int32_t, uint64_t> Free(const warden::Stats& stats);
  // What Place would choose now, without placing anything. If no device has room, the devices that
  // would be chosen if they had.
  std::vector<int32_t> Forecast(uint32_t devices, config::Placement policy,
                                const warden::Stats& stats, const std::map<uint32_t, double>& busy,
                                std::string* sentence);
  // A session that another daemon placed there.
  void Inherit(uint64_t session, std::vector<int32_t> devices, uint64_t bytes = 0);
  void Forget(uint64_t session);
  // The device that the session has as its number `place`, as the driver counts; the first one if
  // it has no such.
  int32_t DeviceOf(uint64_t session, size_t place);
  // From now on the policy is asked for scores; null: what is built in alone.
  void Use(std::shared_ptr<policy::Program> program);
  // Whether new sessions may be placed on the device; those that are there stay.
  void Cordon(int32_t device, bool cordoned);
  std::set<int32_t> Cordoned();

 private:
  struct Placed {
    std::vector<int32_t> devices;
    uint64_t bytes = 0;  // promised on each
    std::chrono::steady_clock::time_point since{};
  };
  enum class Swapping { kCounts, kNot };
  std::vector<scheduler::DeviceLoad> Loads(const warden::Stats& stats,
                                           const std::map<uint32_t, double>& busy,
                                           Swapping swapping = Swapping::kCounts) const
      LONGWIRE_REQUIRES(mutex_);
  // Why nothing is placed on a device whose load is not known.
  std::string WhyNotAt(int32_t device, const warden::Stats& stats) const LONGWIRE_REQUIRES(mutex_);
  // Chooses among `loads`; says so when devices are missing because they are cordoned.
  std::vector<int32_t> Choose(const std::vector<scheduler::DeviceLoad>& loads, uint32_t devices,
                              uint64_t bytes, config::Placement policy, std::string* sentence) const
      LONGWIRE_REQUIRES(mutex_);

  base::Mutex mutex_{base::ranks::kPlacementTable};
  std::map<uint64_t, Placed> placed_ LONGWIRE_GUARDED_BY(mutex_);         // by session
  std::shared_ptr<policy::Program> program_ LONGWIRE_GUARDED_BY(mutex_);  // may be null
  std::set<int32_t> cordoned_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::daemon
