#include "server/etcd/mirror.h"

#include <algorithm>
#include <cerrno>

#include "base/reason.h"
#include "base/start_thread.h"

namespace longwire::etcd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kFullRead{30};
constexpr std::chrono::milliseconds kRetryPause{100};

}  // namespace

bool Mirror::Start(std::string* sentence) {
  if (base::StartThread(&thread_, [this] { Loop(); })) return true;
  *sentence = base::ReasonOfNoThread(errno);
  return false;
}

void Mirror::Stop() {
  stop_.store(true);
  Wake();
  if (thread_.joinable()) thread_.join();
}

bool Mirror::Get(Keys* keys) {
  base::MutexLock lock(mutex_);
  *keys = keys_;
  return revision_ != 0;
}

bool Mirror::Look(const std::function<void(const Keys&)>& look) {
  base::MutexLock lock(mutex_);
  look(keys_);
  return revision_ != 0;
}

bool Mirror::Refresh(std::string* sentence) {
  pb::RangeRequest request;
  pb::RangeResponse reply;
  request.set_key(prefix_);
  request.set_range_end(EndOfPrefix(prefix_));
  if (!client_.Range(request, &reply, sentence)) return false;
  Keys keys;
  for (pb::KeyValue& one : *reply.mutable_kvs()) {
    std::string key = one.key();
    keys[std::move(key)] = std::move(one);
  }
  {
    base::MutexLock lock(mutex_);
    // A store that is behind what was seen before was restored from a copy: it is the truth now.
    keys_ = std::move(keys);
    revision_ = reply.header().revision();
  }
  Changed();
  return true;
}

void Mirror::Changed() {
  {
    base::MutexLock lock(mutex_);
    fresh_ = true;
  }
  change_.NotifyAll();
  if (changed_) changed_();
}

void Mirror::Take(const pb::WatchResponse& message) {
  {
    base::MutexLock lock(mutex_);
    // The message's own revision may be ahead of its events, of which more are to come.
    int64_t newest = revision_;
    for (const pb::Event& event : message.events()) {
      const pb::KeyValue& kv = event.kv();
      // What a reading of everything has overtaken.
      if (kv.mod_revision() <= revision_) continue;
      newest = std::max<int64_t>(newest, kv.mod_revision());
      auto known = keys_.find(kv.key());
      if (known != keys_.end() && known->second.mod_revision() > kv.mod_revision()) continue;
      if (event.type() == pb::Event::DELETE) {
        keys_.erase(kv.key());
      } else {
        keys_[kv.key()] = kv;
      }
    }
    revision_ = newest;
  }
  if (message.events_size() != 0) Changed();
}

void Mirror::Apply(const pb::TxnRequest& done, int64_t revision) {
  base::MutexLock lock(mutex_);
  for (const pb::RequestOp& op : done.success()) {
    if (op.has_request_delete_range()) keys_.erase(op.request_delete_range().key());
    if (!op.has_request_put()) continue;
    const pb::PutRequest& put = op.request_put();
    pb::KeyValue& kv = keys_[put.key()];
    if (kv.mod_revision() >= revision) continue;
    if (kv.create_revision() == 0) kv.set_create_revision(revision);
    kv.set_key(put.key());
    kv.set_value(put.value());
    kv.set_lease(put.lease());
    kv.set_mod_revision(revision);
  }
}

void Mirror::Loop() {
  while (!stop_.load()) {
    std::string sentence;
    if (Refresh(&sentence)) {
      int64_t from = 0;
      {
        base::MutexLock lock(mutex_);
        from = revision_ + 1;
      }
      const auto end = Clock::now() + kFullRead;
      auto goes_on = [&] { return !stop_.load() && Clock::now() < end; };
      auto take = [this](const pb::WatchResponse& message) { Take(message); };
      client_.Watch(prefix_, EndOfPrefix(prefix_), from, goes_on, take);
    } else {
      std::this_thread::sleep_for(kRetryPause);
    }
  }
}

void Mirror::Wait(Clock::time_point deadline) {
  base::MutexLock lock(mutex_);
  while (!fresh_ && change_.WaitUntil(lock, deadline)) {
  }
  fresh_ = false;
}

void Mirror::Wake() {
  {
    base::MutexLock lock(mutex_);
    fresh_ = true;
  }
  change_.NotifyAll();
}

}  // namespace longwire::etcd
