#include "server/gates/host_memory_table.h"

#include <unistd.h>

#include <algorithm>

#include "server/protocol/message.h"

namespace longwire::gates {

uint32_t HostMemoryTable::FreeSlot(const Tenant& tenant) {
  uint32_t slot = 0;
  for (const auto& [taken, session] : tenant.sessions) {
    if (taken != slot) break;
    ++slot;
  }
  return slot;
}

bool HostMemoryTable::Opened(uint64_t session, uint64_t limit, HostMemoryTerms terms, int control,
                             uint64_t former) {
  int descriptor = -1;
  {
    base::MutexLock lock(mutex_);
    Tenant& tenant = tenants_[terms.tenant];
    if (tenant.page == nullptr) tenant.page = HostMemoryPage::Create();
    terms.slot = FreeSlot(tenant);
    if (tenant.page == nullptr || terms.slot >= HostMemoryPage::kSlots) return false;
    HostMemoryPage& page = *tenant.page;
    page.limit() = limit;
    page.Vacate(terms.slot);
    for (const auto& [slot, holder] : tenant.sessions) {
      if (former != 0 && holder == former) page.GoesOnFor(terms.slot, slot);
    }
    page.slots() = std::max(page.slots().load(), terms.slot + 1);
    tenant.sessions[terms.slot] = session;
    descriptor = page.descriptor();  // the page lives as long as the session is in it
  }
  return wire::SendMessage(control, message::Pack(terms), {&descriptor, 1});
}

bool HostMemoryTable::Inherit(uint64_t session, uint64_t limit, const std::string& tenant,
                              uint32_t slot, wire::Descriptor page) {
  base::MutexLock lock(mutex_);
  Tenant& entry = tenants_[tenant];
  if (entry.page == nullptr) entry.page = HostMemoryPage::Map(std::move(page));
  bool good = entry.page != nullptr && slot < HostMemoryPage::kSlots &&
              entry.sessions.try_emplace(slot, session).second;
  if (good) entry.page->limit() = limit;
  if (entry.sessions.empty()) tenants_.erase(tenant);
  return good;
}

void HostMemoryTable::ForgetOthers() {
  base::MutexLock lock(mutex_);
  for (auto& [name, tenant] : tenants_) {
    for (uint32_t slot = 0; slot < tenant.page->slots().load(); ++slot) {
      if (!tenant.sessions.contains(slot)) tenant.page->Vacate(slot);
    }
  }
}

HostMemoryTable::Place HostMemoryTable::PlaceOf(uint64_t session) {
  base::MutexLock lock(mutex_);
  for (const auto& [name, tenant] : tenants_) {
    for (const auto& [slot, holder] : tenant.sessions) {
      if (holder == session) return {slot, wire::Duplicate(tenant.page->descriptor())};
    }
  }
  return {};
}

void HostMemoryTable::Ended(uint64_t session) {
  base::MutexLock lock(mutex_);
  for (auto tenant = tenants_.begin(); tenant != tenants_.end(); ++tenant) {
    auto& sessions = tenant->second.sessions;
    auto found = std::ranges::find(sessions, session, [](const auto& slot) { return slot.second; });
    if (found == sessions.end()) continue;
    tenant->second.page->Vacate(found->first);
    sessions.erase(found);
    if (sessions.empty()) tenants_.erase(tenant);
    return;
  }
}

void HostMemoryTable::SetLimit(const std::string& tenant, uint64_t limit) {
  base::MutexLock lock(mutex_);
  auto found = tenants_.find(tenant);
  if (found != tenants_.end()) found->second.page->limit() = limit;
}

uint64_t HostMemoryTable::Used(const std::string& tenant) {
  base::MutexLock lock(mutex_);
  auto found = tenants_.find(tenant);
  return found == tenants_.end() ? 0 : found->second.page->Sum();
}

uint64_t HostMemoryTable::UsedBy(uint64_t session) {
  base::MutexLock lock(mutex_);
  for (const auto& [name, tenant] : tenants_) {
    for (const auto& [slot, holder] : tenant.sessions) {
      if (holder == session) return tenant.page->used(slot);
    }
  }
  return 0;
}

uint64_t UsualHostMemory() {
  auto pages = static_cast<uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L));
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 4 * 3;
}

}  // namespace longwire::gates
