#include "server/worker/calls/memory/memory_state.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "wire/limits.h"
#include "wire/live/mirror_state.h"

namespace longwire::worker {
namespace {

using Kept = KeptStates::Kept;

// What is stored at once at a border, of one mirror: a part of a staging block.
constexpr size_t kBorderBytes = Staging::kMaxBlockBytes / 4;
// Steps of a call whose part was taken: the shadows are read; it is a border by now.
constexpr uint64_t kTaken = 1, kBorder = 2;

Kept& KeptOf(CallContext& context) {
  return context.session().kept_states().Of(context.stream()->id);
}

// Nothing of it becomes visible. One that was kept for the border is another one's.
void DropPart(CallContext& context) {
  Kept& kept = KeptOf(context);
  if (kept.state == nullptr || kept.late) return;
  bool late = false;
  context.session().kept_states().Take(kept, &late)->CountDone();
}

CUresult AddPart(CallContext& context, const calls::lwMirrorState& call) {
  WorkerSession& session = context.session();
  if (context.capturing()) return CUDA_ERROR_INVALID_VALUE;
  auto mirror = session.mirrors().Find(call.mirror);
  if (mirror == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::vector<wire::DeltaRun> runs;
  if (call.delta.size() > wire::kDeltaBytes ||
      wire::ReadDelta(call.delta, mirror->bytes, &runs) != wire::WireResult::kOk) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (const wire::DeltaRun& run : runs) {
    if (run.form != wire::PageForm::kMasked && run.form != wire::PageForm::kChecked) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  Kept& kept = KeptOf(context);
  if (kept.state == nullptr) {
    session.kept_states().Open(kept, std::make_shared<WholeState>(session.host_memory()));
  }
  if (kept.state->delta_bytes + call.delta.size() > wire::kStateBytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return kept.state->Add(mirror, runs, call.delta.size()) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

bool IsReachable(WorkerSession& session, int32_t device, WholeState& state) {
  return std::ranges::all_of(state.groups(), [&](const WholeState::Group& group) {
    return IsReachable(session, device, group.mirror->address, group.mirror->bytes);
  });
}

// The shadow may only be read behind the exchanges before this one.
void ReadShadowsBehind(CallContext& context, const std::shared_ptr<WholeState>& state) {
  state->Merge();
  state->delta_bytes = 0;
  state->has_shadows = false;
  context.stream()->actions.push_back([state](bool) { state->ReadShadows(); });
  context.session().issuer().PlaceMarker(context.stream());
}

void SendConflict(WorkerSession& session, WholeState& state, uint64_t address) {
  for (const WholeState::Group& group : state.groups()) {
    const Mirror& mirror = *group.mirror;
    if (address - mirror.address >= mirror.bytes) continue;
    std::vector<std::byte> conflict;
    wire::AppendConflict(address - mirror.address, &conflict);
    session.down().Mirror(mirror.id, conflict);
  }
}

// By the second context.
CUresult StoreInTurn(CallContext& context) {
  WorkerSession& session = context.session();
  auto* stream = context.stream().get();
  bool late = false;
  auto state = session.kept_states().Take(KeptOf(context), &late);
  const CUresult result = session.state_turns().Store(*stream, *state);
  const bool issued = result == CUDA_SUCCESS;
  stream->actions.push_back(
      [&session, stream, state, late, issued, position = context.call().position](bool good) {
        const int32_t device = stream->context->device;
        const auto stored =
            good && issued ? session.state_turns().Finished(device) : StateTurns::Result{};
        if (stored.conflict != UINT64_MAX) SendConflict(session, *state, stored.conflict);
        if (stored.done) state->UpdateShadows();
        if (good && issued && !stored.done) {
          session.failures().CallFailed(stream->context->id, position, CUDA_ERROR_UNKNOWN,
                                        "the device has not stored what the program wrote");
        }
        state->CountDone();
        session.kept_states().Arrived(late);
        session.state_turns().Free(device, stored.done);
      });
  stream->push_next = true;
  return result;
}

// The changed bytes of the group's next words, until there is enough for a staging block.
std::shared_ptr<std::vector<wire::DeltaRun>> NextRuns(const WholeState::Group& group,
                                                      size_t* words) {
  auto runs = std::make_shared<std::vector<wire::DeltaRun>>();
  size_t bytes = 0, at = group.stored;
  for (; at < group.words.size() && bytes < kBorderBytes; ++at) {
    const StoredWord& word = group.words[at];
    for (unsigned mask = word.mask(); mask != 0;) {
      const auto first = static_cast<size_t>(std::countr_zero(mask));
      const auto count = static_cast<size_t>(std::countr_one(mask >> first));
      runs->push_back({word.address() + first - group.mirror->address,
                       std::span(word.now).subspan(first, count)});
      mask &= ~(((1U << count) - 1) << first);
      bytes += count;
    }
  }
  *words = at - group.stored;
  return runs;
}

}  // namespace

void AnswerLook(WorkerSession& session, const Mirror& first) {
  session.down().Mirror(first.id, {});
}

bool IsReachable(WorkerSession& session, int32_t device, uint64_t address, uint64_t bytes) {
  const wire::Window& window = session.devices()[static_cast<size_t>(device)].window;
  Memory::Range nearest;
  return address - window.base < window.bytes && bytes <= window.bytes - (address - window.base) &&
         session.memory().MayAccess(address, bytes, &nearest);
}

CUresult StoreKept(CallContext& context) {
  WorkerSession& session = context.session();
  Kept& kept = KeptOf(context);
  if (kept.state == nullptr) return CUDA_SUCCESS;
  auto& groups = kept.state->groups();
  const bool begun = std::ranges::any_of(groups, [](const auto& one) { return one.stored != 0; });
  if (!begun) kept.state->Merge();
  for (WholeState::Group& group : groups) {
    while (group.stored < group.words.size()) {
      size_t words = 0;
      const auto runs = NextRuns(group, &words);
      LONGWIRE_TRY(PushRuns(context, group.mirror, runs, 2 * kBorderBytes, group.checked));
      group.stored += words;
    }
  }
  bool late = false;
  auto state = session.kept_states().Take(kept, &late);
  context.stream()->actions.push_back([&session, state, late](bool) {
    state->CountDone();
    session.kept_states().Arrived(late);
    session.WakeLogThread();
  });
  return CUDA_SUCCESS;
}

CUresult Do_lwMirrorState(CallContext& context, const calls::lwMirrorState& call,
                          calls::lwMirrorState::Reply*) {
  WorkerSession& session = context.session();
  QueuedCall& record = context.call();
  Kept& kept = KeptOf(context);
  if (record.step == 0) {
    const CUresult result = AddPart(context, call);
    if (result != CUDA_SUCCESS) DropPart(context);
    if (result != CUDA_SUCCESS || !call.last) return result;
    record.step = kTaken;
    kept.whole = true;
    ReadShadowsBehind(context, kept.state);
    return kNotYet;
  }
  if (record.step == kBorder) return StoreKept(context);
  if (kept.state == nullptr) return CUDA_SUCCESS;
  if (!kept.state->has_shadows) return kNotYet;
  const int32_t device = context.stream()->context->device;
  auto answer = StateTurns::Answer::kNever;
  if (kept.state->fits() && IsReachable(session, device, *kept.state)) {
    answer = session.state_turns().Prepare(device, StateTurns::BytesFor(*kept.state));
  }
  if (answer == StateTurns::Answer::kNotYet) return kNotYet;
  if (answer == StateTurns::Answer::kReady) return StoreInTurn(context);
  kept.whole = false;
  session.kept_states().KeepForBorder(kept);
  // Work that waits for it is a border.
  if (!session.issuer().OthersWait(*context.stream())) return CUDA_SUCCESS;
  record.step = kBorder;
  return StoreKept(context);
}

CUresult FinishLook(CallContext& context) {
  WorkerSession& session = context.session();
  auto* stream = context.stream().get();
  Kept& kept = KeptOf(context);
  const std::shared_ptr<WholeLook> look = kept.look;
  if (!look->decided) return kNotYet;
  stream->push_next = true;
  const int32_t device = stream->context->device;
  auto ranges = std::make_shared<std::vector<TakenRange>>();
  bool reachable = look->differs;
  for (const LookedAt& part : look->parts) {
    const uint64_t address = part.mirror->address + part.offset;
    ranges->push_back({address, part.bytes});
    reachable = reachable && IsReachable(session, device, part.mirror->address, part.mirror->bytes);
  }
  auto answer = StateTurns::Answer::kNever;
  if (reachable) answer = session.state_turns().Prepare(device, StateTurns::BytesFor(*ranges));
  if (answer == StateTurns::Answer::kNotYet) return kNotYet;
  kept.look.reset();
  if (answer == StateTurns::Answer::kNever) return CUDA_SUCCESS;
  const CUresult result = session.state_turns().Take(*stream, *ranges);
  const bool issued = result == CUDA_SUCCESS;
  stream->actions.push_back([&session, look, ranges, issued, device](bool good) {
    const bool taken = good && issued && session.state_turns().Finished(device).done;
    const bool counts = std::ranges::all_of(look->parts, &LookedAt::IsOfShadow);
    for (size_t i = 0; taken && counts && i < ranges->size(); ++i) {
      const LookedAt& part = look->parts[i];
      part.mirror->looked +=
          SendChanges(session, *part.mirror, part.offset, (*ranges)[i].taken) ? 1 : 0;
    }
    if (taken && counts) AnswerLook(session, *look->parts.front().mirror);
    session.state_turns().Free(device, taken);
  });
  return result;
}

}  // namespace longwire::worker
