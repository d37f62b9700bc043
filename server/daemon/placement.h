// Which devices a session gets: how many its tenant and its program want, and which ones the policy
// in force chooses. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "proto/config.pb.h"
#include "scheduler/placement/placement.h"
#include "server/warden/protocol.h"

namespace longwire::daemon {

// A program may ask for fewer devices than its tenant has for each session, by this variable in its
// environment; a tenant without a number gets one and may ask for all that are served.
inline constexpr const char* kDevicesVariable = "LONGWIRE_DEVICES";

struct DevicesWish {
  uint32_t devices = 0;  // 0: refused
  std::string refusal;   // a sentence
};
// `environment` is the opening request's, `served` how many devices the server has.
DevicesWish WishOf(const config::Tenant& tenant, const std::vector<std::string>& environment,
                   size_t served);

// Who is on which device. A session counts from the moment it is placed, before the warden knows
// anything of it, so that sessions that open at the same time do not take each other's place.
class DeviceBook {
 public:
  // Chooses for the session, in the driver's order of the devices; none with a sentence. Devices
  // whose keepers do not run are left out. `busy` is how busy devices were of late, 0 to 1.
  std::vector<int32_t> Place(uint64_t session, uint32_t devices, config::Placement policy,
                             const warden::Stats& stats, const std::map<uint32_t, double>& busy,
                             std::string* sentence);
  // What Place would choose now, for somebody who only wants to know. Where nothing has room it
  // says which devices those would be.
  std::vector<int32_t> Forecast(uint32_t devices, config::Placement policy,
                                const warden::Stats& stats, const std::map<uint32_t, double>& busy,
                                std::string* sentence);
  void Forget(uint64_t session);

 private:
  std::vector<scheduler::DeviceLoad> Loads(const warden::Stats& stats,
                                           const std::map<uint32_t, double>& busy) const
      LONGWIRE_REQUIRES(mutex_);

  base::Mutex mutex_{base::ranks::kDeviceBook};
  std::map<uint64_t, std::vector<int32_t>> placed_ LONGWIRE_GUARDED_BY(mutex_);  // by session
};

}  // namespace longwire::daemon
