#include "server/pool/reader.h"

#include <cerrno>

#include "base/reason.h"
#include "base/start_thread.h"
#include "server/pool/keys.h"

namespace longwire::pool {
namespace {

// A member of etcd has a second for its answer; when the first one hangs the next is asked.
constexpr std::chrono::milliseconds kPatience{2500};
// Of those who ask while it is known that etcd does not answer.
constexpr std::chrono::milliseconds kShortPatience{300};

}  // namespace

bool Reader::Start(std::string* sentence) {
  if (base::StartThread(&thread_, [this] { Loop(); })) return true;
  *sentence = base::ReasonOfNoThread(errno);
  return false;
}

void Reader::Stop() {
  {
    base::MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void Reader::Loop() {
  base::MutexLock lock(mutex_);
  while (!stop_) {
    if (asked_ == begun_) {
      changed_.Wait(lock);
      continue;
    }
    const uint64_t asked = begun_ = asked_;
    since_ = Clock::now();
    lock.Unlock();
    etcd::pb::RangeRequest request;
    etcd::pb::RangeResponse reply;
    std::string sentence;
    std::shared_ptr<const Directory> directory;
    request.set_key(std::string(kPrefix));
    request.set_range_end(etcd::EndOfPrefix(std::string(kPrefix)));
    if (client_.Range(request, &reply, &sentence)) {
      etcd::Mirror::Keys keys;
      for (etcd::pb::KeyValue& kv : *reply.mutable_kvs()) {
        std::string key = kv.key();
        keys[std::move(key)] = std::move(kv);
      }
      directory = std::make_shared<const Directory>(ReadDirectory(keys));
    }
    lock.Lock();
    answered_ = asked;
    failed_ = directory == nullptr;
    directory_ = std::move(directory);
    sentence_ = std::move(sentence);
    changed_.NotifyAll();
  }
}

std::shared_ptr<const Directory> Reader::Read(std::string* sentence) {
  base::MutexLock lock(mutex_);
  const auto now = Clock::now();
  const bool late = begun_ != answered_ && now - since_ > kPatience / 2;
  const uint64_t mine = ++asked_;
  changed_.NotifyAll();
  const auto deadline = now + (late || failed_ ? kShortPatience : kPatience);
  while (answered_ < mine && !stop_ && changed_.WaitUntil(lock, deadline)) {
  }
  *sentence = sentence_;
  if (answered_ >= mine) return directory_;
  *sentence = stop_     ? "longwired ends"
              : failed_ ? sentence_
                        : "etcd has not answered in time; ask again";
  return nullptr;
}

}  // namespace longwire::pool
