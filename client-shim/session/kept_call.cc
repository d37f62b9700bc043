// The call that a session keeps back (Session::Keep): what must not come between, and how it gets
// into the log after all.
#include <utility>

#include "client-shim/session/session.h"
#include "client-shim/support/threads.h"
#include "wire/guards.h"

namespace longwire::shim {

void Session::AskForKept(Stream* stream) {
  if (stream == nullptr) return;
  AskForWaiters(stream);
  Release(stream);
}

Session::Kept Session::TakeKept() {
  keeps_.store(false, std::memory_order_release);
  return std::exchange(kept_, {});
}

Stream* Session::PutKept() {
  static const bool guard_off = wire::GuardIsOff("between");
  if (!keeps_.load() || guard_off) return nullptr;
  Kept kept = TakeKept();
  Retain(kept.where.stream);
  auto encode = [&](wire::Writer& writer) {
    writer.Raw(kept.arguments.data(), kept.arguments.size());
  };
  kept.ended(Put({kept.where, kept.call, kept.thread}, kept.arguments.size(), encode, nullptr));
  return kept.where.stream;
}

bool Session::KeepRecord(Kept kept, uint64_t work) {
  CallBeforeWork(kept.where.stream);
  kept.thread = ThisThread().number;
  base::MutexLock lock(log_mutex_);
  Stream* other = PutKept();
  bool keeps = newest_work_.load() == work && over() == CUDA_SUCCESS;
  if (keeps) {
    kept_ = std::move(kept);
    keeps_.store(true, std::memory_order_release);
  }
  lock.Unlock();
  AskForKept(other);
  return keeps;
}

uint64_t Session::AppendInstead(uint64_t key, uint16_t call, size_t bound, Encode encode) {
  CallBeforeWork(nullptr);
  uint32_t thread = ThisThread().number;
  base::MutexLock lock(log_mutex_);
  if (!keeps_.load() || kept_.key != key) return kNoPosition;
  uint64_t position = Put({{}, call, thread}, bound, encode, nullptr);
  if (position != kNoPosition) TakeKept().ended(kNoPosition);
  return position;
}

void Session::AppendKept() {
  if (!keeps()) return;
  base::MutexLock lock(log_mutex_);
  Stream* stream = PutKept();
  lock.Unlock();
  AskForKept(stream);
}

}  // namespace longwire::shim
