#include "server/worker/issue/deferred.h"

#include <algorithm>

#include "longwire/calls.h"
#include "server/worker/completion/timeline.h"
#include "server/worker/graph/graphs.h"
#include "server/worker/issue/issuer.h"
#include "server/worker/support/helpers.h"

namespace longwire::worker {
namespace {

template <class Call>
bool Decode(const QueuedCall& record, Call* call) {
  wire::Reader reader(record.arguments);
  return call->Decode(reader) == wire::WireResult::kOk;
}

}  // namespace

bool Deferred::Take(QueuedCall& call) {
  switch (call.call) {
    case CallId::lwMap:
      return TakeMap(call);
    case CallId::lwRemap:
    case CallId::lwSetAccess:
      // Of what a map before it maps.
      if (maps_.empty()) return false;
      maps_.emplace_back(uses_.waiting, std::move(call));
      return true;
    case CallId::lwUnmap:
      return TakeUnmap(call);
    case CallId::lwStreamDestroy:
      return TakeStreamDestroy(call);
    case CallId::lwModuleLoad:
    case CallId::lwModuleFunctions:
      return TakeLoad(call);
    case CallId::lwGraphExecDestroy:
      uses_.graphs.ExecDestroyRead(call.position);
      break;
    case CallId::lwGraphSetKernel:
    case CallId::lwGraphSetChild:
      uses_.graphs.changes().Read(call);
      break;
    default:
      break;
  }
  CallHold until = CallHeldUntil(call.call);
  if (until == CallHold::kNothing) return false;
  Hold(call, until);
  return true;
}

bool Deferred::TakeUnmap(QueuedCall& call) {
  calls::lwUnmap unmap;
  if (!Decode(call, &unmap)) return false;
  {
    base::MutexLock lock(mutex_);
    unmaps_.push_back({call.position, unmap.address, unmap.bytes});
  }
  Hold(call, CallHeldUntil(call.call));
  return true;
}

bool Deferred::TakeStreamDestroy(QueuedCall& call) {
  calls::lwStreamDestroy destroy;
  if (!Decode(call, &destroy)) return false;
  Hold(call, CallHeldUntil(call.call), destroy.stream);
  return true;
}

void Deferred::Hold(QueuedCall& call, CallHold until, uint64_t stream) {
  held_.push_back({WaitingCall(uses_.waiting, std::move(call)), until, stream});
}

bool Deferred::Ready(const Held& held, uint64_t lowest_waiting) {
  uint64_t position = held.call->position;
  switch (held.until) {
    case CallHold::kNothing:
      break;
    case CallHold::kIssued:
      return lowest_waiting > position;
    case CallHold::kFinished:
      return lowest_waiting > position &&
             uses_.timelines.AllFinishedBelow(uses_.issuer.streams(), position);
    case CallHold::kStreamDrained: {
      auto stream = uses_.streams.Find(held.stream);
      return stream == nullptr ||
             (stream->queue.empty() && !stream->touched && uses_.timelines.Drained(*stream));
    }
  }
  return true;
}

bool Deferred::PartsAreHeld(size_t index) const {
  uint32_t context = held_[index].call->context;
  return std::any_of(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(index),
                     [&](const Held& held) { return held.call->context == context; });
}

bool Deferred::Pass() {
  if (!anything_waits()) return false;
  bool any = ForgetLoads();
  uint64_t lowest_waiting = uses_.issuer.LowestWaiting();
  if (!maps_.empty()) lowest_waiting = std::min(lowest_waiting, maps_.front()->position);
  // Memory is given back in the log's order: a chunk is returned after it was unmapped.
  bool memory_waits = false;
  for (size_t i = 0; i < held_.size();) {
    CallId id = held_[i].call->call;
    bool memory = ReturnsMemory(id);
    bool parts_first = id == CallId::lwContextDestroy && PartsAreHeld(i);
    if ((memory && memory_waits) || parts_first || !Ready(held_[i], lowest_waiting)) {
      memory_waits |= memory;
      ++i;
      continue;
    }
    WaitingCall call = std::move(held_[i].call);
    held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
    Release(std::move(call));
    any = true;
  }
  any |= PassMaps();
  return any;
}

void Deferred::Release(WaitingCall held) {
  QueuedCall& call = *held;
  if (call.call == CallId::lwStreamDestroy) {
    // The stream leaves the log thread's lists here; the driver's part can block.
    calls::lwStreamDestroy destroy;
    auto stream = Decode(call, &destroy) ? uses_.streams.Find(destroy.stream) : nullptr;
    if (stream != nullptr) uses_.issuer.Remove(stream);
  }
  if (call.call == CallId::lwContextDestroy) {
    calls::lwContextDestroy destroy;
    if (Decode(call, &destroy)) uses_.issuer.RemoveContext(destroy.context);
  }
  // Answers of destroys go to their thread in order; the rest shares one helper.
  CallThread runs_on = CallRunsOn(call.call);
  if (runs_on == CallThread::kLogThread) {
    uses_.executor.Execute(call, nullptr);
    return;
  }
  uint32_t helper = runs_on == CallThread::kClientThread ? call.thread : Helpers::kMemoryThread;
  uint64_t position = call.position;
  bool unmap = call.call == CallId::lwUnmap;
  bool load = std::ranges::count(loads_, position) != 0;
  uses_.helpers.Post(
      helper, [this, position, unmap, load, held = std::make_shared<WaitingCall>(std::move(held))] {
        uses_.executor.Execute(**held, nullptr);
        if (unmap) Done(position);
        if (load) LoadDone(position);
      });
}

void Deferred::Done(uint64_t position) {
  {
    base::MutexLock lock(mutex_);
    std::erase_if(unmaps_, [&](const Range& range) { return range.position == position; });
  }
  uses_.up.PokeConsumer();
}

}  // namespace longwire::worker
