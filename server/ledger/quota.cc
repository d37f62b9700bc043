#include "server/ledger/quota.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "wire/rings/segment.h"

namespace longwire::keeper {
namespace {

constexpr uint64_t kMagic = 0x7265676465c77e11;

}  // namespace

struct TenantLedger::Table {
  uint64_t magic = kMagic;
  pthread_mutex_t mutex;
  uint64_t limit[kTenants];
  uint64_t reserved[kTenants];
  uint64_t charged[kTenants][kDevices];
  bool latency_critical[kTenants];
  uint64_t ceiling[kTenants];
  uint64_t spare[kTenants];
  uint64_t wanted[kTenants];
};

// The table's lock; it stays usable when a process dies while it holds it: each change is one
// store.
class TenantLedger::Locked {
 public:
  explicit Locked(Table& table) : mutex_(table.mutex) {
    if (pthread_mutex_lock(&mutex_) == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
  }
  ~Locked() { pthread_mutex_unlock(&mutex_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

std::unique_ptr<TenantLedger> TenantLedger::Create() {
  std::unique_ptr<TenantLedger> ledger(new TenantLedger());
  ledger->memory_ = wire::MakeSegment("longwire-tenants", sizeof(Table));
  if (!ledger->memory_.valid()) return nullptr;
  void* memory =
      mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, ledger->memory_.get(), 0);
  if (memory == MAP_FAILED) return nullptr;
  ledger->table_ = new (memory) Table;
  ledger->table_->magic = kMagic;
  std::fill_n(ledger->table_->limit, kTenants, UINT64_MAX);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&ledger->table_->mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  return ledger;
}

std::unique_ptr<TenantLedger> TenantLedger::Map(wire::Descriptor memory) {
  if (!wire::IsSegment(memory.get(), sizeof(Table))) return nullptr;
  void* mapped = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) return nullptr;
  std::unique_ptr<TenantLedger> ledger(new TenantLedger());
  ledger->memory_ = std::move(memory);
  ledger->table_ = static_cast<Table*>(mapped);
  return ledger->table_->magic == kMagic ? std::move(ledger) : nullptr;
}

TenantLedger::~TenantLedger() {
  if (table_ != nullptr) munmap(table_, sizeof(Table));
}

uint64_t TenantLedger::Sum(uint32_t tenant) const {
  uint64_t sum = 0;
  for (uint64_t bytes : table_->charged[tenant]) sum += bytes;
  return sum;
}

void TenantLedger::SetLimit(uint32_t tenant, uint64_t bytes) {
  if (tenant == 0 || tenant >= kTenants) return;
  Locked lock(*table_);
  table_->limit[tenant] = bytes;
}

uint64_t TenantLedger::limit(uint32_t tenant) {
  if (tenant >= kTenants) return UINT64_MAX;
  Locked lock(*table_);
  return table_->limit[tenant];
}

uint64_t TenantLedger::charged(uint32_t tenant) {
  if (tenant >= kTenants) return 0;
  Locked lock(*table_);
  return Sum(tenant);
}

uint64_t TenantLedger::room(uint32_t tenant) {
  if (tenant >= kTenants) return UINT64_MAX;
  Locked lock(*table_);
  uint64_t limit = table_->limit[tenant];
  return limit == UINT64_MAX ? limit : limit - std::min(limit, Sum(tenant));
}

void TenantLedger::SetPool(uint32_t tenant, uint64_t ceiling, uint64_t spare) {
  if (tenant == 0 || tenant >= kTenants) return;
  Locked lock(*table_);
  table_->ceiling[tenant] = ceiling;
  table_->spare[tenant] = spare;
}

uint64_t TenantLedger::ceiling(uint32_t tenant) {
  if (tenant >= kTenants) return UINT64_MAX;
  Locked lock(*table_);
  return std::max(table_->limit[tenant], table_->ceiling[tenant]);
}

uint64_t TenantLedger::room_with_spare(uint32_t tenant) {
  if (tenant >= kTenants) return UINT64_MAX;
  Locked lock(*table_);
  uint64_t limit = table_->limit[tenant];
  if (limit == UINT64_MAX) return limit;
  limit += std::min(table_->spare[tenant], UINT64_MAX - limit);
  return limit - std::min(limit, Sum(tenant));
}

bool TenantLedger::Want(uint32_t tenant, uint64_t more) {
  if (tenant == 0 || tenant >= kTenants) return false;
  Locked lock(*table_);
  const uint64_t sum = Sum(tenant);
  const uint64_t ceiling = table_->ceiling[tenant];
  if (ceiling <= table_->limit[tenant] || sum > ceiling || more > ceiling - sum) return false;
  table_->wanted[tenant] = std::max(table_->wanted[tenant], sum + more);
  return true;
}

uint64_t TenantLedger::TakeWanted(uint32_t tenant) {
  if (tenant >= kTenants) return 0;
  Locked lock(*table_);
  return std::exchange(table_->wanted[tenant], 0);
}

void TenantLedger::SetReservation(uint32_t tenant, uint64_t bytes) {
  if (tenant == 0 || tenant >= kTenants) return;
  Locked lock(*table_);
  table_->reserved[tenant] = bytes;
}

uint64_t TenantLedger::reservation(uint32_t tenant) {
  if (tenant >= kTenants) return 0;
  Locked lock(*table_);
  return table_->reserved[tenant];
}

uint64_t TenantLedger::ReservedForOthers(uint32_t tenant, int32_t device) {
  if (device < 0 || device >= kDevices) return 0;
  Locked lock(*table_);
  uint64_t sum = 0;
  for (uint32_t other = 1; other < kTenants; ++other) {
    uint64_t reserved = table_->reserved[other];
    if (other == tenant || reserved == 0) continue;
    uint64_t missing = reserved - std::min(reserved, table_->charged[other][device]);
    sum += std::min(missing, UINT64_MAX - sum);
  }
  return sum;
}

void TenantLedger::SetLatencyCritical(uint32_t tenant, bool yes) {
  if (tenant == 0 || tenant >= kTenants) return;
  Locked lock(*table_);
  table_->latency_critical[tenant] = yes;
}

bool TenantLedger::latency_critical(uint32_t tenant) {
  if (tenant >= kTenants) return false;
  Locked lock(*table_);
  return table_->latency_critical[tenant];
}

bool TenantLedger::Charge(uint32_t tenant, int32_t device, uint64_t bytes, bool anyway) {
  if (tenant >= kTenants || device < 0 || device >= kDevices) return false;
  Locked lock(*table_);
  uint64_t limit = table_->limit[tenant];
  uint64_t sum = Sum(tenant);
  const bool exceeds = limit != UINT64_MAX && (sum > limit || bytes > limit - sum);
  if (exceeds && !anyway) return false;
  table_->charged[tenant][device] += bytes;
  return true;
}

void TenantLedger::Refund(uint32_t tenant, int32_t device, uint64_t bytes) {
  if (tenant >= kTenants || device < 0 || device >= kDevices) return;
  Locked lock(*table_);
  uint64_t& charged = table_->charged[tenant][device];
  charged -= std::min(charged, bytes);
}

void TenantLedger::ForgetDevice(int32_t device) {
  if (device < 0 || device >= kDevices) return;
  Locked lock(*table_);
  for (auto& tenant : table_->charged) tenant[device] = 0;
}

void TenantLedger::SetCharged(int32_t device, const std::map<uint32_t, uint64_t>& charged) {
  if (device < 0 || device >= kDevices) return;
  Locked lock(*table_);
  for (uint32_t tenant = 0; tenant < kTenants; ++tenant) {
    auto found = charged.find(tenant);
    table_->charged[tenant][device] = found == charged.end() ? 0 : found->second;
  }
}

void Quota::SetCharged(const std::map<uint64_t, uint64_t>& by_worker) {
  std::map<uint32_t, uint64_t> by_tenant;
  for (const auto& [worker, bytes] : by_worker) {
    by_tenant[enforced_ ? TenantOf(worker) : 0] += bytes;
  }
  ledger_.SetCharged(device_, by_tenant);
}

uint32_t Quota::TenantOf(uint64_t worker) const {
  auto found = tenants_.find(worker);
  return found == tenants_.end() ? 0 : found->second;
}

bool Quota::Charge(uint64_t worker, uint64_t bytes, bool anyway) {
  uint32_t tenant = TenantOf(worker);
  if (!enforced_) tenant = 0;
  return ledger_.Charge(tenant, device_, bytes, anyway);
}

void Quota::Refund(uint64_t worker, uint64_t bytes) {
  ledger_.Refund(enforced_ ? TenantOf(worker) : 0, device_, bytes);
}

}  // namespace longwire::keeper
