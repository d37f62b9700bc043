#include "client-shim/stream/waits_across.h"

#include <memory>

#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/session/server_failure.h"
#include "client-shim/stream/callbacks.h"
#include "client-shim/stream/capture.h"
#include "longwire/calls.h"
#include "wire/guards.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

struct WaitOfOther {
  Stream* stream = nullptr;   // that waits; retained, as the other one
  Stream* awaited = nullptr;  // of another server
  uint64_t position = 0;

  bool HasCome() const { return awaited->finished.load(std::memory_order_acquire) >= position; }
};

bool IsDecided(const void* data) {
  static const bool guard_off = wire::GuardIsOff("waits_across");
  const auto* wait = static_cast<const WaitOfOther*>(data);
  // The error first: it comes before the progress of what has failed.
  const bool failed = wait->awaited->context->sticky.load(std::memory_order_acquire) != 0 ||
                      wait->awaited->session->ended() != CUDA_SUCCESS;
  return failed || wait->HasCome() || guard_off;
}

void CUDA_CB GoOn(void* data) {
  std::unique_ptr<WaitOfOther> wait(static_cast<WaitOfOther*>(data));
  static const bool guard_off = wire::GuardIsOff("waits_across");
  if (!wait->HasCome() && !guard_off) {
    FailWaiting(*wait->stream->session,
                "work here waits for work at " + wait->awaited->session->name() +
                    ", which has failed: all contexts of this server fail with it; start the "
                    "program again");
  }
  Release(wait->stream);
  Release(wait->awaited);
}

CUresult Submit(Stream* stream, const Where& where, uint64_t ticket, uint64_t* position) {
  calls::lwHostFunction call;
  call.ticket = ticket;
  *position = where.session->Submit(where, call);
  if (*position == ClientSession::kNoPosition) {
    DropHostFunction(ticket);
    return ClientSession::NotQueued();
  }
  where.session->EndsWith(stream, *position, {Ending::Kind::kHostFunction, ticket});
  return CUDA_SUCCESS;
}

}  // namespace

CUresult WaitAcross(Stream* stream, const Where& where, Stream* awaited, uint64_t position) {
  auto wait = std::make_unique<WaitOfOther>(WaitOfOther{stream, awaited, position});
  Retain(stream);
  Retain(awaited);
  // Without a request a worker tells the end of its stream's newest work only.
  WantProgress(awaited, position);
  const uint64_t ticket = NewHostWait(&IsDecided, &GoOn, wait.get(), where.context);
  uint64_t queued = 0;
  CUresult result = Submit(stream, where, ticket, &queued);
  if (result == CUDA_SUCCESS) {
    wait.release();
    return CUDA_SUCCESS;
  }
  Release(stream);
  Release(awaited);
  return result;
}

CUresult RunAcross(Stream* stream, CUhostFn function, void* data, bool at_once,
                   uint64_t* position) {
  static const bool never = wire::IsSwitchedOff("early-copies");
  LONGWIRE_TRY(RefuseWhileCapturing(stream));
  Where where;
  LONGWIRE_TRY(OpenWhere(stream, &where));
  const bool runs = at_once && !never && IsFinished(stream);
  const uint64_t ticket = NewFunctionAcross(function, data, where.context, runs);
  LONGWIRE_TRY(Submit(stream, where, ticket, position));
  if (runs) RunFunctionAcross(stream, ticket, *position);
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim
