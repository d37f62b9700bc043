// Streams: one queue and one lazily started thread each, so that nothing that one stream waits for
// ever holds up another.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <thread>

#include "softgpu/driver/graph/operation.h"
#include "softgpu/driver/state/driver.h"

namespace softgpu {

// What a stream that captures puts its work into, with the streams that have joined it.
struct Capture {
  std::shared_ptr<Graph> graph;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  Stream* origin = nullptr;
  std::thread::id thread;
  uint64_t id = 0;
  bool invalidated LONGWIRE_GUARDED_BY(Driver::mutex) = false;
  bool to_existing_graph = false;
  std::vector<std::shared_ptr<Stream>> members LONGWIRE_GUARDED_BY(Driver::mutex);  // origin first
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // The driver itself holds up a launch at about this many unfinished ones.
  static constexpr size_t kMaxPending = 1024;

  Stream(Context* owner, unsigned flags, int priority, bool legacy);

  Context& context() const { return *owner_->home; }
  Context& owner() const { return *owner_; }  // its green context, if it has one, else as above
  unsigned flags() const { return flags_; }
  int priority() const { return priority_; }
  uint64_t id() const { return id_; }
  bool blocking() const { return !legacy_ && (flags_ & CU_STREAM_NON_BLOCKING) == 0; }
  bool legacy() const { return legacy_; }

  struct Work {
    std::function<void()> run;
    std::vector<CompletionRef> waits;  // of other streams
    CompletionRef done;
  };
  void Push(Work work) LONGWIRE_REQUIRES(Driver::mutex);
  void WaitForRoom() LONGWIRE_EXCLUDES(Driver::mutex);
  void Close();  // the thread ends once the queue is empty

  // Gone from the handle table; it may still be working.
  bool closed LONGWIRE_GUARDED_BY(Driver::mutex) = false;
  // Of the work submitted last; may be null.
  CompletionRef last LONGWIRE_GUARDED_BY(Driver::mutex);
  // Null when not capturing; and what the next captured node depends on.
  std::shared_ptr<Capture> capture LONGWIRE_GUARDED_BY(Driver::mutex);
  std::vector<GraphNode*> capture_nodes LONGWIRE_GUARDED_BY(Driver::mutex);
  // Those that were set.
  std::map<CUstreamAttrID, CUstreamAttrValue> attributes LONGWIRE_GUARDED_BY(Driver::mutex);

 private:
  void Loop();

  Context* const owner_;
  const unsigned flags_;
  const int priority_;
  const bool legacy_;
  const uint64_t id_;

  base::Mutex mutex_{base::ranks::kSoftgpuStream};
  base::CondVar wake_, room_;
  std::deque<Work> queue_ LONGWIRE_GUARDED_BY(mutex_);
  bool started_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool closing_ LONGWIRE_GUARDED_BY(mutex_) = false;
};

// The stream behind a handle of `context`: 0 is the legacy one (the per-thread one inside a call's
// per-thread form), 1 legacy, 2 per-thread; null if the handle is unknown. While a green context of
// it is current the legacy one is that one's own, and there is no per-thread one.
std::shared_ptr<Stream> FindStream(Context& context, CUstream handle);
// Marks the calling thread as inside a per-thread form (_ptsz, _ptds) of a call.
class PerThreadForm {
 public:
  PerThreadForm();
  ~PerThreadForm();
};

// Puts `operation` into the stream or, while the stream is capturing, into its graph.
// `done`, if given, receives the work's completion (null when captured).
CUresult Submit(Stream& stream, Operation operation, CompletionRef* done = nullptr)
    LONGWIRE_EXCLUDES(Driver::mutex);
// The same for work that no graph can hold. `run` gets the latched fault (0 if none) and is called
// even after one.
CompletionRef Enqueue(Stream& stream, std::function<void(int fault)> run,
                      std::vector<CompletionRef> waits = {}) LONGWIRE_REQUIRES(Driver::mutex);

// Adds a node that depends on what the capturing `stream` stands at.
CUresult AddCaptured(Stream& stream, Operation operation) LONGWIRE_REQUIRES(Driver::mutex);
// 906 if `stream` is the legacy one while a blocking stream of its context captures.
CUresult CheckLegacyCapture(Stream& stream) LONGWIRE_REQUIRES(Driver::mutex);
// For what no capture can hold, as waits and questions: 900, and the capture is spoilt, if `stream`
// captures; else as CheckLegacyCapture.
CUresult RefuseWhileCapturing(Stream& stream) LONGWIRE_REQUIRES(Driver::mutex);

// A stream of the program's in `owner`: CUDA_ERROR_INVALID_VALUE for bad flags.
CUresult MakeStream(Context& owner, unsigned flags, int priority, CUstream* handle);

// Lists a new stream in its context, and takes closed ones out of the list that have finished.
// Closing ends the stream's thread once its work is done.
void AddToContext(const std::shared_ptr<Stream>& stream) LONGWIRE_REQUIRES(Driver::mutex);
void CloseStream(Stream& stream) LONGWIRE_REQUIRES(Driver::mutex);

// The context's streams and those of its green contexts.
std::vector<std::shared_ptr<Stream>> StreamsOf(Context& context) LONGWIRE_REQUIRES(Driver::mutex);

// Everything submitted to the stream (the context) so far.
std::vector<CompletionRef> PendingOf(Stream& stream) LONGWIRE_REQUIRES(Driver::mutex);
std::vector<CompletionRef> PendingOf(Context& context) LONGWIRE_REQUIRES(Driver::mutex);
// Waits, then answers the latched fault or the context's late error.
CUresult WaitFor(std::span<const CompletionRef> pending, Context& context)
    LONGWIRE_EXCLUDES(Driver::mutex);
CUresult SynchronizeContext(Context& context) LONGWIRE_EXCLUDES(Driver::mutex);

}  // namespace softgpu
