// The deferred call of a session (ClientSession::Defer): it is appended before any call that could
// observe the difference, unless another call replaces it.
#include <utility>

#include "client-shim/session/session.h"
#include "client-shim/support/threads.h"
#include "wire/guards.h"

namespace longwire::shim {

void ClientSession::AskForDeferred(Stream* stream) {
  if (stream == nullptr) return;
  AskForWaiters(stream);
  Release(stream);
}

ClientSession::DeferredCall ClientSession::TakeDeferred() {
  has_deferred_.store(false, std::memory_order_release);
  return std::exchange(deferred_, {});
}

Stream* ClientSession::PutDeferred() {
  static const bool guard_off = wire::GuardIsOff("between");
  if (!has_deferred_.load() || guard_off) return nullptr;
  DeferredCall deferred = TakeDeferred();
  Retain(deferred.where.stream);
  auto encode = [&](wire::Writer& writer) {
    writer.Raw(deferred.arguments.data(), deferred.arguments.size());
  };
  deferred.ended(Put({deferred.where, deferred.call, deferred.thread}, deferred.arguments.size(),
                     encode, nullptr));
  return deferred.where.stream;
}

bool ClientSession::DeferRecord(DeferredCall deferred, uint64_t work) {
  CallBeforeWork(deferred.where.stream);
  deferred.thread = ThisThread().number;
  base::MutexLock lock(log_mutex_);
  Stream* other = PutDeferred();
  bool defers = newest_work_.load() == work && ended() == CUDA_SUCCESS;
  if (defers) {
    deferred_ = std::move(deferred);
    has_deferred_.store(true, std::memory_order_release);
  }
  lock.Unlock();
  AskForDeferred(other);
  return defers;
}

uint64_t ClientSession::AppendInstead(uint64_t key, uint16_t call, size_t bound, Encode encode) {
  CallBeforeWork(nullptr);
  uint32_t thread = ThisThread().number;
  base::MutexLock lock(log_mutex_);
  if (!has_deferred_.load() || deferred_.key != key) return kNoPosition;
  uint64_t position = Put({{}, call, thread}, bound, encode, nullptr);
  if (position != kNoPosition) TakeDeferred().ended(kNoPosition);
  return position;
}

void ClientSession::AppendDeferred() {
  if (!has_deferred()) return;
  base::MutexLock lock(log_mutex_);
  Stream* stream = PutDeferred();
  lock.Unlock();
  AskForDeferred(stream);
}

}  // namespace longwire::shim
