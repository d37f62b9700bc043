// Mirrored memory: what the program changed goes to the device, what the device changed comes back.
#include <algorithm>
#include <cstring>

#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/calls/memory/memory_live.h"
#include "server/worker/calls/memory/memory_state.h"
#include "server/worker/memory/mirrors.h"
#include "wire/page_delta.h"

namespace longwire::worker {
namespace {

// Stages the runs, which then lie there, and copies them to the device; those that follow each
// other in one copy. `before` is not null: what the device had there comes to the same places of
// it.
CUresult CopyRuns(CallContext& context, const Mirror& mirror, std::byte* staged, std::byte* before,
                  std::vector<wire::DeltaRun>& runs) {
  std::byte* at = staged;
  for (size_t i = 0; i < runs.size();) {
    uint64_t offset = runs[i].offset, bytes = 0;
    std::byte* start = at;
    for (; i < runs.size() && runs[i].offset == offset + bytes; ++i) {
      std::span<const std::byte>& run = runs[i].bytes;
      std::memcpy(at, run.data(), run.size());
      run = {at, run.size()};
      at += run.size();
      bytes += run.size();
    }
    uint64_t address = mirror.address + offset;
    CUstream stream = context.driver_stream();
    CUresult result = CUDA_SUCCESS;
    if (before != nullptr) {
      std::byte* place = before + (start - staged);
      result = context.driver().cuMemcpyDtoHAsync_v2(place, address, bytes, stream);
    }
    if (result == CUDA_SUCCESS) {
      result = context.driver().cuMemcpyHtoDAsync_v2(address, start, bytes, stream);
    }
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// Of what was pushed: the first byte that the device had changed, to another value. `before`: what
// it had where the runs are staged.
bool FindConflict(const Mirror& mirror, const std::vector<wire::DeltaRun>& runs,
                  const std::byte* before, uint64_t* offset) {
  for (const wire::DeltaRun& run : runs) {
    const std::byte* shadow = mirror.shadow->data() + run.offset;
    for (size_t i = 0; i < run.bytes.size(); ++i, ++before) {
      if (*before == shadow[i] || *before == run.bytes[i]) continue;
      *offset = run.offset + i;
      return true;
    }
  }
  return false;
}

// The device's bytes as they are behind the stream's work. Whether the shadow still belongs to them
// shows when they are here.
CUresult PullBehindWork(CallContext& context, const calls::lwMirrorPull& call,
                        const std::shared_ptr<Mirror>& mirror) {
  if (call.bytes == 0 || call.bytes > Staging::kMaxBlockBytes) return CUDA_ERROR_INVALID_VALUE;
  if (context.capturing() || mirror->pulls.queued != mirror->pulls.done) return CUDA_SUCCESS;
  StagingBlock block;
  if (!context.session().staging().Acquire(*context.stream(), call.bytes, &block)) return kNotYet;
  uint64_t pushes = mirror->pushes.queued, own = ++mirror->pulls.queued;
  uint64_t looked = mirror->looked;
  CUresult result = context.driver().cuMemcpyDtoHAsync_v2(block.data, mirror->address, call.bytes,
                                                          context.driver_stream());
  bool copied = result == CUDA_SUCCESS;
  WorkerSession& session = context.session();
  auto* stream = context.stream().get();
  stream->actions.push_back([&session, stream, block, mirror, copied, pushes, own, looked,
                             bytes = call.bytes, ticket = call.ticket](bool good) {
    bool alone = mirror->pushes.queued == pushes && mirror->pushes.done == pushes &&
                 mirror->pulls.queued == own && mirror->looked == looked;
    if (good && copied && alone) {
      SendChanges(session, *mirror, 0, std::span(block.data, bytes));
      session.down().Mirror(ticket, {});
    }
    ++mirror->pulls.done;
    session.staging().Release(*stream, block);
  });
  stream->push_next = true;
  return result;
}

}  // namespace

void NoteDelta(const Mirror& mirror, std::span<const std::byte> delta) {
  if (mirror.changed_pages == nullptr) return;
  std::vector<wire::DeltaRun> runs;
  static_cast<void>(wire::ReadDelta(delta, mirror.bytes, &runs, wire::MaskedAs::kPages));  // ours
  for (const wire::DeltaRun& run : runs) {
    mirror.NoteChange(run.offset, std::max(run.bytes.size(), 8 * run.mask.size()));
  }
}

bool SendChanges(WorkerSession& session, const Mirror& mirror, uint64_t offset,
                 std::span<const std::byte> device, bool device_knows) {
  std::vector<std::byte> delta;
  bool any = false;
  while (!device.empty()) {
    size_t done =
        wire::AppendDelta(device, mirror.shadow->data() + offset, offset, wire::PageForm::kMasked,
                          wire::kDeltaBytes - wire::kMaxDeltaOfPage, &delta);
    if (!delta.empty()) session.down().Mirror(mirror.id, delta);
    if (!device_knows) NoteDelta(mirror, delta);
    any |= !delta.empty();
    delta.clear();
    offset += done;
    device = device.subspan(done);
  }
  return any;
}

CUresult PushRuns(CallContext& context, const std::shared_ptr<Mirror>& mirror,
                  const std::shared_ptr<std::vector<wire::DeltaRun>>& runs, size_t room,
                  bool checked) {
  WorkerSession& session = context.session();
  StagingBlock block;
  if (!context.session().staging().Acquire(*context.stream(), checked ? 2 * room : room, &block))
    return kNotYet;
  std::byte* before = checked ? block.data + room : nullptr;
  ++mirror->pushes.queued;
  CUresult result = CopyRuns(context, *mirror, block.data, before, *runs);
  bool copied = result == CUDA_SUCCESS;
  auto* stream = context.stream().get();
  // The shadow changes when the device's memory has: not before, for the device's bytes of an
  // earlier pull are still to be compared with it.
  stream->actions.push_back([&session, stream, block, mirror, runs, copied, before](bool good) {
    ++mirror->pushes.done;
    uint64_t offset = 0;
    if (good && copied && before != nullptr && FindConflict(*mirror, *runs, before, &offset)) {
      std::vector<std::byte> conflict;
      wire::AppendConflict(offset, &conflict);
      session.down().Mirror(mirror->id, conflict);
    }
    for (const wire::DeltaRun& run : *runs) {
      if (!good || !copied) break;
      std::memcpy(mirror->shadow->data() + run.offset, run.bytes.data(), run.bytes.size());
      mirror->NoteChange(run.offset, run.bytes.size());
    }
    session.staging().Release(*stream, block);
  });
  return result;
}

CUresult Do_lwMirrorAdd(CallContext& context, const calls::lwMirrorAdd& call,
                        calls::lwMirrorAdd::Reply*) {
  context.stream()->of_mirrors = true;
  return context.session().mirrors().Add(call.mirror, call.address, call.bytes);
}

CUresult Do_lwMirrorRemove(CallContext& context, const calls::lwMirrorRemove& call,
                           calls::lwMirrorRemove::Reply*) {
  Mirrors& mirrors = context.session().mirrors();
  if (auto mirror = mirrors.Find(call.mirror)) context.session().kept_states().Drop(*mirror);
  const CUresult result = mirrors.Remove(call.mirror);
  context.session().state_turns().SweepShadows();
  return result;
}

CUresult Do_lwMirrorPush(CallContext& context, const calls::lwMirrorPush& call,
                         calls::lwMirrorPush::Reply*) {
  const CUresult kept = StoreKept(context);
  if (kept != CUDA_SUCCESS) return kept;
  auto mirror = context.session().mirrors().Find(call.mirror);
  if (mirror == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto runs = std::make_shared<std::vector<wire::DeltaRun>>();
  if (call.delta.size() > wire::kDeltaBytes ||
      wire::ReadDelta(call.delta, mirror->bytes, runs.get()) != wire::WireResult::kOk) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (runs->empty()) return CUDA_SUCCESS;
  const wire::PageForm form = runs->front().form;
  if (form == wire::PageForm::kConflict) return CUDA_ERROR_INVALID_VALUE;
  if (form == wire::PageForm::kWord) return PushWords(context, mirror, runs);
  return PushRuns(context, mirror, runs, call.delta.size(), form == wire::PageForm::kChecked);
}

CUresult Do_lwMirrorPull(CallContext& context, const calls::lwMirrorPull& call,
                         calls::lwMirrorPull::Reply*) {
  WorkerSession& session = context.session();
  auto mirror = session.mirrors().Find(call.mirror);
  // One that ended while this waited behind a stream's work: nobody asks for its changes any more.
  if (mirror == nullptr) return CUDA_SUCCESS;
  if (call.bytes > mirror->bytes) return CUDA_ERROR_INVALID_VALUE;
  if (call.ticket != 0) return PullBehindWork(context, call, mirror);
  const CUresult kept = StoreKept(context);
  if (kept != CUDA_SUCCESS) return kept;
  QueuedCall& record = context.call();
  const auto& stream = context.stream();
  while (record.progress < call.bytes) {
    size_t part = std::min<uint64_t>(call.bytes - record.progress, Staging::kMaxBlockBytes);
    StagingBlock block;
    if (!context.session().staging().Acquire(*context.stream(), part, &block)) return kNotYet;
    ++mirror->pulls.queued;
    CUresult result = context.driver().cuMemcpyDtoHAsync_v2(
        block.data, mirror->address + record.progress, part, context.driver_stream());
    bool copied = result == CUDA_SUCCESS;
    stream->actions.push_back([&session, owner = stream.get(), block, mirror, copied, part,
                               offset = record.progress](bool good) {
      ++mirror->pulls.done;
      if (good && copied) SendChanges(session, *mirror, offset, std::span(block.data, part));
      session.staging().Release(*owner, block);
    });
    if (!copied) return result;
    record.progress += part;
    // Each part is compared while the next one is copied.
    if (record.progress < call.bytes) session.issuer().PlaceMarker(stream);
  }
  stream->push_next = true;
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
