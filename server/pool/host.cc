#include "server/pool/host.h"

#include <algorithm>
#include <cerrno>

#include "base/reason.h"
#include "base/start_thread.h"
#include "link/transport/log.h"
#include "server/pool/directory.h"
#include "server/pool/keys.h"

namespace longwire::pool {
namespace {

using transport::Log;
using transport::LogLevel;

// How soon something is tried again, also when nobody wakes the thread.
constexpr std::chrono::milliseconds kStep{100};
constexpr std::chrono::milliseconds kIdleStep{1000};
constexpr std::chrono::seconds kCheck{2};
constexpr std::chrono::seconds kLoad{2};
constexpr std::chrono::seconds kWarmPause{
    5};  // it is longer than the load, and changes more slowly
// Of one transaction: etcd takes 128 operations.
constexpr size_t kAtOnce = 30;
// What it may take to give back what has just ended, at longwired's own end.
constexpr std::chrono::seconds kLastWords{2};
constexpr int kTries = 20;
// What those who come wait for, where this host is not in the pool yet.
constexpr std::chrono::seconds kJoining{1};

}  // namespace

bool HostPart::Start(std::string* sentence) {
  if (!ReadIdentity(sentence)) return false;
  if (base::StartThread(&thread_, [this] { Loop(); })) return true;
  *sentence = base::ReasonOfNoThread(errno);
  return false;
}

void HostPart::Stop() {
  {
    base::MutexLock lock(mutex_);
    stop_ = true;
    joined_ = false;
    outside_ = "longwired ends";
  }
  wake_.NotifyAll();
  if (!thread_.joinable()) return;
  thread_.join();
  const auto deadline = Clock::now() + kLastWords;
  for (GiveBackOver(); !Listed(State::kOver, 1).empty() && Clock::now() < deadline;) {
    std::this_thread::sleep_for(kStep);
    GiveBackOver();
  }
}

bool HostPart::joined(std::string* sentence) const {
  base::MutexLock lock(mutex_);
  *sentence = outside_;
  if (!joined_ || client_.went_back() == went_back_.load()) return joined_;
  // Until it has joined anew nobody else knows: this host neither asks nor places before.
  *sentence = "etcd was restored from an older copy";
  return false;
}

// Others may know that this host is in the pool a moment before etcd's answer is here.
bool HostPart::AwaitJoining(base::MutexLock& lock, std::string* sentence) {
  const auto deadline = Clock::now() + kJoining;
  while (!joined_ && !stop_ && wake_.WaitUntil(lock, deadline)) {
  }
  *sentence = "this host is not in the pool now: " + outside_;
  return joined_;
}

bool HostPart::AwaitJoined(std::string* sentence) {
  base::MutexLock lock(mutex_);
  if (!AwaitJoining(lock, sentence)) return false;
  *sentence = "this host is not in the pool now: etcd was restored from an older copy";
  return client_.went_back() == went_back_.load();
}

bool HostPart::withdrawn() const {
  base::MutexLock lock(mutex_);
  return withdrawn_.has_value();
}

std::optional<Withdrawal> HostPart::withdrawal(uint64_t* left) const {
  base::MutexLock lock(mutex_);
  *left = drain_left_;
  return withdrawn_;
}

bool HostPart::Admit(const std::string& number, const std::string& ticket,
                     const std::string& identity, Claim* claim, std::string* sentence,
                     bool* again) {
  uint64_t incarnation = 0;
  *again = true;
  {
    base::MutexLock lock(mutex_);
    if (!AwaitJoining(lock, sentence)) return false;
    Known& known = known_[number];
    *sentence = "the place for this session is taken already";
    if (known.state != State::kSeen) return false;
    // Before it is read: it is not given back, nor opened a second time, meanwhile.
    known.state = State::kOpening;
    incarnation = joined_as_;
  }
  etcd::pb::RangeRequest request;
  etcd::pb::RangeResponse reply;
  request.set_key(Key(kClaims, options_.name, number));
  if (client_.Range(request, &reply, sentence)) {
    if (reply.kvs_size() == 0 || !Decode(reply.kvs(0).value(), claim) ||
        claim->incarnation() != incarnation || claim->state() != RESERVED) {
      *sentence = "there is no place for this session at this host any more";
    } else if (claim->identity() != identity || claim->ticket_hash() != HashOf(ticket)) {
      // Whose place it is may still come.
      *sentence = "the ticket is not for this session, or not for this client";
      *again = false;
    } else {
      return true;
    }
  }
  base::MutexLock lock(mutex_);
  auto known = known_.find(number);
  if (known == known_.end()) return false;
  if (reply.kvs_size() == 0) {
    known_.erase(known);  // the next reading of all finds it if it is there
  } else {
    known->second.state = State::kSeen;
  }
  return false;
}

void HostPart::Opened(const std::string& number) {
  base::MutexLock lock(mutex_);
  Known& known = known_[number];
  if (known.state == State::kOver) return;  // its end was faster
  known.state = State::kOpen;
  known.since = Clock::now();
  work_ = true;
  wake_.NotifyAll();
}

void HostPart::Over(const std::string& number, std::vector<uint64_t> sessions) {
  base::MutexLock lock(mutex_);
  Known& known = known_[number];
  known.state = State::kOver;
  known.sessions.insert(known.sessions.end(), sessions.begin(), sessions.end());
  work_ = true;
  wake_.NotifyAll();
}

void HostPart::Loop() {
  while (true) {
    Step();
    const bool busy = !Listed(State::kOver, 1).empty() || !Unsettled().empty();
    const auto deadline = Clock::now() + (busy ? kStep : kIdleStep);
    base::MutexLock lock(mutex_);
    if (stop_) return;
    // What is over waits for its memory; what is new is looked at now.
    while (!work_ && !stop_ && wake_.WaitUntil(lock, deadline)) {
    }
    if (stop_) return;  // another step would join once more
    work_ = false;
  }
}

void HostPart::Leave(const std::string& sentence) {
  base::MutexLock lock(mutex_);
  if (outside_ != sentence) Log(LogLevel::kWarning, "not in the pool: " + sentence);
  joined_ = false;
  outside_ = sentence;
}

void HostPart::Step() {
  std::string sentence;
  EndDrained();  // also without etcd
  if (lease_.id() == 0) {
    std::string problem = lease_.problem();
    Leave(problem.empty() ? "it is just joining" : problem);
    return DropGone();
  }
  if (joined_lease_ != lease_.id() || !joined(&sentence)) {
    DropGone();
    if (!Join(&sentence)) return Leave(sentence);
    next_check_ = Clock::now() + kCheck;
  }
  if (Clock::now() >= next_check_) {
    Check();
    next_check_ = Clock::now() + kCheck;
  }
  WriteOpened();
  SettleMoved();
  GiveBackOver();
  if (Clock::now() >= next_load_) {
    WriteLoad();
    next_load_ = Clock::now() + kLoad;
  }
  if (Clock::now() >= next_warm_) {
    WriteWarm();
    next_warm_ = Clock::now() + kWarmPause;
  }
}

bool HostPart::Read(Truth* truth, std::string* sentence) {
  const auto asked = Clock::now();
  const std::string claims = Key(kClaims, options_.name) + "/";
  etcd::pb::TxnRequest request;
  etcd::pb::TxnResponse reply;
  *request.add_success() = etcd::ReadOp(Key(kHosts, options_.name));
  *request.add_success() = etcd::ReadOp(Key(kCapacities, options_.name));
  *request.add_success() = etcd::ReadOp(claims, etcd::EndOfPrefix(claims));
  *request.add_success() = etcd::ReadOp(std::string(kEpoch));
  *request.add_success() = etcd::ReadOp(Key(kWithdrawn, options_.name));
  if (!client_.Txn(request, &reply, sentence)) return false;
  *sentence = "etcd's answer cannot be understood";
  if (reply.responses_size() != 5) return false;
  truth->revision = reply.header().revision();
  auto one = [&](int place) -> etcd::pb::KeyValue {
    const auto& range = reply.responses(place).response_range();
    return range.kvs_size() == 0 ? etcd::pb::KeyValue() : range.kvs(0);
  };
  truth->host = one(0);
  truth->capacity_kv = one(1);
  truth->epoch_kv = one(3);
  truth->withdrawn_kv = one(4);
  Follow(truth->withdrawn_kv);
  truth->epoch = ReadEpoch(truth->epoch_kv.value());
  if (truth->capacity_kv.mod_revision() != 0 &&
      !Decode(truth->capacity_kv.value(), &truth->capacity)) {
    *sentence = Key(kCapacities, options_.name) + " in etcd is no record of this version";
    return false;
  }
  if (truth->capacity.format() > kRecordFormat) {
    *sentence = Key(kCapacities, options_.name) + " in etcd is of a newer version (format " +
                std::to_string(truth->capacity.format()) + ", this longwired reads " +
                std::to_string(kRecordFormat) + "); install that one again";
    return false;
  }
  for (const etcd::pb::KeyValue& kv : reply.responses(2).response_range().kvs()) {
    const std::string number = LastPart(kv.key());
    truth->changed[number] = kv.mod_revision();
    if (Decode(kv.value(), &truth->claims[number])) continue;
    *sentence = kv.key() + " in etcd is no record of this version";
    return false;
  }
  base::MutexLock lock(mutex_);
  heard_ = asked;
  claims_ = truth->claims;
  return true;
}

// What an administrator said of this host, through whichever server of the pool.
void HostPart::Follow(const etcd::pb::KeyValue& kv) {
  Withdrawal told;
  const bool there = kv.create_revision() != 0;
  // One that cannot be read takes the host out of service, too.
  if (there && (!Decode(kv.value(), &told) || told.number().empty())) told.set_number("0");
  const bool was = following_.withdrawn();
  if (following_.Hear(there ? &told : nullptr, BootSeconds())) {
    std::string sentence = there ? "taken out of service in the pool by " + told.by() +
                                       (told.drain() ? ": drained" : ": cordoned")
                                 : "in service again in the pool";
    if (there || was) Log(LogLevel::kInfo, sentence);
    if (!WriteIdentity(&sentence)) Log(LogLevel::kWarning, sentence);
  }
  base::MutexLock lock(mutex_);
  withdrawn_ = there ? std::optional(told) : std::nullopt;
  drain_left_ = following_.Left(BootSeconds());
}

// Again and again: a session whose place was promised before the drain may come after its deadline.
void HostPart::EndDrained() {
  if (!following_.IsDue(BootSeconds())) return;
  const size_t ended = facts_.EndAll(
      "the host '" + options_.name +
      "' was drained by an administrator, and the time that its sessions had is over; start the "
      "program again: another host of the pool takes it");
  if (ended != 0) {
    Log(LogLevel::kInfo,
        "the deadline of the drain has passed: " + std::to_string(ended) + " sessions were ended");
  }
}

// What etcd has of this host against what the host knows. Whatever does not fit ends with joining
// anew, which writes the truth.
void HostPart::Check() {
  const auto began = Clock::now();
  Truth truth;
  std::string sentence;
  if (!Read(&truth, &sentence)) return;  // known_ stays; nothing opens without etcd anyway
  Host host;
  if (client_.went_back() != went_back_ || truth.epoch != epoch_) {
    sentence = "etcd was restored from an older copy";
  } else if (truth.host.lease() != joined_lease_ || !Decode(truth.host.value(), &host) ||
             host.incarnation() != incarnation_) {
    sentence = "etcd has lost this host's entry";
  } else if (truth.capacity.identity() != identity_ ||
             truth.capacity.incarnation() != incarnation_ ||
             !Balances(truth.claims, truth.capacity)) {
    sentence = "etcd's sums of this host are not those of its claims";
  } else {
    sentence.clear();
  }
  const auto now = Clock::now();
  {
    base::MutexLock lock(mutex_);
    for (const auto& [number, claim] : truth.claims) {
      Known& known = known_[number];
      if (known.state == State::kSeen && now - known.since > options_.reservation) {
        known.state = State::kOver;
      }
    }
    for (auto one = known_.begin(); one != known_.end();) {
      const bool there = truth.claims.contains(one->first);
      if (!there && one->second.state == State::kOpen && one->second.since < began) {
        sentence = "etcd does not have the claim of a session that runs here";
      }
      one = !there && one->second.state == State::kSeen ? known_.erase(one) : std::next(one);
    }
  }
  if (!sentence.empty()) return Leave(sentence);
  SyncCapacity(truth);
}

// Limits and cordons that have changed here.
void HostPart::SyncCapacity(const Truth& truth) {
  Capacity now;
  std::string sentence;
  if (!facts_.Describe(&now, &sentence)) return;
  Sign(&now);
  if (truth.capacity.has_unknown_members()) {
    now.set_unknown_members(truth.capacity.unknown_members());  // of a newer placer
  }
  Rewrite(truth.claims, &now);
  if (now.SerializeAsString() == truth.capacity.SerializeAsString()) return;
  etcd::pb::TxnRequest request;
  etcd::pb::TxnResponse reply;
  const std::string key = Key(kCapacities, options_.name);
  *request.add_compare() = etcd::ChangedAt(key, truth.capacity_kv.mod_revision());
  *request.add_success() = etcd::PutOp(key, Encode(now));
  (void)client_.Txn(request, &reply, &sentence);  // the next check tries again
}

std::vector<std::string> HostPart::Listed(State state, size_t most) {
  base::MutexLock lock(mutex_);
  std::vector<std::string> numbers;
  for (const auto& [number, known] : known_) {
    if (known.state != state || (state == State::kOpen && known.written)) continue;
    numbers.push_back(number);
    if (numbers.size() == most) break;
  }
  return numbers;
}

void HostPart::WriteOpened() {
  for (const std::string& number : Listed(State::kOpen, kAtOnce)) {
    etcd::pb::RangeRequest read;
    etcd::pb::RangeResponse found;
    std::string sentence;
    Claim claim;
    read.set_key(Key(kClaims, options_.name, number));
    if (!client_.Range(read, &found, &sentence)) return;
    if (found.kvs_size() == 0 || !Decode(found.kvs(0).value(), &claim)) continue;  // Check sees it
    etcd::pb::TxnRequest request;
    etcd::pb::TxnResponse reply;
    claim.set_state(OPEN);
    *request.add_compare() = etcd::ChangedAt(read.key(), found.kvs(0).mod_revision());
    *request.add_success() = etcd::PutOp(read.key(), Encode(claim));
    if (!client_.Txn(request, &reply, &sentence)) return;
    base::MutexLock lock(mutex_);
    auto known = known_.find(number);
    if (known != known_.end()) known->second.written = reply.succeeded();
  }
}

std::vector<std::string> HostPart::Gone() {
  std::vector<std::string> gone;
  for (const std::string& number : Listed(State::kOver, SIZE_MAX)) {
    std::vector<uint64_t> sessions;
    {
      base::MutexLock lock(mutex_);
      const Known& known = known_[number];
      if (known.moves) continue;  // there is another worker
      sessions = known.sessions;
    }
    if (facts_.AreGone(sessions)) gone.push_back(number);
    if (gone.size() == kAtOnce) break;
  }
  return gone;
}

void HostPart::GiveBackOver() {
  const std::vector<std::string> gone = Gone();
  if (gone.empty() || !GiveBack(gone)) return;
  base::MutexLock lock(mutex_);
  for (const std::string& number : gone) known_.erase(number);
}

// Outside the pool: what does not live here any more is not written when it joins anew, so its room
// is free for what is opened without etcd.
void HostPart::DropGone() {
  const std::vector<std::string> gone = Gone();
  base::MutexLock lock(mutex_);
  for (const std::string& number : gone) {
    known_.erase(number);
    alone_.erase(number);
  }
}

bool HostPart::GiveBack(const std::vector<std::string>& numbers) {
  for (int i = 0; i < kTries; ++i) {
    Truth truth;
    std::string sentence;
    if (!Read(&truth, &sentence)) return false;
    // Another one's, or written anew: joining says what holds.
    if (truth.capacity.identity() != identity_ || truth.capacity.incarnation() != incarnation_) {
      return false;
    }
    etcd::pb::TxnRequest request;
    etcd::pb::TxnResponse reply;
    const std::string key = Key(kCapacities, options_.name);
    *request.add_compare() = etcd::ChangedAt(key, truth.capacity_kv.mod_revision());
    // Once the lease has expired nothing is freed, also if this host does not know that yet.
    *request.add_compare() = etcd::Present(Key(kHosts, options_.name));
    bool any = false;
    for (const std::string& number : numbers) {
      auto claim = truth.claims.find(number);
      if (claim == truth.claims.end()) continue;
      any = true;
      pool::GiveBack(claim->second, &truth.capacity);
      *request.add_success() = etcd::DeleteOp(Key(kClaims, options_.name, number));
      *request.add_success() = etcd::DeleteOp(Key(kSessions, number));
    }
    if (!any) return true;
    *request.add_success() = etcd::PutOp(key, Encode(truth.capacity));
    if (!client_.Txn(request, &reply, &sentence)) return false;
    if (reply.succeeded()) return true;
  }
  return false;
}

bool HostPart::WriteHint(std::string_view folder, const std::string& text) {
  etcd::pb::PutRequest request;
  etcd::pb::PutResponse reply;
  std::string sentence;
  request.set_key(Key(folder, options_.name));
  request.set_value(text);
  request.set_lease(joined_lease_);
  return client_.Put(request, &reply, &sentence);
}

void HostPart::WriteLoad() {
  Load load = facts_.Loads();
  load.set_withdrawal(following_.number());
  load.set_drain_left(following_.Left(BootSeconds()));
  const std::string text = Encode(load);
  if (text != load_written_ && WriteHint(kLoads, text)) load_written_ = text;
}

void HostPart::WriteWarm() {
  const std::optional<Warm> warm = facts_.Warmth();
  if (!warm) return;
  const std::string text = Encode(*warm);
  if (text != warm_written_ && WriteHint(kWarm, text)) warm_written_ = text;
}

}  // namespace longwire::pool
