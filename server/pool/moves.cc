// A session moves to another device of its host, or is suspended and restored there. While it moves
// its claim has both devices, so that neither is anybody else's whatever becomes of the move, of
// this daemon or of etcd; once nothing is left on one of them the claim has the other alone.
#include "server/pool/host.h"
#include "server/pool/keys.h"

namespace longwire::pool {
namespace {

constexpr int kTries = 20;
constexpr std::chrono::seconds kClaimPatience{5};
constexpr std::chrono::milliseconds kClaimLook{50};

}  // namespace

bool HostPart::ReadClaim(const std::string& number, ReadRecord* read, std::string* sentence) {
  etcd::pb::TxnRequest request;
  etcd::pb::TxnResponse reply;
  *request.add_success() = etcd::ReadOp(Key(kClaims, options_.name, number));
  *request.add_success() = etcd::ReadOp(Key(kCapacities, options_.name));
  if (!client_.Txn(request, &reply, sentence)) return false;
  *sentence = "the pool does not have its claim";
  if (reply.responses_size() != 2) return false;
  const auto& claim = reply.responses(0).response_range();
  const auto& capacity = reply.responses(1).response_range();
  if (claim.kvs_size() == 0 || capacity.kvs_size() == 0 ||
      !Decode(claim.kvs(0).value(), &read->claim) ||
      !Decode(capacity.kvs(0).value(), &read->capacity)) {
    return false;
  }
  read->claim_changed = claim.kvs(0).mod_revision();
  read->capacity_changed = capacity.kvs(0).mod_revision();
  return true;
}

bool HostPart::WriteClaim(const std::string& number, const ReadRecord& read, bool* written,
                          std::string* sentence) {
  etcd::pb::TxnRequest request;
  etcd::pb::TxnResponse reply;
  const std::string claim = Key(kClaims, options_.name, number);
  const std::string capacity = Key(kCapacities, options_.name);
  *request.add_compare() = etcd::ChangedAt(claim, read.claim_changed);
  *request.add_compare() = etcd::ChangedAt(capacity, read.capacity_changed);
  // Once the lease has expired nothing changes hands, also if this host does not know that yet.
  *request.add_compare() = etcd::Present(Key(kHosts, options_.name));
  *request.add_success() = etcd::PutOp(claim, Encode(read.claim));
  *request.add_success() = etcd::PutOp(capacity, Encode(read.capacity));
  if (!client_.Txn(request, &reply, sentence)) return false;
  *written = reply.succeeded();
  return true;
}

// Until etcd has heard that it is open, and what it had before its last move is given back.
bool HostPart::AwaitClaim(const std::string& number, uint64_t* incarnation, std::string* sentence) {
  const auto deadline = Clock::now() + kClaimPatience;
  base::MutexLock lock(mutex_);
  while (true) {
    *sentence = "this host is not in the pool now, where its place has to be: " + outside_;
    if (!joined_) return false;
    *sentence = "the pool does not know it";
    auto known = known_.find(number);
    if (known == known_.end() || known->second.state != State::kOpen) return false;
    if (known->second.written && !known->second.moves) {
      // Before anything is written: what it has there is not set right meanwhile.
      known->second.moves = true;
      *incarnation = joined_as_;
      return true;
    }
    *sentence = "etcd does not answer in time, where its place has to be";
    if (stop_ || Clock::now() > deadline) return false;
    wake_.WaitUntil(lock, Clock::now() + kClaimLook);
  }
}

bool HostPart::MayMove(const std::string& number, int32_t device, std::string* sentence) {
  uint64_t incarnation = 0;
  if (!AwaitClaim(number, &incarnation, sentence)) return false;
  if (TakeDevice(number, device, incarnation, sentence)) return true;
  Moved(number, {});  // an answer may be lost: it may have the device all the same
  return false;
}

bool HostPart::TakeDevice(const std::string& number, int32_t device, uint64_t incarnation,
                          std::string* sentence) {
  for (int i = 0; i < kTries; ++i) {
    ReadRecord read;
    if (!ReadClaim(number, &read, sentence)) {
      *sentence = "the pool does not say whether it may: " + *sentence;
      return false;
    }
    *sentence = "the pool does not have its claim as this host knows it";
    if (read.claim.incarnation() != incarnation || read.capacity.incarnation() != incarnation) {
      return false;
    }
    *sentence = "the pool has promised device " + std::to_string(device) +
                " to others, or lets nobody onto it";
    if (!TakeAlso(device, &read.claim, &read.capacity)) return false;
    bool written = false;
    if (!WriteClaim(number, read, &written, sentence)) {
      *sentence = "the pool does not say whether it may: " + *sentence;
      return false;
    }
    if (written) return true;
  }
  *sentence = "the pool is too busy; try again";
  return false;
}

void HostPart::Moved(const std::string& number, std::vector<uint64_t> gone) {
  base::MutexLock lock(mutex_);
  auto known = known_.find(number);
  if (known == known_.end()) return;
  known->second.sessions.insert(known->second.sessions.end(), gone.begin(), gone.end());
  known->second.moves = false;
  known->second.unsettled = true;
  work_ = true;
  wake_.NotifyAll();
}

std::set<std::string> HostPart::Unsettled() {
  base::MutexLock lock(mutex_);
  std::set<std::string> numbers;
  for (const auto& [number, known] : known_) {
    if (known.state == State::kOpen && (known.moves || known.unsettled)) numbers.insert(number);
  }
  return numbers;
}

// Claims of sessions that have moved, or did not after all, become what the sessions have.
void HostPart::SettleMoved() {
  for (const std::string& number : Unsettled()) {
    std::vector<uint64_t> gone;
    {
      base::MutexLock lock(mutex_);
      auto known = known_.find(number);
      if (known == known_.end() || known->second.moves) continue;
      gone = known->second.sessions;
    }
    if (facts_.AreGone(gone)) Settle(number, gone);
  }
}

void HostPart::Settle(const std::string& number, const std::vector<uint64_t>& gone) {
  {
    base::MutexLock lock(mutex_);
    auto known = known_.find(number);
    if (known == known_.end() || known->second.state != State::kOpen || known->second.moves ||
        known->second.sessions != gone) {
      return;
    }
    known->second.moves = true;  // no move begins from here on
  }
  const bool settled = GiveUpDevices(number);
  base::MutexLock lock(mutex_);
  auto known = known_.find(number);
  if (known == known_.end()) return;
  known->second.moves = false;
  if (!settled || known->second.state != State::kOpen) return;
  known->second.unsettled = false;
  known->second.sessions.clear();
}

bool HostPart::GiveUpDevices(const std::string& number) {
  for (int i = 0; i < kTries; ++i) {
    ReadRecord read;
    std::string sentence;
    if (!ReadClaim(number, &read, &sentence)) return false;
    const Claims running = facts_.Running();
    auto found = running.find(number);
    if (found == running.end()) return false;  // it is just ending
    // Also where it is so already: what was not answered cannot be made after this.
    SetDevices(found->second, &read.claim, &read.capacity);
    bool written = false;
    if (!WriteClaim(number, read, &written, &sentence)) return false;
    if (written) return true;
  }
  return false;
}

}  // namespace longwire::pool
