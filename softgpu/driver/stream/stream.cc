#include "softgpu/driver/stream/stream.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <thread>

#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/memory/address_space.h"
#include "softgpu/driver/stream/epoch.h"
#include "softgpu/driver/stream/run.h"

namespace softgpu {
namespace {

thread_local int per_thread_form_depth = 0;

// The per-thread default streams of one thread, closed when it ends.
struct ThreadStreams {
  std::unordered_map<Context*, std::shared_ptr<Stream>> streams;
  ~ThreadStreams() {
    for (auto& [context, stream] : streams) {
      base::MutexLock lock(Driver::mutex);
      CloseStream(*stream);
    }
  }
};
thread_local ThreadStreams thread_streams;

std::shared_ptr<Stream> PerThreadStream(Context& context) {
  auto& stream = thread_streams.streams[&context];
  base::MutexLock lock(Driver::mutex);
  if (!stream || stream->closed) {
    stream = std::make_shared<Stream>(&context, CU_STREAM_DEFAULT, 0, false);
    AddToContext(stream);
  }
  return stream;
}

// Blocking streams and the legacy stream wait for each other's earlier work, all for the gates.
void AddImplicitWaits(Stream& stream, std::vector<CompletionRef>* waits)
    LONGWIRE_REQUIRES(Driver::mutex) {
  auto add = [waits](const CompletionRef& last) {
    if (last && !last->done()) waits->push_back(last);
  };
  Context& context = stream.owner();
  for (auto& gate : context.gates) add(gate);
  if (context.home != &context) {
    for (auto& gate : context.home->gates) add(gate);
  }
  if (stream.legacy()) {
    for (auto& other : context.streams) {
      if (other->blocking()) add(other->last);
    }
  } else if (stream.blocking() && context.legacy_stream) {
    add(context.legacy_stream->last);
  }
}

}  // namespace

PerThreadForm::PerThreadForm() { ++per_thread_form_depth; }
PerThreadForm::~PerThreadForm() { --per_thread_form_depth; }

Stream::Stream(Context* owner, unsigned flags, int priority, bool legacy)
    : owner_(owner),
      flags_(flags),
      priority_(priority),
      legacy_(legacy),
      id_(Driver::Get().next_id++) {}

void Stream::Push(Work work) {
  last = work.done;
  base::MutexLock lock(mutex_);
  queue_.push_back(std::move(work));
  if (!started_) {
    started_ = true;
    sigset_t all, old;  // signals are the program's business, not this thread's
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    std::thread([self = shared_from_this()] { self->Loop(); }).detach();
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
  }
  wake_.NotifyOne();
}

void Stream::WaitForRoom() {
  base::MutexLock lock(mutex_);
  while (queue_.size() >= kMaxPending) room_.Wait(lock);
}

void Stream::Close() {
  base::MutexLock lock(mutex_);
  closing_ = true;
  wake_.NotifyOne();
}

void Stream::Loop() {
  pthread_setname_np(pthread_self(), "softgpu-stream");
  for (;;) {
    Work work;
    {
      base::MutexLock lock(mutex_);
      while (queue_.empty() && !closing_) wake_.Wait(lock);
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
      room_.NotifyOne();
    }
    for (auto& wait : work.waits) wait->Wait();
    work.run();
    work.run = nullptr;  // what it holds is gone before anybody sees it finished
    work.done->Finish();
  }
}

std::shared_ptr<Stream> FindStream(Context& context, CUstream handle) {
  Context* current = CurrentContext();
  bool green = current != nullptr && current != &context && current->home == &context;
  if (handle == CU_STREAM_PER_THREAD || (handle == nullptr && per_thread_form_depth > 0)) {
    return green ? nullptr : PerThreadStream(context);
  }
  if (handle == nullptr || handle == CU_STREAM_LEGACY) {
    base::MutexLock lock(Driver::mutex);
    return green ? current->legacy_stream : context.legacy_stream;
  }
  auto found = Driver::Get().streams.Find(handle);
  return found && found->owner().alive ? found : nullptr;
}

CompletionRef Enqueue(Stream& stream, std::function<void(int fault)> run,
                      std::vector<CompletionRef> waits) {
  AddImplicitWaits(stream, &waits);
  auto done = std::make_shared<Completion>();
  stream.Push({[run = std::move(run), epoch = CurrentEpoch()] {
                 auto& running = AddressSpace::Get().running_work;
                 ++running;
                 run(Driver::Get().fault.load());
                 --running;
               },
               std::move(waits), done});
  return done;
}

CUresult Submit(Stream& stream, Operation operation, CompletionRef* done) {
  stream.WaitForRoom();
  base::MutexLock lock(Driver::mutex);
  if (stream.capture) return AddCaptured(stream, std::move(operation));
  LONGWIRE_TRY(CheckLegacyCapture(stream));
  Context* context = &stream.context();
  auto completion = Enqueue(stream, [context, operation = std::move(operation)](int fault) {
    if (fault != 0 || context->cancelled) return;
    if (Status status = Run(operation, *context); !status.ok()) {
      Driver::Get().Fail(*context, status.code, status.message);
    }
  });
  if (done != nullptr) *done = std::move(completion);
  return CUDA_SUCCESS;
}

CUresult AddCaptured(Stream& stream, Operation operation) {
  Capture& capture = *stream.capture;
  if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  auto node = AddNode(*capture.graph, std::move(operation), stream.capture_nodes);
  stream.capture_nodes = {node.get()};
  return CUDA_SUCCESS;
}

CUresult CheckLegacyCapture(Stream& stream) {
  if (!stream.legacy()) return CUDA_SUCCESS;
  for (auto& other : stream.owner().streams) {
    if (other->capture && other->blocking()) {
      other->capture->invalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  return CUDA_SUCCESS;
}

CUresult RefuseWhileCapturing(Stream& stream) {
  if (!stream.capture) return CheckLegacyCapture(stream);
  stream.capture->invalidated = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

void AddToContext(const std::shared_ptr<Stream>& stream) {
  auto& streams = stream->owner().streams;
  std::erase_if(streams, [](auto& s) LONGWIRE_REQUIRES(Driver::mutex) {
    return s->closed && (!s->last || s->last->done());
  });
  streams.push_back(stream);
}

void CloseStream(Stream& stream) {
  stream.closed = true;
  stream.Close();
}

std::vector<CompletionRef> PendingOf(Stream& stream) {
  std::vector<CompletionRef> pending;
  if (stream.last) pending.push_back(stream.last);
  // The legacy stream stands for the blocking streams too.
  if (stream.legacy()) AddImplicitWaits(stream, &pending);
  return pending;
}

std::vector<std::shared_ptr<Stream>> StreamsOf(Context& context) {
  auto streams = context.streams;
  for (Context* part : context.parts) {
    streams.insert(streams.end(), part->streams.begin(), part->streams.end());
  }
  return streams;
}

std::vector<CompletionRef> PendingOf(Context& context) {
  std::vector<CompletionRef> pending;
  for (auto& stream : StreamsOf(context)) {
    if (stream->last && !stream->last->done()) pending.push_back(stream->last);
  }
  return pending;
}

CUresult WaitFor(std::span<const CompletionRef> pending, Context& context) {
  for (auto& completion : pending) completion->Wait();
  if (int fault = Driver::Get().fault.load()) return static_cast<CUresult>(fault);
  return static_cast<CUresult>(context.home->late_error.exchange(0));
}

CUresult SynchronizeContext(Context& context) {
  std::vector<CompletionRef> pending;
  {
    base::MutexLock lock(Driver::mutex);
    pending = PendingOf(context);
  }
  return WaitFor(pending, context);
}

}  // namespace softgpu
