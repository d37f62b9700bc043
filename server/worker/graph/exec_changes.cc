#include "server/worker/graph/exec_changes.h"

#include "longwire/calls.h"
#include "server/worker/support/objects.h"
#include "wire/guards.h"
#include "wire/record.h"

namespace longwire::worker {
namespace {

struct Change {
  uint64_t exec = 0;  // 0: none of an executable
  uint64_t node = 0;
};

template <class Call>
Change Decoded(const QueuedCall& record) {
  Call call;
  wire::Reader reader(record.arguments);
  if (call.Decode(reader) != wire::WireResult::kOk) return {};
  return {call.exec, call.node};
}

Change ChangeOf(const QueuedCall& record) {
  switch (record.call) {
    case CallId::lwGraphSetKernel:
      return Decoded<calls::lwGraphSetKernel>(record);
    case CallId::lwGraphSetChild:
      return Decoded<calls::lwGraphSetChild>(record);
    default:
      return {};
  }
}

}  // namespace

void ExecChanges::Read(const QueuedCall& call) {
  const Change change = ChangeOf(call);
  if (change.exec == 0) return;
  base::MutexLock lock(mutex_);
  under_way_[change.exec].insert(call.position);
}

bool ExecChanges::Ended(const QueuedCall& call, CUresult result) {
  const Change change = ChangeOf(call);
  if (change.exec == 0) return false;
  const bool told = (call.flags & wire::kUnawaited) != 0;
  base::MutexLock lock(mutex_);
  auto refused = refused_.find(change.exec);
  if (result != CUDA_SUCCESS && told) {
    refused_[change.exec][change.node] = result;
  } else if (result == CUDA_SUCCESS && refused != refused_.end()) {
    refused->second.erase(change.node);
    if (refused->second.empty()) refused_.erase(refused);
  }
  auto found = under_way_.find(change.exec);
  if (found == under_way_.end()) return false;
  found->second.erase(call.position);
  if (found->second.empty()) under_way_.erase(found);
  return true;
}

CUresult ExecChanges::BeforeLaunch(uint64_t exec, uint64_t position) {
  static const bool guard_off = wire::GuardIsOff("set_answers");
  if (guard_off) return CUDA_SUCCESS;
  base::MutexLock lock(mutex_);
  auto under_way = under_way_.find(exec);
  if (under_way != under_way_.end() && *under_way->second.begin() < position) return kNotYet;
  auto refused = refused_.find(exec);
  return refused == refused_.end() ? CUDA_SUCCESS : refused->second.begin()->second;
}

void ExecChanges::Forget(uint64_t exec) {
  base::MutexLock lock(mutex_);
  refused_.erase(exec);
}

}  // namespace longwire::worker
