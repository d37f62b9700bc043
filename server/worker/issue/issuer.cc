#include "server/worker/issue/issuer.h"

#include <algorithm>

#include "server/worker/completion/gates.h"
#include "server/worker/completion/timeline.h"
#include "server/worker/states/kept_states.h"
#include "server/worker/support/current_context.h"
#include "server/worker/support/failures.h"
#include "server/worker/tracing/launch_samples.h"
#include "server/worker/tracing/spans.h"
#include "wire/guards.h"
#include "wire/limits.h"
#include "wire/record.h"

namespace longwire::worker {
namespace {

const bool kAsksDriver = !wire::GuardIsOff("captured");
constexpr uint32_t kMaxUnmarked = wire::kMaxUnfinishedPerStream / 4;

size_t Footprint(const QueuedCall& call) { return sizeof(call) + call.arguments.size(); }

// What the program wrote into mirrored memory, and looks, behind which more of that may come. Work
// before a barrier may wait for it, and the barrier for that work; and it goes only where a mirror
// is mapped already.
bool IsOfMirrors(const Stream& stream, CallId call) {
  return stream.of_mirrors && (call == CallId::lwMirrorPush || call == CallId::lwMirrorState ||
                               call == CallId::lwMirrorLook || call == CallId::lwEventRecord);
}

}  // namespace

void Issuer::Add(const std::shared_ptr<Stream>& stream) {
  streams_.push_back(stream);
  base::MutexLock lock(stream->context->legacy_mutex);
  if (stream->kind == StreamKind::kLegacy) stream->context->legacy = stream.get();
  if (stream->OrdersWithLegacy()) stream->context->blocking.push_back(stream.get());
}

void Issuer::Remove(const std::shared_ptr<Stream>& stream) {
  uses_.gates.Queued(stream->context->device, -static_cast<int64_t>(stream->queue.size()));
  for (; !stream->queue.empty(); Leave(*stream)) {
    AfterDropped(uses_.bookkeeping, stream->queue.front());
    if (uses_.spans.on()) uses_.spans.Dropped(stream->queue.front());
    if (uses_.samples.IsChosen(stream->queue.front().position)) uses_.samples.Dropped();
    uses_.executor.Refuse(stream->queue.front(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  uses_.states.Forget(stream->id);
  std::erase(streams_, stream);
  std::erase(waiting_, stream);
  std::erase(touched_, stream);
  base::MutexLock lock(stream->context->legacy_mutex);
  std::erase(stream->context->blocking, stream.get());
  if (stream->context->legacy == stream.get()) stream->context->legacy = nullptr;
}

void Issuer::RemoveContext(uint32_t context) {
  std::vector<std::shared_ptr<Stream>> streams;
  for (auto& stream : streams_) {
    if (stream->context->id == context) streams.push_back(stream);
  }
  for (auto& stream : streams) Remove(stream);
}

void Issuer::Enqueue(const std::shared_ptr<Stream>& stream, QueuedCall& call) {
  if (uses_.spans.on()) uses_.spans.Read(call);
  if (call.call == CallId::lwLaunch && uses_.samples.due()) uses_.samples.Choose(call.position);
  waiting_bytes_ += Footprint(call);
  stream->queue.Push(call);
  uses_.gates.Queued(stream->context->device, 1);
  if (!stream->listed) {
    stream->listed = true;
    waiting_.push_back(stream);
  }
}

uint64_t Issuer::LowestWaiting() const {
  uint64_t lowest = UINT64_MAX;
  for (auto& stream : waiting_) {
    if (!stream->queue.empty()) lowest = std::min(lowest, stream->queue.front().position);
  }
  return lowest;
}

bool Issuer::OthersWait(const Stream& stream) const {
  return std::ranges::any_of(
      waiting_, [&](const auto& other) { return other.get() != &stream && !other->queue.empty(); });
}

bool Issuer::IsIdle() const {
  // A stream that a capture went through looks captured until its next call.
  auto captures = [](const Stream& stream) {
    if (!stream.capturing) return false;
    base::MutexLock lock(stream.context->capture_mutex);
    return stream.context->captures != 0;
  };
  return waiting_.empty() && touched_.empty() &&
         std::ranges::none_of(streams_, [&](const auto& stream) {
           base::MutexLock lock(stream->issue_mutex);
           return captures(*stream) || stream->unmarked != 0 || !stream->actions.empty();
         });
}

bool Issuer::Pass() {
  bool any = false;
  for (bool again = true; again && !uses_.failures.over();) {
    again = false;
    for (auto& stream : waiting_) again |= Run(stream);
    any |= again;
    std::erase_if(waiting_, [](const auto& stream) {
      stream->listed = !stream->queue.empty();
      return !stream->listed;
    });
  }
  return any;
}

bool Issuer::MayStart(const Stream& stream, const QueuedCall& head) const {
  if (head.position > barrier_ && !IsOfMirrors(stream, head.call)) return false;
  if (head.position > work_barrier_ && IsGated(head.call) && !stream.of_mirrors) return false;
  if (stream.unfinished.load() >= wire::kMaxUnfinishedPerStream) return false;
  if (!uses_.gates.MayIssue(stream, head)) {
    if (uses_.spans.on()) uses_.spans.Held(head);
    return false;
  }
  if (head.call == CallId::lwCaptureEnd && !AllCaptured(head.position)) return false;
  return head.position < OthersTurn(stream);
}

// Captured calls, too: a call of the legacy stream would break the capture of a blocking one.
uint64_t Issuer::OthersTurn(const Stream& stream) const {
  const Context& context = *stream.context;
  uint64_t turn = UINT64_MAX;
  auto comes = [&](const Stream* other) {
    if (!other->queue.empty()) turn = std::min(turn, other->queue.front().position);
  };
  if (stream.kind == StreamKind::kLegacy) {
    std::ranges::for_each(context.blocking, comes);
  } else if (stream.OrdersWithLegacy() && context.legacy != nullptr) {
    comes(context.legacy);
  }
  return turn;
}

bool Issuer::AllCaptured(uint64_t position) const {
  for (auto& stream : waiting_) {
    for (size_t i = 0; i < stream->queue.size() && stream->queue[i].position < position; ++i) {
      if ((stream->queue[i].flags & wire::kCapturing) != 0) return false;
    }
  }
  return true;
}

bool Issuer::Run(const std::shared_ptr<Stream>& stream) {
  if (stream->queue.empty() || !MayStart(*stream, stream->queue.front())) return false;
  Locks locks(*this, *stream);
  bool progress = IssueAll(stream);
  MarkNowOrLater(stream);
  return progress;
}

Issuer::Locks::Locks(Issuer& issuer, Stream& stream) : issue_(stream.issue_mutex) {
  bool legacy = stream.kind == StreamKind::kLegacy;
  // A later marker of a blocking stream would wait for the legacy stream's work.
  if (legacy) issuer.MarkTouched(stream.context.get());
  issue_.Lock();
  if (!legacy && !stream.OrdersWithLegacy()) return;
  legacy_ = &stream.context->legacy_mutex;
  legacy_->Lock();
}

Issuer::Locks::~Locks() {
  if (legacy_ != nullptr) legacy_->Unlock();
  issue_.Unlock();
}

void Issuer::MarkNowOrLater(const std::shared_ptr<Stream>& stream) {
  if (stream->unmarked == 0 && stream->actions.empty()) return;
  // One marker for a burst of calls costs less; but not where somebody waits for it, and not where
  // it would come after other streams' work.
  bool legacy = stream->kind == StreamKind::kLegacy;
  bool now = legacy || stream->capturing || stream->context->failed != 0 || !stream->queue.empty();
  if (now) {
    PlaceMarker(stream);
  } else if (!stream->touched) {
    stream->touched = true;
    touched_.push_back(stream);
  }
}

void Issuer::MarkTouched(const Context* context) {
  std::erase_if(touched_, [&](const std::shared_ptr<Stream>& stream) {
    if (context != nullptr && stream->context.get() != context) return false;
    base::MutexLock lock(stream->issue_mutex);
    stream->touched = false;
    if (stream->unmarked != 0 || !stream->actions.empty()) {
      uses_.current_context.Set(*stream->context);
      PlaceMarker(stream);
    }
    return true;
  });
}

void Issuer::MarkAt(Stream& stream, uint64_t position) {
  if (position > stream.last_issued) {
    stream.to_mark.Add(position);
  } else {
    MarkTouched();
  }
}

bool Issuer::IssueAll(const std::shared_ptr<Stream>& stream) {
  bool progress = false;
  while (!stream->queue.empty() && MayStart(*stream, stream->queue.front())) {
    if (IssueLaunches(stream)) {
      progress = true;
      MarkIfDue(stream);
      continue;
    }
    QueuedCall& head = stream->queue.front();
    uint64_t before = head.progress + head.step;
    if (int failed = stream->context->failed) {
      Drop(stream, head, static_cast<CUresult>(failed));
    } else if (!Issue(stream, head)) {
      return progress || head.progress + head.step != before;
    }
    progress = true;
    Leave(*stream);
    MarkIfDue(stream);
  }
  return progress;
}

void Issuer::Leave(Stream& stream) {
  waiting_bytes_ -= Footprint(stream.queue.front());
  stream.queue.Pop();
}

void Issuer::MarkIfDue(const std::shared_ptr<Stream>& stream) {
  bool asked = stream->to_mark.Reach(stream->last_issued) && stream->unmarked != 0;
  if (asked || stream->push_next || stream->unmarked >= kMaxUnmarked) {
    PlaceMarker(stream);
  }
}

bool Issuer::BeginLaunches(const Stream& stream) {
  if (uses_.spans.on() || !uses_.gates.IsWideOpen(stream.context->device)) return false;
  uint32_t most = std::min(kMaxUnmarked - std::min(stream.unmarked, kMaxUnmarked),
                           wire::kMaxUnfinishedPerStream - stream.unfinished.load());
  const uint64_t barrier = std::min(barrier_, work_barrier_);
  return launches_.Begin(stream, std::min(barrier, OthersTurn(stream) - 1), most);
}

bool Issuer::IssueLaunches(const std::shared_ptr<Stream>& stream) {
  if (stream->queue.size() < 2 || !BeginLaunches(*stream)) return false;
  for (size_t i = 0; i < stream->queue.size(); ++i) {
    const QueuedCall& call = stream->queue[i];
    bool plain = call.call == CallId::lwLaunch && call.flags == 0 && call.step == 0;
    // What is measured is the first of its run.
    if (i != 0 && uses_.samples.IsChosen(call.position)) break;
    if (!plain || !launches_.Add(call.position, call.arguments)) break;
  }
  if (launches_.size() < 2) return false;
  uses_.current_context.Set(*stream->context);
  const bool samples = uses_.samples.IsChosen(stream->queue.front().position);
  if (samples) uses_.samples.Starts(*stream);
  CUresult result = CUDA_SUCCESS;
  size_t given = launches_.Give(&result);
  if (samples) FinishSample(*stream, given != 0);
  if (given == 0) return false;
  uses_.samples.Count(given);
  QueuedCall& last_given = stream->queue[given - 1];
  // The others went well.
  if (result != CUDA_SUCCESS) uses_.executor.Return(last_given, stream, result);
  CountUnmarked(*stream, stream->queue.front().position, last_given.position, given);
  stream->in_a_row += given;
  for (size_t i = 0; i < given; ++i) Leave(*stream);
  return true;
}

bool Issuer::IsFalselyCaptured(const Stream& stream, const QueuedCall& head) const {
  if ((head.flags & wire::kCapturing) == 0 || !IsGated(head.call) || !kAsksDriver) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  const DriverTable& driver = uses_.launches.driver;
  return driver.cuStreamIsCapturing(stream.handle, &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_NONE;
}

bool Issuer::Issue(const std::shared_ptr<Stream>& stream, QueuedCall& head) {
  uses_.current_context.Set(*stream->context);
  if (IsFalselyCaptured(*stream, head)) {
    Drop(stream, head, CUDA_ERROR_ILLEGAL_STATE);
    return true;
  }
  bool capturing = (head.flags & wire::kCapturing) != 0;
  if (capturing != stream->capturing) {
    // What was issued before the capture gets its marker before the stream stops taking any.
    bool unmarked = stream->unmarked != 0 || !stream->actions.empty();
    if (capturing && unmarked) PlaceMarker(stream);
    stream->capturing = capturing;
  }
  if (head.call == CallId::lwEventRecord && !capturing) {
    // The marker goes first: what waits for the event in another stream must not be seen to finish
    // before this record, and the record itself takes no time.
    CountIssued(*stream, head);
    stream->push_next = true;  // somebody may poll the event
    PlaceMarker(stream);
    uses_.executor.Execute(head, stream);
    if (uses_.spans.on()) uses_.spans.Issued(*stream, head);
    return true;
  }
  // Only these can wait for other work; the rest ends by itself.
  const bool waits = head.call == CallId::lwLaunch || head.call == CallId::lwGraphLaunch;
  const bool enters = waits && !capturing;
  if (enters && !uses_.gates.Enters(stream->context->device)) return false;
  if (!Give(stream, head)) {
    if (enters) uses_.gates.Leaves(stream->context->device);
    return false;
  }
  enters ? CountInStream(*stream, head) : CountIssued(*stream, head);
  return true;
}

// To the driver. False: not yet.
bool Issuer::Give(const std::shared_ptr<Stream>& stream, QueuedCall& head) {
  const bool measures = uses_.spans.on();
  const bool samples = uses_.samples.IsChosen(head.position);
  if (measures) uses_.spans.Starts(*stream, head);
  if (samples) uses_.samples.Starts(*stream);
  const bool issued = uses_.executor.Execute(head, stream) != kNotYet;
  if (samples) FinishSample(*stream, issued);
  if (issued && head.call == CallId::lwLaunch) uses_.samples.Count(1);
  if (issued && measures) uses_.spans.Issued(*stream, head);
  return issued;
}

void Issuer::FinishSample(Stream& stream, bool issued) {
  if (issued) {
    uses_.samples.Issued(stream);
  } else {
    uses_.samples.ComesAgain(stream);
  }
}

void Issuer::CountUnmarked(Stream& stream, uint64_t first, uint64_t last, size_t calls) {
  stream.last_issued = last;
  if (stream.unmarked == 0) stream.first_unmarked = first;
  stream.unmarked += static_cast<uint32_t>(calls);
  stream.unfinished += static_cast<uint32_t>(calls);
}

void Issuer::CountInStream(Stream& stream, const QueuedCall& head) {
  CountUnmarked(stream, head.position, head.position, 1);
  stream.in_a_row = head.call == CallId::lwLaunch ? stream.in_a_row + 1 : 0;
}

void Issuer::CountIssued(Stream& stream, const QueuedCall& head) {
  CountInStream(stream, head);
  uses_.gates.Issued(stream.context->device, 1);
}

void Issuer::Drop(const std::shared_ptr<Stream>& stream, QueuedCall& head, CUresult why) {
  AfterDropped(uses_.bookkeeping, head);
  uses_.executor.Refuse(head, why);
  if (stream->of_mirrors) uses_.states.DropLook(stream->id);
  if (uses_.spans.on()) uses_.spans.Dropped(head);
  if (uses_.samples.IsChosen(head.position)) uses_.samples.Dropped();
  CountIssued(*stream, head);
}

void Issuer::PlaceMarker(const std::shared_ptr<Stream>& stream) {
  uint64_t position = stream->first_unmarked;
  bool in_stream = !stream->capturing && stream->context->failed == 0;
  uses_.timelines.Mark(stream, in_stream, [&](CUresult result) {
    uses_.failures.DriverFailed(*stream->context, position, result, "the marker of a stream");
  });
}

}  // namespace longwire::worker
