// The daemon's side of the host's memory: a page for each tenant that has sessions, and a slot in
// it for each of them. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/gates/host_memory_page.h"

namespace longwire::gates {

class HostMemoryTable {
 public:
  // A session of the tenant was opened: its worker gets the terms over its control socket. `limit`:
  // bytes of all sessions of the tenant. False if there is no memory for the page, no slot is left
  // or the worker does not take it. `former`: the session of the tenant for which it goes on and
  // which ends; both count as one.
  bool Opened(uint64_t session, uint64_t limit, HostMemoryTerms terms, int control,
              uint64_t former = 0);
  // A session of another daemon, which gave it this slot of this page. False if that is no page of
  // this tenant.
  bool Inherit(uint64_t session, uint64_t limit, const std::string& tenant, uint32_t slot,
               wire::Descriptor page);
  // After the last of these: nobody holds what the others had.
  void ForgetOthers();
  // What another daemon has to be given for Inherit.
  struct Place {
    uint32_t slot = 0;
    wire::Descriptor page;  // invalid: the session has none
  };
  Place PlaceOf(uint64_t session);
  // The session has ended; nothing if it was never opened.
  void Ended(uint64_t session);
  // Another limit, which holds at once.
  void SetLimit(const std::string& tenant, uint64_t limit);

  // Bytes that a tenant's sessions hold now.
  uint64_t Used(const std::string& tenant);
  // The same of one session, as its worker says.
  uint64_t UsedBy(uint64_t session);

 private:
  struct Tenant {
    std::shared_ptr<HostMemoryPage> page;
    std::map<uint32_t, uint64_t> sessions;  // by slot
  };
  static uint32_t FreeSlot(const Tenant& tenant);

  base::Mutex mutex_{base::ranks::kHostMemoryTable};
  std::map<std::string, Tenant> tenants_ LONGWIRE_GUARDED_BY(mutex_);
};

// What a tenant may have whose configuration does not say: three quarters of the host's memory.
uint64_t UsualHostMemory();

}  // namespace longwire::gates
