#include "server/pool/front.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/reason.h"
#include "base/start_thread.h"
#include "server/pool/keys.h"

namespace longwire::pool {
namespace {

// A program that waits asks again sooner than that.
constexpr std::chrono::seconds kAskAgain{8};
constexpr std::chrono::milliseconds kCleanPause{500};
constexpr std::chrono::milliseconds kLook{100};  // whether the client has gone
// Of one identity and of all at this front: each is a key in etcd.
constexpr size_t kRequestsOfIdentity = 100;
constexpr size_t kRequests = 2000;
constexpr size_t kCleanAtOnce = 50;

bool IsFinal(const Answer& answer) { return !answer.host().empty() || !answer.refusal().empty(); }

}  // namespace

bool FrontPart::Start(std::string* sentence) {
  const std::string prefix = Key(kAnswers, host_) + "/";
  answers_ = std::make_unique<etcd::Mirror>(client_, prefix, [this] { TakeAnswers(); });
  if (!answers_->Start(sentence)) return false;
  if (base::StartThread(&thread_, [this] { CleanLoop(); })) return true;
  *sentence = base::ReasonOfNoThread(errno);
  return false;
}

void FrontPart::Stop() {
  {
    base::MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
  if (answers_ != nullptr) answers_->Stop();
}

// By the mirror's thread.
void FrontPart::TakeAnswers() {
  etcd::Mirror::Keys keys;
  if (!answers_->Get(&keys)) return;
  base::MutexLock lock(mutex_);
  for (const auto& [key, kv] : keys) {
    auto pending = pending_.find(LastPart(key));
    Answer answer;
    // One from an earlier request of this number has another lease, or is overwritten by Ask.
    if (pending == pending_.end() || pending->second.lease != kv.lease()) continue;
    if (Decode(kv.value(), &answer)) pending->second.answer = std::move(answer);
  }
  changed_.NotifyAll();
}

bool FrontPart::Enter(const std::string& number, const Request& request, std::string* sentence) {
  base::MutexLock lock(mutex_);
  auto found = pending_.find(number);
  if (found != pending_.end()) {
    *sentence = "the number of this session is another client's";
    if (found->second.identity != request.identity()) return false;
    ++found->second.callers;
    return true;
  }
  const auto own = std::ranges::count_if(
      pending_, [&](const auto& one) { return one.second.identity == request.identity(); });
  *sentence = "too many programs wait for a place in the pool at this host; try again later";
  if (static_cast<size_t>(own) >= kRequestsOfIdentity || pending_.size() >= kRequests) return false;
  Pending& pending = pending_[number];
  pending.identity = request.identity();
  pending.callers = 1;
  return true;
}

bool FrontPart::Ask(const std::string& number, const Request& request, std::string* sentence) {
  const std::string key = Key(kQueue, host_, number);
  const int64_t lease = lease_.id();
  *sentence = "the pool cannot place programs now: this host has no connection to etcd" +
              (lease_.problem().empty() ? "" : " (" + lease_.problem() + ")");
  if (lease == 0) return false;
  {
    base::MutexLock lock(mutex_);
    Pending& pending = pending_[number];
    // It waits already; its lease has not ended meanwhile.
    if (pending.lease == lease && !(pending.answer && IsFinal(*pending.answer))) return true;
    pending.lease = lease;
    pending.answer.reset();
  }
  etcd::pb::TxnRequest txn;
  etcd::pb::TxnResponse reply;
  *txn.add_compare() = etcd::Absent(key);
  *txn.add_success() = etcd::DeleteOp(Key(kAnswers, host_, number));
  *txn.add_success() = etcd::PutOp(key, Encode(request), lease);
  if (client_.Txn(txn, &reply, sentence)) return true;
  *sentence = "the pool cannot place programs now: " + *sentence;
  return false;
}

bool FrontPart::Withdraw(const std::string& number, Answer* answer) {
  etcd::pb::TxnRequest txn;
  etcd::pb::TxnResponse reply;
  std::string sentence;
  *txn.add_success() = etcd::DeleteOp(Key(kQueue, host_, number));
  *txn.add_success() = etcd::ReadOp(Key(kAnswers, host_, number));
  *txn.add_success() = etcd::DeleteOp(Key(kAnswers, host_, number));
  // Without etcd it goes with this host's lease, and a place by its host's own clock.
  if (!client_.Txn(txn, &reply, &sentence) || reply.responses_size() != 3) return false;
  const auto& found = reply.responses(1).response_range();
  return found.kvs_size() != 0 && Decode(found.kvs(0).value(), answer) && !answer->host().empty();
}

FrontPart::Result FrontPart::Place(const std::string& number, const Request& request,
                                   Clock::time_point deadline, const std::atomic<bool>& cancelled,
                                   Answer* answer, std::string* sentence) {
  if (!Enter(number, request, sentence)) return Result::kRefused;
  std::string problem;
  const bool asked = Ask(number, request, &problem);
  bool final = false, stop = false;
  answer->Clear();
  {
    base::MutexLock lock(mutex_);
    auto found = pending_.find(number);
    while (asked && !stop && !final && !cancelled.load() && Clock::now() < deadline) {
      changed_.WaitUntil(lock, std::min(deadline, Clock::now() + kLook));
      stop = stop_;
      found = pending_.find(number);  // a second call for it may have taken the answer
      if (found == pending_.end()) break;
      final = found->second.answer && IsFinal(*found->second.answer);
    }
    *sentence = "another connection has asked for this session";
    if (found == pending_.end()) return Result::kRefused;
    Pending& pending = found->second;
    if (pending.answer) *answer = *pending.answer;
    --pending.callers;
    pending.left = Clock::now();
    if (asked && !final && request.wait() && !cancelled.load()) return Result::kWaits;
    if (final || !asked) pending_.erase(found);  // Clean takes the rest away
  }
  if (!asked) *sentence = problem;
  if (!asked) return Result::kRefused;
  if (!answer->refusal().empty()) *sentence = answer->refusal();
  if (final) return answer->host().empty() ? Result::kRefused : Result::kPlaced;
  const bool placed = Withdraw(number, answer);
  {
    base::MutexLock lock(mutex_);
    pending_.erase(number);
  }
  if (placed) return Result::kPlaced;
  *sentence =
      "the pool did not answer in time: its placer, or etcd's leader, is just being "
      "replaced; try again in ten seconds";
  return Result::kRefused;
}

void FrontPart::CleanLoop() {
  while (true) {
    Clean();
    const auto deadline = Clock::now() + kCleanPause;
    base::MutexLock lock(mutex_);
    while (!stop_ && changed_.WaitUntil(lock, deadline)) {
    }
    if (stop_) return;
  }
}

// Requests of programs that do not ask any more, and answers that nobody waits for.
void FrontPart::Clean() {
  std::vector<std::string> numbers;
  etcd::Mirror::Keys keys;
  {
    base::MutexLock lock(mutex_);
    for (const auto& [number, pending] : pending_) {
      const bool left = pending.callers == 0 && Clock::now() - pending.left > kAskAgain;
      if (left && numbers.size() < kCleanAtOnce) numbers.push_back(number);
    }
    for (const std::string& number : numbers) pending_.erase(number);
  }
  if (!numbers.empty()) {
    for (const std::string& number : numbers) {
      Answer ignored;
      (void)Withdraw(number, &ignored);
    }
  }
  if (!answers_->Get(&keys)) return;
  etcd::pb::TxnRequest txn;
  etcd::pb::TxnResponse reply;
  std::string sentence;
  {
    base::MutexLock lock(mutex_);
    for (const auto& [key, kv] : keys) {
      if (pending_.contains(LastPart(key)) || kv.lease() != lease_.id()) continue;
      if (txn.success_size() < static_cast<int>(kCleanAtOnce)) {
        *txn.add_success() = etcd::DeleteOp(key);
      }
    }
  }
  if (txn.success_size() != 0) (void)client_.Txn(txn, &reply, &sentence);
}

}  // namespace longwire::pool
