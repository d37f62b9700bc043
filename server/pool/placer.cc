#include "server/pool/placer.h"

#include <algorithm>
#include <cerrno>

#include "base/reason.h"
#include "base/start_thread.h"
#include "link/transport/log.h"
#include "server/pool/keys.h"
#include "server/pool/new_claims.h"

namespace longwire::pool {
namespace {

using scheduler::pool::Decision;
using scheduler::pool::Outcome;
using transport::Log;
using transport::LogLevel;

constexpr std::chrono::milliseconds kCampaignPause{500};
constexpr std::chrono::milliseconds kLook{1000};
// Changes that come together are looked at together; the first one after a rest at once.
constexpr std::chrono::milliseconds kGather{2};
// A waiter hears at most so often that its place or its reason has changed.
constexpr std::chrono::milliseconds kTellAgain{1000};
constexpr std::chrono::seconds kSkip{2};
// So long a program that fits nowhere is looked at again before it is refused.
constexpr std::chrono::milliseconds kEnding{400};
// In one transaction; etcd takes 128 operations.
constexpr size_t kPlacements = 20;
constexpr size_t kAnswersAtOnce = 40;
// Of one identity, whose programs have not come yet: more wait, so that nobody takes the whole pool
// without opening anything.
constexpr size_t kReserved = 128;
constexpr int64_t kLooked = 200;   // of those who wait
constexpr uint32_t kFailures = 5;  // that others' changes explain

std::map<std::string, size_t> ReservedBy(const Directory& directory) {
  std::map<std::string, size_t> reserved;
  for (const auto& [host, claims] : directory.claims) {
    for (const auto& [number, claim] : claims) {
      if (claim.state() == RESERVED) ++reserved[claim.identity()];
    }
  }
  return reserved;
}

}  // namespace

// A transaction that is being written, and the capacities as they will be.
struct PlacerPart::Batch {
  etcd::pb::TxnRequest request;
  std::map<std::string, Capacity> capacities;
  std::vector<std::string> numbers;  // of those who get an answer
  size_t placements = 0;
  Counts sessions;  // by tenant, with those that are just placed
};

bool PlacerPart::Start(std::string* sentence) {
  if (base::StartThread(&thread_, [this] { Loop(); })) return true;
  *sentence = base::ReasonOfNoThread(errno);
  return false;
}

void PlacerPart::Stop() {
  stop_.store(true);
  if (thread_.joinable()) thread_.join();
}

void PlacerPart::Loop() {
  while (!stop_.load()) {
    // Read before it is asked whether this host is in the pool: once etcd has gone back it is not,
    // until it has joined anew.
    went_back_ = client_.went_back();
    if (lease_.id() != 0 && may_() && Campaign()) {
      Lead();
    } else {
      std::this_thread::sleep_for(kCampaignPause);
    }
  }
}

bool PlacerPart::Campaign() {
  const std::string key(kPlacer);
  const int64_t lease = lease_.id();
  std::string sentence;
  etcd::pb::RangeRequest read;
  etcd::pb::RangeResponse found;
  read.set_key(key);
  if (!client_.Range(read, &found, &sentence)) return false;
  elected_lease_ = lease;
  if (found.kvs_size() != 0) {
    elected_ = found.kvs(0).create_revision();
    return found.kvs(0).lease() == lease;  // an answer was lost
  }
  Placer placer;
  placer.set_host(host_);
  etcd::pb::TxnRequest request;
  etcd::pb::TxnResponse reply;
  *request.add_compare() = etcd::Absent(key);
  *request.add_success() = etcd::PutOp(key, Encode(placer), lease);
  if (!client_.Txn(request, &reply, &sentence) || !reply.succeeded()) return false;
  elected_ = reply.header().revision();
  return true;
}

void PlacerPart::Lead() {
  std::string sentence;
  mirror_ = std::make_unique<etcd::Mirror>(client_, std::string(kPrefix), nullptr);
  if (mirror_->Refresh(&sentence) && WriteLimits(client_, limits_, elected_, &sentence) &&
      mirror_->Start(&sentence)) {
    Log(LogLevel::kInfo, "this host places the pool's sessions now");
    leads_.store(true);
    look_ = Clock::now() + kLook;
    while (!stop_.load() && lease_.id() == elected_lease_ && client_.went_back() == went_back_ &&
           Pass()) {
      const auto next = Clock::now() + kGather;
      mirror_->Wait(look_);
      if (Clock::now() >= look_) CheckWatch();
      look_ = Clock::now() + kLook;
      std::this_thread::sleep_until(next);
    }
    leads_.store(false);
    Log(LogLevel::kInfo, "this host does not place the pool's sessions any more");
  }
  mirror_.reset();
  directory_ = Directory();
  told_.clear();
  skipped_.clear();
  ages_.Clear();
  warm_.Clear();
}

// A watch at a member that is stopped says nothing for long, and whoever waits would, too.
void PlacerPart::CheckWatch() {
  etcd::Mirror::Keys keys;
  etcd::pb::RangeRequest request;
  etcd::pb::RangeResponse found;
  std::string sentence;
  request.set_key(std::string(kQueue));
  request.set_range_end(etcd::EndOfPrefix(std::string(kQueue)));
  request.set_limit(kLooked);
  if (!mirror_->Get(&keys) || !client_.Range(request, &found, &sentence)) return;
  for (const etcd::pb::KeyValue& kv : found.kvs()) {
    auto known = keys.find(kv.key());
    if (known != keys.end() && known->second.mod_revision() == kv.mod_revision()) continue;
    (void)mirror_->Refresh(&sentence);
    return;
  }
}

bool PlacerPart::ReadMirror() {
  return mirror_->Look([this](const etcd::Mirror::Keys& keys) {
    directory_.Update(keys);
    warm_.Look(keys);
  });
}

bool PlacerPart::IsElected() const {
  return directory_.placer_created == elected_ && directory_.placer_lease == elected_lease_;
}

// False when another host is the placer.
bool PlacerPart::Pass() {
  if (!ReadMirror()) return true;
  if (!IsElected()) {
    std::string sentence;
    // The mirror may be behind the election.
    return !mirror_->Refresh(&sentence) || !ReadMirror() || IsElected();
  }
  const Directory& directory = directory_;
  const auto clock = Clock::now();
  ages_.Look(directory, clock);
  // A thousand hosts change often.
  if (directory.waiters.empty()) {
    told_.clear();
    return true;
  }
  std::vector<scheduler::pool::HostState> hosts = HostStates(directory);
  for (scheduler::pool::HostState& host : hosts) {
    ages_.Fill(directory, &host);
    warm_.Fill(&host);
  }
  std::vector<const Waiter*> waiters, full;
  std::vector<scheduler::pool::Wish> wishes;
  std::set<std::string> numbers;
  const std::map<std::string, size_t> reserved = ReservedBy(directory);
  const std::string halted = WhyHalted(directory);
  Batch batch;
  batch.sessions = CountSessions(directory);
  std::erase_if(skipped_, [](const auto& one) { return Clock::now() > one.second; });
  for (const auto& [key, waiter] : directory.waiters) {
    // Two fronts may have been asked: one of them at a time.
    if (!numbers.insert(waiter.number).second) continue;
    if (skipped_.contains(waiter.number) || AnswerAgain(directory, waiter, &batch) ||
        Refuse(directory, waiter, &batch)) {
      continue;
    }
    auto held = reserved.find(waiter.request.identity());
    if (held != reserved.end() && held->second >= kReserved) continue;
    const bool moves = waiter.request.has_from();  // it counts already
    if (!halted.empty() ||
        (!moves && !WhyFull(limits_, batch.sessions, waiter.request.tenant()).empty())) {
      full.push_back(&waiter);
      continue;
    }
    waiters.push_back(&waiter);
    wishes.push_back(WishOf(waiter));
    const uint64_t left = SessionsLeft(limits_, batch.sessions, waiter.request.tenant());
    wishes.back().hosts =
        moves ? 1 : static_cast<uint32_t>(std::min<uint64_t>(wishes.back().hosts, left));
    ages_.Fill(waiter, &wishes.back());
    warm_.Fill(&wishes.back());
  }
  auto decisions =
      planner_.Plan(std::move(hosts), wishes, one_by_one_ ? 1 : kPlacements, Ages::Seconds(clock));
  const auto waiting = static_cast<uint32_t>(std::ranges::count_if(
      decisions, [](const Decision& one) { return one.outcome == Outcome::kWaits; }));
  bool cut = decisions.size() < wishes.size();
  for (const Decision& decision : decisions) {
    Decide(directory, *waiters[decision.wish], decision, waiting, &batch);
    // The rest is planned anew, on what this changes.
    if (batch.numbers.size() >= (one_by_one_ ? 1 : kAnswersAtOnce)) {
      cut = true;
      break;
    }
  }
  if (!cut) DecideFull(directory, full, halted, waiting, &batch);
  if (!Execute(&batch) || cut) mirror_->Wake();
  if (told_.size() > 2 * (waiters.size() + full.size())) told_.clear();
  return true;
}

// Behind all others in the queue: they are not waited for, and wait for none.
void PlacerPart::DecideFull(const Directory& directory, const std::vector<const Waiter*>& full,
                            const std::string& halted, uint32_t waiting, Batch* batch) {
  const uint32_t all = waiting + static_cast<uint32_t>(std::ranges::count_if(
                                     full, [](const Waiter* one) { return one->request.wait(); }));
  for (const Waiter* waiter : full) {
    if (batch->numbers.size() >= (one_by_one_ ? 1 : kAnswersAtOnce)) return mirror_->Wake();
    Decision decision;
    decision.outcome = waiter->request.wait() ? Outcome::kWaits : Outcome::kRefused;
    decision.reason =
        halted.empty() ? WhyFull(limits_, batch->sessions, waiter->request.tenant()) : halted;
    if (waiter->request.wait()) decision.place = ++waiting;
    Decide(directory, *waiter, decision, all, batch);
  }
}

// What it asks for is not known, or not its own, so nothing can be promised; its front says that.
bool PlacerPart::Refuse(const Directory& directory, const Waiter& waiter, Batch* batch) {
  std::string why = WhyNotFrom(directory, waiter);
  if (!waiter.unknown.empty()) {
    why = "the host '" + host_ +
          "', which places the pool's sessions, does not know all that is asked for: " +
          waiter.unknown;
  }
  if (why.empty()) return false;
  if (batch->numbers.size() >= (one_by_one_ ? 1 : kAnswersAtOnce)) {
    mirror_->Wake();
    return true;
  }
  Answer answer;
  answer.set_refusal(why);
  const std::string key = Key(kQueue, waiter.front, waiter.number);
  *batch->request.add_compare() = etcd::ChangedAt(key, waiter.changed);
  *batch->request.add_success() = etcd::DeleteOp(key);
  *batch->request.add_success() =
      etcd::PutOp(Key(kAnswers, waiter.front, waiter.number), Encode(answer), waiter.lease);
  batch->numbers.push_back(waiter.number);
  return true;
}

// A program whose front did not hear that it has a place, and asks again.
bool PlacerPart::AnswerAgain(const Directory& directory, const Waiter& waiter, Batch* batch) {
  auto owner = directory.owners.find(waiter.number);
  if (owner == directory.owners.end()) return false;
  Answer answer;
  if (!AnswerOf(directory, waiter, owner->second, &answer)) {
    answer.Clear();
    answer.set_refusal("the number of this session is taken; start the program again");
  }
  const std::string key = Key(kQueue, waiter.front, waiter.number);
  *batch->request.add_compare() = etcd::ChangedAt(key, waiter.changed);
  *batch->request.add_success() = etcd::DeleteOp(key);
  *batch->request.add_success() =
      etcd::PutOp(Key(kAnswers, waiter.front, waiter.number), Encode(answer), waiter.lease);
  batch->numbers.push_back(waiter.number);
  return true;
}

bool PlacerPart::Place(const Directory& directory, const Waiter& waiter, const Decision& decision,
                       Batch* batch, Answer* answer) {
  const std::vector<NewClaim> claims = NewClaimsOf(directory, waiter, decision);
  // It waits until the next pass, which sees that its tenant has all of its sessions.
  const std::string& tenant = waiter.request.tenant();
  const size_t more = waiter.request.has_from() ? 0 : claims.size();
  if (SessionsLeft(limits_, batch->sessions, tenant) < more) return false;
  std::map<std::string, Capacity> after = batch->capacities;
  etcd::pb::TxnRequest compares;
  for (const NewClaim& one : claims) {
    const HostEntry& entry = directory.hosts.at(one.host);
    auto [capacity, is_new] = after.try_emplace(one.host, entry.capacity);
    // The planner counts as the ledger does.
    if (!Take(one.claim, &capacity->second)) return false;
    if (!is_new) continue;
    *compares.add_compare() = etcd::ChangedAt(Key(kCapacities, one.host), entry.capacity_changed);
    *compares.add_compare() = etcd::CreatedAt(Key(kHosts, one.host), entry.host_created);
  }
  batch->capacities = std::move(after);
  etcd::pb::TxnRequest& request = batch->request;
  request.MergeFrom(compares);
  if (batch->placements == 0) {
    *request.add_compare() = etcd::ChangedAt(std::string(kEpoch), directory.epoch_changed);
  }
  for (const NewClaim& one : claims) Write(one, &request);
  batch->placements += claims.size();
  batch->sessions[tenant] += more;
  TellPlaces(directory, claims, answer);
  return true;
}

void PlacerPart::Decide(const Directory& directory, const Waiter& waiter, const Decision& decision,
                        uint32_t waiting, Batch* batch) {
  const std::string key = Key(kQueue, waiter.front, waiter.number);
  const std::string answer_key = Key(kAnswers, waiter.front, waiter.number);
  Answer answer;
  if (decision.outcome == Outcome::kWaits) {
    auto known = directory.answers.find(answer_key);
    answer.set_place(decision.place);
    answer.set_waiting(waiting);
    answer.set_reason(decision.reason);
    answer.set_since(ages_.SinceOf(waiter));
    const bool same = known != directory.answers.end() && known->second == Encode(answer);
    auto [told, first] = told_.try_emplace(waiter.number);
    if (same || (!first && Clock::now() - told->second < kTellAgain)) return;
    told->second = Clock::now();
  } else if (decision.outcome == Outcome::kPlaced) {
    if (!Place(directory, waiter, decision, batch, &answer)) return;
    told_.erase(waiter.number);
  } else {
    // What has just ended comes back in a moment.
    auto [since, first] = told_.try_emplace(waiter.number, Clock::now());
    if (Clock::now() - since->second < kEnding) {
      look_ = std::min(look_, since->second + kEnding);
      return;
    }
    told_.erase(since);
    answer.set_refusal(decision.reason);
  }
  etcd::pb::TxnRequest& request = batch->request;
  *request.add_compare() = etcd::ChangedAt(key, waiter.changed);
  if (decision.outcome != Outcome::kWaits) *request.add_success() = etcd::DeleteOp(key);
  *request.add_success() = etcd::PutOp(answer_key, Encode(answer), waiter.lease);
  batch->numbers.push_back(waiter.number);
}

bool PlacerPart::Execute(Batch* batch) {
  if (batch->numbers.empty()) return true;
  etcd::pb::TxnRequest& request = batch->request;
  for (const auto& [host, capacity] : batch->capacities) {
    *request.add_success() = etcd::PutOp(Key(kCapacities, host), Encode(capacity));
  }
  *request.add_compare() = etcd::CreatedAt(std::string(kPlacer), elected_);
  if (client_.went_back() != went_back_) return false;
  etcd::pb::TxnResponse reply;
  std::string sentence;
  const bool answered = client_.Txn(request, &reply, &sentence);
  const bool done = answered && reply.succeeded();
  if (done) {
    mirror_->Apply(request, reply.header().revision());
    placed_.fetch_add(batch->placements);
    one_by_one_ = false;
    failures_ = 0;
  } else {
    // One whose front has gone spoils all of its transaction: who it is shows one by one.
    if (one_by_one_) {
      for (const std::string& number : batch->numbers) skipped_[number] = Clock::now() + kSkip;
    }
    one_by_one_ = (!answered || ++failures_ % kFailures == 0) && !one_by_one_;
    if (!answered) Log(LogLevel::kWarning, "placing sessions: " + sentence);
    (void)mirror_->Refresh(&sentence);
  }
  *batch = Batch();
  return done;
}

}  // namespace longwire::pool
