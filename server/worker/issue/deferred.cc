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
      maps_.push_back(std::move(call));
      return true;
    case CallId::lwUnmap: {
      calls::lwUnmap unmap;
      if (!Decode(call, &unmap)) return false;
      {
        std::lock_guard lock(mutex_);
        unmaps_.push_back({call.position, unmap.address, unmap.bytes});
      }
      Hold(call, Until::kFinished);
      return true;
    }
    case CallId::lwStreamDestroy: {
      calls::lwStreamDestroy destroy;
      if (!Decode(call, &destroy)) return false;
      Hold(call, Until::kStreamDrained, destroy.stream);
      return true;
    }
    // Answered calls that would change or take away what queued calls still use.
    case CallId::cuArrayDestroy:
    case CallId::cuGraphExecMemsetNodeSetParams:
    case CallId::cuGraphNodeSetEnabled:
    case CallId::cuMipmappedArrayDestroy:
    case CallId::cuSurfObjectDestroy:
    case CallId::cuTexObjectDestroy:
    case CallId::lwReturnChunks:
    case CallId::lwReclaimed:
    case CallId::lwEventDestroy:
    case CallId::lwGraphDestroy:
    case CallId::lwGraphExecUpdate:
    case CallId::lwGraphSetBatch:
    case CallId::lwGraphSetChild:
    case CallId::lwGraphSetEvent:
    case CallId::lwGraphSetHost:
    case CallId::lwGraphSetKernel:
    case CallId::lwGraphSetMemcpy:
      Hold(call, Until::kIssued);
      return true;
    case CallId::lwGraphExecDestroy:
      uses_.graphs.ExecDestroyRead(call.position);
      Hold(call, Until::kFinished);
      return true;
    case CallId::lwModuleUnload:
    case CallId::lwContextDestroy:
      Hold(call, Until::kFinished);
      return true;
    default:
      // A generated call outside streams that returned at once: it frees something.
      if (CallKind(call.call) != CallKindValue::kAtOnce || !IsGenerated(call.call)) return false;
      Hold(call, Until::kFinished);
      return true;
  }
}

void Deferred::Hold(QueuedCall& call, Until until, uint64_t stream) {
  held_.push_back({std::move(call), until, stream});
}

bool Deferred::Ready(const Held& held, uint64_t lowest_waiting) {
  uint64_t position = held.call.position;
  switch (held.until) {
    case Until::kIssued:
      return lowest_waiting > position;
    case Until::kFinished:
      return lowest_waiting > position &&
             uses_.timelines.AllFinishedBelow(uses_.issuer.streams(), position);
    case Until::kStreamDrained: {
      auto stream = uses_.streams.Find(held.stream);
      return stream == nullptr ||
             (stream->queue.empty() && !stream->touched && uses_.timelines.Drained(*stream));
    }
  }
  return true;
}

bool Deferred::PartsAreHeld(size_t index) const {
  uint32_t context = held_[index].call.context;
  return std::any_of(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(index),
                     [&](const Held& held) { return held.call.context == context; });
}

bool Deferred::Pass() {
  if (!anything_waits()) return false;
  bool any = false;
  uint64_t lowest_waiting = uses_.issuer.LowestWaiting();
  if (!maps_.empty()) lowest_waiting = std::min(lowest_waiting, maps_.front().position);
  // Memory is given back in the log's order: a chunk is returned after it was unmapped.
  bool memory_waits = false;
  for (size_t i = 0; i < held_.size();) {
    CallId id = held_[i].call.call;
    bool memory =
        id == CallId::lwUnmap || id == CallId::lwReturnChunks || id == CallId::lwReclaimed;
    bool parts_first = id == CallId::lwContextDestroy && PartsAreHeld(i);
    if ((memory && memory_waits) || parts_first || !Ready(held_[i], lowest_waiting)) {
      memory_waits |= memory;
      ++i;
      continue;
    }
    QueuedCall call = std::move(held_[i].call);
    held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
    Release(std::move(call));
    any = true;
  }
  any |= PassMaps();
  return any;
}

void Deferred::Release(QueuedCall call) {
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
  // Takes no time: the driver's events only go back to their pool.
  if (call.call == CallId::lwEventDestroy) {
    uses_.executor.Execute(call, nullptr);
    return;
  }
  // Answers of destroys go to their thread in order; the rest shares one helper. So does a
  // context's end: the driver dies of a stream or module that is destroyed while its context is.
  bool answered =
      CallKind(call.call) == CallKindValue::kAfterReply && call.call != CallId::lwContextDestroy;
  uint32_t helper = answered ? call.thread : Helpers::kMemoryThread;
  uint64_t position = call.position;
  bool unmap = call.call == CallId::lwUnmap;
  uses_.helpers.Post(helper,
                     [this, position, unmap, call = std::make_shared<QueuedCall>(std::move(call))] {
                       uses_.executor.Execute(*call, nullptr);
                       if (unmap) Done(position);
                     });
}

void Deferred::Done(uint64_t position) {
  {
    std::lock_guard lock(mutex_);
    std::erase_if(unmaps_, [&](const Range& range) { return range.position == position; });
  }
  uses_.up.PokeConsumer();
}

}  // namespace longwire::worker
