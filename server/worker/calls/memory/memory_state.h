// Mirrored memory: states of several words, which kernels see as a whole (states/state_turns.h),
// and what all exchanges of several words use.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "server/worker/calls/call_context.h"
#include "server/worker/memory/mirrors.h"
#include "wire/page_delta.h"

namespace longwire::worker {

// Sends where the device's bytes differ from the shadow, which is like them afterwards. False:
// nowhere. Whether the shadow's copy on the device is so already.
bool SendChanges(WorkerSession& session, const Mirror& mirror, uint64_t offset,
                 std::span<const std::byte> device, bool device_knows = false);

// The shadow has changed where the delta says.
void NoteDelta(const Mirror& mirror, std::span<const std::byte> delta);

// Copies masked or checked runs of at most `room` bytes to the device, in any order. kNotYet
// without staging memory.
CUresult PushRuns(CallContext& context, const std::shared_ptr<Mirror>& mirror,
                  const std::shared_ptr<std::vector<wire::DeltaRun>>& runs, size_t room,
                  bool checked);

// A border: what the stream has of states is stored now, in any order. A state that was not
// complete as well: the program's bytes must not be lost, and its client, which sends all parts in
// a row, is none that asks for more. kNotYet until all of it is on its way.
CUresult StoreKept(CallContext& context);

// A part of a mirror of which the device's bytes are wanted.
struct LookedAt {
  std::shared_ptr<Mirror> mirror;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t pulls = 0;  // of the mirror that were done before
  bool IsOfShadow() const { return mirror->pulls.done == pulls; }
};
// A whole look has given a state, or found that nothing has changed. Its end is an answer without
// changes of its first mirror.
void AnswerLook(WorkerSession& session, const Mirror& first);

// Where the copies that a call has made differ, the second context takes the bytes, and the changes
// are sent. Completion and log thread.
struct WholeLook {
  std::vector<LookedAt> parts;
  std::atomic<bool> decided{false};  // the copies have been compared
  bool differs = false;              // and nothing could be sent
};
// What follows once the copies are made: kNotYet until it is issued.
CUresult FinishLook(CallContext& context);

// A whole look at more than is copied: the device compares (states/compared_look.h).
bool IsCompared(const calls::lwMirrorLook& look);
CUresult LookByComparing(CallContext& context, const calls::lwMirrorLook& look);

// Whether the second context can reach it. Only memory that was leased: other memory may be the
// first context's alone.
bool IsReachable(WorkerSession& session, int32_t device, uint64_t address, uint64_t bytes);

}  // namespace longwire::worker
