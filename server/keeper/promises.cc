// Memory that is kept for a session because its program declared that it needs it
// (server/protocol/promises.h). A promise is given only for memory that is free, or becomes free at
// once: others return what they do not use, and idle sessions are swapped out. From then on nobody
// else gets what is unused of it, and what is used of it is not swapped out.
#include <utility>

#include "server/keeper/chunk_pool.h"
#include "server/keeper/keeper.h"
#include "wire/guards.h"

namespace longwire::keeper {
namespace {

const bool kKeepsPromises = !wire::GuardIsOff("promises");

uint64_t Without(uint64_t bytes, uint64_t part) { return bytes - std::min(bytes, part); }

}  // namespace

bool ChunkPool::ChargeTenant(uint64_t worker, uint64_t bytes, bool anyway) {
  Worker& of = workers_[worker];
  const uint64_t more = std::max(of.promised, of.owed + bytes) - std::max(of.promised, of.owed);
  Quota* quota = options_.quota;
  if (quota != nullptr && more != 0 && !quota->Charge(worker, more, anyway)) return false;
  of.owed += bytes;
  return true;
}

void ChunkPool::RefundTenant(uint64_t worker, uint64_t bytes) {
  Worker& of = workers_[worker];
  const uint64_t left = Without(of.owed, bytes);
  const uint64_t less = std::max(of.promised, of.owed) - std::max(of.promised, left);
  of.owed = left;
  if (options_.quota != nullptr && less != 0) options_.quota->Refund(worker, less);
}

bool ChunkPool::SetPromised(uint64_t worker, uint64_t bytes) {
  Worker& of = workers_[worker];
  const uint64_t before = std::max(of.promised, of.owed), after = std::max(bytes, of.owed);
  Quota* quota = options_.quota;
  if (quota != nullptr && after > before && !quota->Charge(worker, after - before)) return false;
  if (quota != nullptr && after < before) quota->Refund(worker, before - after);
  promised_ += bytes - of.promised;
  of.promised = bytes;
  if (options_.loans != nullptr) options_.loans->SetPromised(worker, bytes);
  ++version_;
  return true;
}

void ChunkPool::AdoptPromise(uint64_t worker, uint64_t bytes) {
  Worker& of = workers_[worker];
  if (of.promised == bytes) return;
  promised_ += bytes - of.promised;
  of.promised = bytes;
  if (options_.loans != nullptr) options_.loans->SetPromised(worker, bytes);
  ++version_;
}

uint64_t ChunkPool::UnusedOf(const Worker& worker) {
  return kKeepsPromises ? Without(worker.promised, worker.leased + worker.charged) : 0;
}

uint64_t ChunkPool::UnusedBy(uint64_t worker) const {
  auto found = workers_.find(worker);
  return found == workers_.end() ? 0 : UnusedOf(found->second);
}

uint64_t ChunkPool::UnusedByOthers(uint64_t worker) const {
  if (promised_ == 0) return 0;
  if (unused_at_ != version_) {
    unused_ = 0;
    for (const auto& [id, other] : workers_) unused_ += UnusedOf(other);
    unused_at_ = version_;
  }
  return Without(unused_, UnusedBy(worker));
}

uint64_t ChunkPool::PromisedTo(uint64_t worker) const {
  auto found = workers_.find(worker);
  return found == workers_.end() ? 0 : found->second.promised;
}

uint64_t ChunkPool::PromisedToOthers(uint64_t worker) const {
  return kKeepsPromises ? promised_ - PromisedTo(worker) : 0;
}

uint64_t ChunkPool::BeyondPromise(uint64_t worker) const {
  auto found = workers_.find(worker);
  if (found == workers_.end()) return 0;
  const Worker& of = found->second;
  return kKeepsPromises ? Without(of.leased + of.charged, of.promised) : of.leased;
}

uint64_t ChunkPool::TenantsRoom(uint64_t worker) const {
  if (options_.quota == nullptr) return UINT64_MAX;
  const uint64_t room = options_.quota->room(worker);
  return room + std::min(ChargedAhead(worker), UINT64_MAX - room);
}

uint64_t ChunkPool::ChargedAhead(uint64_t worker) const {
  auto found = workers_.find(worker);
  return found == workers_.end() ? 0 : Without(found->second.promised, found->second.owed);
}

uint64_t ChunkPool::FreeOnDevice(uint64_t worker) const {
  uint64_t left = free();
  const uint64_t promised = UnusedByOthers(worker);
  // What the driver gave beside the chunks is no memory for promises, even beyond the reserve.
  if (promised != 0) left = std::min(left, Without(total(), leased_ + charged_));
  const uint64_t reserved =
      options_.quota == nullptr ? 0 : options_.quota->ReservedForOthers(worker);
  // It had its own before a reservation that came later.
  return std::max(Without(Without(left, promised), reserved), std::min(left, UnusedBy(worker)));
}

uint64_t ChunkPool::FreeBesideChunks(uint64_t worker) const {
  const uint64_t left = Without(total(), leased_ + charged_);
  const uint64_t reserved =
      options_.quota == nullptr ? 0 : options_.quota->ReservedForOthers(worker);
  return std::max(Without(Without(left, UnusedByOthers(worker)), reserved),
                  std::min(left, UnusedBy(worker)));
}

uint64_t ChunkPool::FreeToComeBack(uint64_t worker) const {
  return Without(free(), UnusedByOthers(worker));
}

uint64_t ChunkPool::EndingOf(const Worker& worker) {
  return worker.leased + worker.charged + UnusedOf(worker);
}

uint64_t ChunkPool::LacksToComeBack(uint64_t worker, uint64_t promised) const {
  uint64_t lacks = 0;
  for (const auto& [id, other] : workers_) {
    if (id == worker || other.ending || host_.bytes() == 0) continue;
    const uint64_t has = other.leased + other.swapped;
    const uint64_t kept = PromisedToOthers(id) - PromisedTo(worker) + promised;
    if (has != 0) lacks = std::max(lacks, Without(has + kept, lendable_));
  }
  return lacks;
}

ChunkPool::Step ChunkPool::StartPromise(uint64_t worker, uint64_t bytes, LeaseInProgress* lease) {
  *lease = LeaseInProgress{};
  lease->worker = worker;
  lease->promises = true;
  lease->most = bytes;
  if (bytes > lendable_) {
    return Refused(lease, kOutOfMemory,
                   std::to_string(bytes) + " bytes declared, more than the device's " +
                       std::to_string(lendable_));
  }
  // As somebody would lease them: what is swapped out for them goes in pieces.
  for (uint64_t left = bytes; left != 0;) {
    lease->sizes.push_back(std::min(left, kChunkClasses[1]));
    left -= lease->sizes.back();
  }
  return Step::kWaiting;
}

ChunkPool::Step ChunkPool::AdvancePromise(LeaseInProgress* lease, bool patient) {
  const uint64_t bytes = lease->most;
  const Worker& of = workers_[lease->worker];
  if (LoansAreFull(lease, 1)) return Step::kRefused;
  if (uint64_t lacks = LacksToComeBack(lease->worker, bytes); lacks != 0 && kKeepsPromises) {
    lease->lacks = lacks;
    lease->of_tenant = false;
    return Refused(
        lease, kOutOfMemory,
        std::to_string(bytes) +
            " bytes declared, but other sessions and what is kept for them need all but " +
            std::to_string(Without(bytes, lacks)));
  }
  Step step = Step::kWaiting;
  if (Lacks(lease, Without(bytes, of.leased + of.charged), patient, &step) && kKeepsPromises) {
    return step;
  }
  if (SetPromised(lease->worker, bytes)) return Step::kGranted;
  return Refused(lease, kOutOfMemory, "the tenant's memory limit leaves less than was declared");
}

void Keeper::TakeAssign(const Assign& assign) {
  if (quota_ != nullptr) quota_->Assign(assign.worker, assign.tenant);
  auto session = sessions_.find(assign.worker);
  if (!assign.promised || session == sessions_.end()) return;
  session->second.promise = *assign.promised;
}

void Keeper::StartPromise(KeeperSession& session) {
  session.lease = std::make_unique<LeaseInProgress>();
  session.round = {};
  session.asked = Drain::Clock::now();
  const uint64_t bytes = *std::exchange(session.promise, std::nullopt);
  auto step = pool_.StartPromise(session.worker, bytes, session.lease.get());
  if (step == ChunkPool::Step::kRefused) AnswerPromise(session);
}

void Keeper::AnswerPromise(KeeperSession& session) {
  const auto lease = std::move(session.lease);
  // It may have been refused, and then others gave back what lacked.
  const bool kept = pool_.PromisedTo(session.worker) == lease->most;
  promised_.push_back(message::Pack(
      Promised{session.worker, kept ? kSuccess : lease->code, kept ? "" : lease->sentence}));
  SendPromised();
}

void Keeper::DropPromise(KeeperSession& session) {
  if (!session.promise && (session.lease == nullptr || !session.lease->promises)) return;
  session.promise.reset();
  promised_.push_back(message::Pack(Promised{session.worker, kNotInitialized, "its worker ends"}));
}

void Keeper::SendPromised() {
  while (!promised_.empty() && wire::SendMessage(control_.get(), promised_.front())) {
    promised_.pop_front();
  }
}

}  // namespace longwire::keeper
