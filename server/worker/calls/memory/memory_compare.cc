// Looks for whole states of much memory.
#include <algorithm>

#include "server/worker/calls/memory/memory_state.h"
#include "server/worker/states/compared_look.h"
#include "wire/limits.h"
#include "wire/live/mirror_state.h"

namespace longwire::worker {
namespace {

// Steps of the call: the buffer is to be prepared, is filled, comes back, comes back in full.
constexpr uint64_t kPrepares = 1, kFills = 2, kCompares = 3, kFetches = 4;

uint64_t BytesOf(const calls::lwMirrorLook& look) {
  uint64_t all = 0;
  for (uint64_t bytes : look.bytes) all += std::min(bytes, wire::kComparedBytes + 1);
  return all;
}

CUresult PartsOf(const calls::lwMirrorLook& look, const Mirrors& mirrors,
                 std::vector<ComparedLook::Part>* parts) {
  if (look.mirror.size() != look.bytes.size() || !look.offset.empty() ||
      look.mirror.size() > wire::kComparedMirrors || BytesOf(look) > wire::kComparedBytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < look.mirror.size(); ++i) {
    auto mirror = mirrors.Find(look.mirror[i]);
    if (mirror == nullptr) {  // its context has ended: nobody asks any more
      parts->clear();
      return CUDA_SUCCESS;
    }
    if (look.bytes[i] > mirror->bytes || look.bytes[i] == 0) return CUDA_ERROR_INVALID_VALUE;
    parts->push_back({mirror, look.bytes[i], mirror->pulls.done});
  }
  return CUDA_SUCCESS;
}

// The call goes on once the completion thread has run it, behind what the stream has.
template <class Act>
CUresult Behind(CallContext& context, uint64_t step, Act act) {
  WorkerSession& session = context.session();
  auto look = session.kept_states().Of(context.stream()->id).compared;
  look->answered = false;
  context.call().step = step;
  context.stream()->actions.push_back([&session, look, act](bool good) {
    act(*look, good);
    look->answered = true;
    session.WakeLogThread();
  });
  session.issuer().PlaceMarker(context.stream());
  return kNotYet;
}

void Send(WorkerSession& session, std::span<const std::byte> buffer, ComparedLook& look) {
  const bool is_state = look.Take(
      buffer, &look.again, [&](Mirror& mirror, uint64_t offset, std::span<const std::byte> is) {
        mirror.looked += SendChanges(session, mirror, offset, is, true) ? 1 : 0;
      });
  if (is_state) AnswerLook(session, *look.parts().front().mirror);
}

CUresult Fill(CallContext& context) {
  StateTurns& turns = context.session().state_turns();
  const int32_t device = context.stream()->context->device;
  return Behind(context, kFills, [&turns, device](ComparedLook& look, bool good) {
    look.work = good ? look.Fill(turns.Buffer(device)) : StateTurns::Comparison{};
  });
}

CUresult Prepare(CallContext& context, ComparedLook& look, bool* over) {
  WorkerSession& session = context.session();
  const int32_t device = context.stream()->context->device;
  const bool reachable = std::ranges::all_of(look.parts(), [&](const auto& part) {
    return IsReachable(session, device, part.mirror->address, part.mirror->bytes);
  });
  const auto answer = reachable ? session.state_turns().PrepareComparison(
                                      device, look.BufferBytes(), look.mirrors())
                                : StateTurns::Answer::kNever;
  *over = answer == StateTurns::Answer::kNever;
  if (answer != StateTurns::Answer::kReady) return kNotYet;
  look.claim = session.state_turns().Claim(device);
  return Fill(context);
}

CUresult Compare(CallContext& context, ComparedLook& look) {
  WorkerSession& session = context.session();
  StateTurns& turns = session.state_turns();
  const int32_t device = context.stream()->context->device;
  const bool issued = turns.Compare(*context.stream(), look.work) == CUDA_SUCCESS;
  return Behind(context, kCompares, [&, device, issued](ComparedLook& one, bool good) {
    one.again = false;
    one.found = good && issued ? ComparedLook::Found::kNothing : ComparedLook::Found::kBroken;
    if (one.found == ComparedLook::Found::kBroken || one.work.tiles == 0) return;
    one.found = one.Read(turns.Buffer(device));
    const bool all = one.entries_bytes() <= one.work.down;
    if (one.found != ComparedLook::Found::kBroken && all) Send(session, turns.Buffer(device), one);
  });
}

CUresult Fetch(CallContext& context, ComparedLook& look) {
  WorkerSession& session = context.session();
  StateTurns& turns = session.state_turns();
  const int32_t device = context.stream()->context->device;
  const uint64_t there = look.work.down;
  const bool issued = turns.Fetch(*context.stream(), look.entries_at() + there,
                                  look.entries_bytes() - there) == CUDA_SUCCESS;
  return Behind(context, kFetches, [&, device, issued](ComparedLook& one, bool good) {
    if (!good || !issued) one.found = ComparedLook::Found::kBroken;
    if (good && issued) Send(session, turns.Buffer(device), one);
  });
}

// kNotYet: it goes on. *over: there is nothing more to do.
CUresult GoOn(CallContext& context, ComparedLook& look, bool* over) {
  using Found = ComparedLook::Found;
  const uint64_t step = context.call().step;
  if (step == kPrepares) return Prepare(context, look, over);
  if (!look.answered) return kNotYet;
  if (step == kFills && look.work.up != 0) return Compare(context, look);
  if (step == kCompares && look.found != Found::kBroken && look.work.tiles == 0) {
    return Fill(context);  // that was but a part
  }
  if (step == kCompares && look.found == Found::kEntries && look.entries_bytes() > look.work.down) {
    return Fetch(context, look);
  }
  if (look.again && look.found != Found::kBroken) {
    look.claim.reset();
    context.call().step = kPrepares;
    return Prepare(context, look, over);
  }
  *over = true;
  return CUDA_SUCCESS;
}

}  // namespace

bool IsCompared(const calls::lwMirrorLook& look) {
  return look.mirror.size() > wire::kLookMirrors || BytesOf(look) > wire::kLookBytes;
}

CUresult LookByComparing(CallContext& context, const calls::lwMirrorLook& call) {
  WorkerSession& session = context.session();
  auto& kept = session.kept_states().Of(context.stream()->id);
  if (context.call().step == 0) {
    std::vector<ComparedLook::Part> parts;
    const CUresult result = PartsOf(call, session.mirrors(), &parts);
    if (result != CUDA_SUCCESS || parts.empty()) return result;
    kept.compared = std::make_shared<ComparedLook>(std::move(parts));
    context.call().step = kPrepares;
  }
  if (kept.compared == nullptr) return CUDA_SUCCESS;
  const auto look = kept.compared;
  bool over = false;
  const CUresult result = GoOn(context, *look, &over);
  if (!over) return result;
  if (look->found == ComparedLook::Found::kBroken) {
    session.state_turns().Break(context.stream()->context->device);
  }
  look->claim.reset();
  kept.compared.reset();
  context.stream()->push_next = true;
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
