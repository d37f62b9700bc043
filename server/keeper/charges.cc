// Memory that workers get from the driver itself: charged to their tenants like leases, without
// chunks.
#include <algorithm>

#include "server/keeper/chunk_pool.h"
#include "server/keeper/keeper.h"
#include "wire/guards.h"

namespace longwire::keeper {
namespace {

// How often the driver is asked how much of the device is in use.
constexpr std::chrono::seconds kOthersInterval{1};

const bool kCharges = !wire::GuardIsOff("charges");

}  // namespace

ChunkPool::Step ChunkPool::StartCharge(uint64_t worker, const Charge& request,
                                       LeaseInProgress* lease) {
  *lease = LeaseInProgress{};
  lease->worker = worker;
  lease->request = request.request;
  lease->charges = true;
  if (request.bytes == 0) return Refused(lease, kInvalidValue, "a charge of 0 bytes");
  if (request.bytes > total()) {
    return Refused(lease, kOutOfMemory,
                   "more than the device's " + std::to_string(total()) + " bytes");
  }
  lease->sizes.push_back(request.bytes);
  lease->most = std::clamp(request.most, request.bytes, total());
  return Step::kWaiting;
}

ChunkPool::Step ChunkPool::AdvanceCharge(LeaseInProgress* lease, bool patient) {
  uint64_t bytes = lease->sizes.front();
  Step step = Step::kWaiting;
  if (kCharges && Lacks(lease, bytes, patient, &step)) return step;
  Quota* quota = kCharges ? options_.quota : nullptr;
  bool unlimited = quota == nullptr || quota->limit(lease->worker) == UINT64_MAX;
  uint64_t more = lease->most - bytes;
  if (unlimited && more <= FreeOnDevice(lease->worker) &&
      (!kCharges || ChargeTenant(lease->worker, more))) {
    bytes += more;
  }
  lease->charged = bytes;
  Worker& worker = workers_[lease->worker];
  worker.charged += bytes;
  charged_ += bytes;
  if (options_.loans != nullptr) options_.loans->SetCharged(lease->worker, worker.charged);
  // The driver needs the memory: what is kept between sessions makes room.
  while (created_ + charged_ > lendable_ && ReleaseOneIdle()) {
  }
  ++version_;
  return Step::kGranted;
}

// Somebody else uses the device: contexts, and programs that are not of this server. The
// sentence names how much that is, so that people look for it.
ChunkPool::Step ChunkPool::RefusedByDriver(LeaseInProgress* lease, uint64_t size, int code) {
  std::string sentence = "the driver has no " + std::to_string(size) + " bytes more (error " +
                         std::to_string(code) + ")";
  if (code == kOutOfMemory) {
    lease->lacks = size;
    lease->of_driver = true;
    const uint64_t used = device_.Used(), known = created_ + charged_;
    if (used > known) {
      sentence += ", though " + std::to_string(free()) +
                  " are free here: contexts, and whoever uses "
                  "the device beside this server, have " +
                  std::to_string(used - known);
    }
  }
  return Refused(lease, code, sentence);
}

void ChunkPool::Uncharge(uint64_t worker, uint64_t bytes) {
  auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  bytes = std::min(bytes, found->second.charged);
  found->second.charged -= bytes;
  charged_ -= bytes;
  if (options_.loans != nullptr) options_.loans->SetCharged(worker, found->second.charged);
  if (kCharges) RefundTenant(worker, bytes);
  ++version_;
}

uint64_t ChunkPool::FreeWith(uint64_t worker, uint64_t more, uint64_t more_of_tenant) const {
  uint64_t device = FreeOnDevice(worker) + more;
  if (options_.quota == nullptr) return std::min(device, lendable_);
  uint64_t room = options_.quota->room_with_spare(worker);
  more_of_tenant += ChargedAhead(worker);  // the tenant is charged for it already
  room += std::min(more_of_tenant, UINT64_MAX - room);
  return std::min({device, room, lendable_});
}

void ChunkPool::AddEnding(uint64_t* all, std::map<uint32_t, uint64_t>* by_tenant) const {
  for (const auto& [id, worker] : workers_) {
    if (!worker.ending) continue;
    *all += EndingOf(worker);
    (*by_tenant)[TenantOf(id)] += EndingOf(worker);
  }
}

uint64_t ChunkPool::ChargedTo(uint64_t worker) const {
  auto found = workers_.find(worker);
  return found == workers_.end() ? 0 : found->second.charged;
}

KeeperCharges Keeper::Charges() {
  auto now = std::chrono::steady_clock::now();
  if (now - others_at_ > kOthersInterval) {
    others_at_ = now;
    uint64_t known = pool_.created() + pool_.charged();
    uint64_t used = device_.Used();
    others_ = used - std::min(used, known);
  }
  KeeperCharges charges{others_, {}};
  for (const auto& [worker, session] : sessions_) {
    uint64_t bytes = pool_.ChargedTo(worker);
    if (bytes != 0) charges.workers.push_back({worker, bytes});
  }
  return charges;
}

void Keeper::TakeHealth() {
  auto health = health_.Take();
  if (warden_version_ < kChargesSince || !health) return;
  state_.health = std::move(health);
  ++health_version_;
}

}  // namespace longwire::keeper
