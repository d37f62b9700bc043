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

constexpr uint64_t kMagic = 0x7265676465c77e12;
constexpr uint64_t kUnknown = UINT64_MAX;

uint64_t Without(uint64_t bytes, uint64_t part) { return bytes - std::min(bytes, part); }

}  // namespace

// A session with two workers.
struct TenantLedger::Move {
  uint32_t tenant;
  bool over;  // one of them has ended
  Seat from, to;
  uint64_t had;  // of `from`, in bytes; kUnknown: at least as much as `to`
  uint64_t has;  // of `to`
  bool free() const { return to.worker == 0 || (over && (had == 0 || has == 0)); }
  uint64_t twice() const { return std::min(had, has); }
};

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
  Move moves[kMoves];
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
  for (const Move& move : table_->moves) {
    if (move.tenant == tenant && !move.free()) sum -= std::min(sum, move.twice());
  }
  return sum;
}

uint64_t TenantLedger::Ahead(uint32_t tenant, Holder holder) const {
  uint64_t ahead = 0;
  for (const Move& move : table_->moves) {
    if (holder.worker == 0 || move.tenant != tenant || move.free()) continue;
    if (move.to.worker == holder.worker) ahead = std::max(ahead, Without(move.had, move.has));
    if (move.from.worker == holder.worker) ahead = std::max(ahead, Without(move.has, holder.had));
  }
  return ahead;
}

uint64_t TenantLedger::Room(uint32_t tenant, uint64_t limit, Holder holder) const {
  if (limit == UINT64_MAX) return limit;
  const uint64_t ahead = Ahead(tenant, holder);
  const uint64_t room = Without(limit, Sum(tenant));
  return room + std::min(ahead, UINT64_MAX - room);
}

void TenantLedger::Set(uint64_t worker, uint64_t bytes) {
  for (Move& move : table_->moves) {
    if (worker == 0 || move.free()) continue;
    if (move.from.worker == worker) move.had = bytes;
    if (move.to.worker == worker) move.has = bytes;
  }
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

uint64_t TenantLedger::room(uint32_t tenant, Holder holder) {
  if (tenant >= kTenants) return UINT64_MAX;
  Locked lock(*table_);
  return Room(tenant, table_->limit[tenant], holder);
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

uint64_t TenantLedger::room_with_spare(uint32_t tenant, Holder holder) {
  if (tenant >= kTenants) return UINT64_MAX;
  Locked lock(*table_);
  const uint64_t limit = table_->limit[tenant];
  return Room(tenant, limit + std::min(table_->spare[tenant], UINT64_MAX - limit), holder);
}

bool TenantLedger::Want(uint32_t tenant, uint64_t more, Holder holder) {
  if (tenant == 0 || tenant >= kTenants) return false;
  Locked lock(*table_);
  more = Without(more, Ahead(tenant, holder));
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

bool TenantLedger::Charge(uint32_t tenant, int32_t device, uint64_t bytes, bool anyway,
                          Holder holder) {
  if (tenant >= kTenants || device < 0 || device >= kDevices) return false;
  Locked lock(*table_);
  const uint64_t limit = table_->limit[tenant];
  const bool exceeds =
      limit != UINT64_MAX && (Sum(tenant) > limit || bytes > Room(tenant, limit, holder));
  if (exceeds && !anyway) return false;
  table_->charged[tenant][device] += bytes;
  Set(holder.worker, holder.had + bytes);
  return true;
}

void TenantLedger::Refund(uint32_t tenant, int32_t device, uint64_t bytes, Holder holder) {
  if (tenant >= kTenants || device < 0 || device >= kDevices) return;
  Locked lock(*table_);
  uint64_t& charged = table_->charged[tenant][device];
  charged -= std::min(charged, bytes);
  Set(holder.worker, Without(holder.had, bytes));
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

void TenantLedger::BeginMove(uint32_t tenant, Seat from, Seat to) {
  if (tenant == 0 || tenant >= kTenants || from.worker == 0) return;
  Locked lock(*table_);
  for (Move& move : table_->moves) {
    if (!move.free()) continue;
    move = {tenant, false, from, to, kUnknown, 0};
    return;
  }
}

void TenantLedger::EndMoves(uint64_t worker) {
  Locked lock(*table_);
  for (Move& move : table_->moves) {
    if (worker != 0 && (move.from.worker == worker || move.to.worker == worker)) move.over = true;
  }
}

void TenantLedger::SetMoving(int32_t device, const std::map<uint64_t, uint64_t>& by_worker) {
  const auto bytes_of = [&](uint64_t worker) {
    auto found = by_worker.find(worker);
    return found == by_worker.end() ? 0 : found->second;
  };
  Locked lock(*table_);
  for (Move& move : table_->moves) {
    if (move.free()) continue;
    if (move.from.device == device) move.had = bytes_of(move.from.worker);
    if (move.to.device == device) move.has = bytes_of(move.to.worker);
  }
}

void TenantLedger::Left(uint64_t worker) {
  Locked lock(*table_);
  Set(worker, 0);
}

void Quota::Forget(uint64_t worker) {
  workers_.erase(worker);
  ledger_.Left(worker);
}

void Quota::SetCharged(const std::map<uint64_t, uint64_t>& by_worker) {
  std::map<uint32_t, uint64_t> by_tenant;
  for (const auto& [worker, bytes] : by_worker) {
    by_tenant[enforced_ ? TenantOf(worker) : 0] += bytes;
    if (auto found = workers_.find(worker); found != workers_.end()) found->second.charged = bytes;
  }
  ledger_.SetCharged(device_, by_tenant);
  ledger_.SetMoving(device_, by_worker);
}

uint32_t Quota::TenantOf(uint64_t worker) const {
  auto found = workers_.find(worker);
  return found == workers_.end() ? 0 : found->second.tenant;
}

TenantLedger::Holder Quota::HolderOf(uint64_t worker) const {
  auto found = workers_.find(worker);
  if (found == workers_.end()) return {};
  return {worker, found->second.charged};
}

bool Quota::Charge(uint64_t worker, uint64_t bytes, bool anyway) {
  const uint32_t tenant = enforced_ ? TenantOf(worker) : 0;
  if (!ledger_.Charge(tenant, device_, bytes, anyway, HolderOf(worker))) return false;
  if (auto found = workers_.find(worker); found != workers_.end()) found->second.charged += bytes;
  return true;
}

void Quota::Refund(uint64_t worker, uint64_t bytes) {
  ledger_.Refund(enforced_ ? TenantOf(worker) : 0, device_, bytes, HolderOf(worker));
  auto found = workers_.find(worker);
  if (found != workers_.end()) found->second.charged -= std::min(found->second.charged, bytes);
}

}  // namespace longwire::keeper
