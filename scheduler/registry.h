// Keeps tenants, sessions, gangs and devices. Tenants and devices stay for good (there are as many
// as are configured and as the host has), so pointers to them always hold.
#pragma once

#include <map>
#include <unordered_map>

#include "scheduler/accounting.h"
#include "scheduler/device_state.h"
#include "scheduler/options.h"

namespace longwire::scheduler {

class Registry {
 public:
  explicit Registry(const Options& options)
      : longest_gap_(options.longest_gap),
        turn_length_(options.turn_length),
        accounting_(options.window) {}

  // Holds for the devices that are there, too.
  void SetOptions(const Options& options);

  Tenant& OfName(const TenantName& name);
  ScheduledSession* Find(SessionId id);
  // Null unless the session is open on the device.
  Seat* Find(SessionId id, DeviceId device);

  // Opens a session, which must not be open, in its gang: the one named, if the tenant has it.
  ScheduledSession& Open(const SessionInfo& info);
  // Closes it. False if its gang had no other session and is gone too.
  bool Close(ScheduledSession& session);
  // Makes the sessions of `from` part of `into`; `from` is gone.
  void Merge(Gang& into, Gang& from);

  Accounting& accounting() { return accounting_; }
  const Accounting& accounting() const { return accounting_; }
  const std::map<TenantName, Tenant>& tenants() const { return tenants_; }
  const std::map<DeviceId, Device>& devices() const { return devices_; }

 private:
  Device& OfNumber(DeviceId id);
  Gang& GangFor(Tenant& tenant, const std::string& name);

  Time longest_gap_;
  Time turn_length_;
  Accounting accounting_;
  std::map<TenantName, Tenant> tenants_;
  std::map<DeviceId, Device> devices_;
  std::unordered_map<SessionId, ScheduledSession> sessions_;
  std::unordered_map<uint64_t, Gang> gangs_;
  uint64_t gangs_made_ = 0;
};

}  // namespace longwire::scheduler
