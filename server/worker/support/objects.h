// The objects of a session. Fields are grouped by the thread or lock that owns them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/support/call_queue.h"
#include "server/worker/support/driver.h"
#include "server/worker/support/host_memory.h"
#include "server/worker/support/parameter_place.h"
#include "server/worker/support/position_set.h"

namespace longwire::worker {

struct Stream;
struct CountedKernel;
struct FunctionAdvice;
struct FunctionRules;

struct Context {
  uint32_t id = 0;
  int32_t device = 0;  // the client's number
  CUdevice driver_device = 0;
  CUcontext handle = nullptr;
  bool primary = false;
  std::vector<size_t> limits;     // initial limits of a warm primary context
  CUgreenCtx green = nullptr;     // of a green context
  std::shared_ptr<Context> home;  // a green context's primary context; else null
  std::atomic<int> failed{0};     // the sticky CUresult, reported to the client already; 0: none

  // Held by the completion thread while it queries the legacy stream, and by the log thread while
  // it begins a capture: a query during a capture would invalidate it.
  base::Mutex capture_mutex;
  int captures LONGWIRE_GUARDED_BY(capture_mutex) = 0;  // in progress

  // Held while calls are issued into the legacy stream or streams that are ordered with it, and by
  // the completion thread while it waits for the legacy stream, which may wait for all of these.
  base::Mutex legacy_mutex;
  // Changed by the log thread only, with legacy_mutex held.
  Stream* legacy = nullptr;
  std::vector<Stream*> blocking;  // streams that order with the legacy stream
};

// The context that owns the events recorded in `context`.
inline const std::shared_ptr<Context>& HomeOf(const std::shared_ptr<Context>& context) {
  return context->home != nullptr ? context->home : context;
}

// Runs on the completion thread when its marker was reached (`good`), or when the context failed
// before that.
using Action = std::function<void(bool good)>;

// A marker behind issued work in a stream: the device reports when it reaches it.
struct Marker {
  uint64_t ticket = 0;          // written to the stream's slot; 0: reached with the marker before
  uint64_t first_position = 0;  // of the first call since the marker before
  uint64_t position = 0;        // of the last call before this marker
  uint64_t acts_for = 0;        // the call of its actions: that one, or one begun behind it
  uint32_t calls = 0;
  bool push = false;        // progress is sent although more follows
  bool good = true;         // false: the driver refused it
  CUevent event = nullptr;  // used instead of the slot if the device cannot write values
  std::vector<Action> actions;
};

enum class StreamKind : uint32_t { kBlocking, kNonBlocking, kLegacy, kPerThread };

struct Stream {
  uint64_t id = 0;
  StreamKind kind = StreamKind::kBlocking;
  std::shared_ptr<Context> context;
  CUstream handle = nullptr;

  // Held while calls are issued into the stream, and by the completion thread while it makes sure
  // that a drained stream is (and stays) idle. Taken before Timelines' lock.
  base::Mutex issue_mutex;
  // Guarded by issue_mutex:
  bool capturing = false;
  uint64_t last_issued = 0;     // position
  uint64_t first_unmarked = 0;  // position
  uint32_t unmarked = 0;        // calls issued since the last marker
  bool push_next = false;       // the next marker's progress is sent
  bool of_mirrors = false;      // a stream that exchanges mirrored memory
  std::vector<Action> actions;  // for the next marker

  // Log thread only.
  CallQueue queue;
  bool listed = false;    // among the streams with waiting calls
  bool touched = false;   // issued calls have no marker yet
  PositionSet to_mark;    // calls behind which a marker is wanted
  uint64_t in_a_row = 0;  // launches issued since the last other call

  // Guarded by Timelines' lock.
  std::deque<Marker> markers;
  uint32_t slot = 0;
  uint64_t next_ticket = 1;
  uint64_t finished = 0;  // all calls up to this position are finished
  uint64_t settled = 0;   // the same, and their bytes and text were sent
  uint64_t seen = 0;      // the slot's value when it was read last
  PositionSet wanted;     // positions whose progress is to be sent
  bool watched = false;   // in the completion thread's list
  bool dead = false;      // destroyed: its slot is freed when the markers are done

  // Position of the copy at the queue's head, if all calls before it have finished: its bytes are
  // final.
  std::atomic<uint64_t> reached{0};
  std::atomic<uint32_t> unfinished{0};      // issued calls without a reached marker
  std::atomic<uint32_t> staging_blocks{0};  // blocks that it holds

  bool OrdersWithLegacy() const {
    return kind == StreamKind::kBlocking || kind == StreamKind::kPerThread;
  }
};

// One record of an event. Waits that were sorted before a newer record use the older one.
struct EventVersion {
  CUevent handle = nullptr;
  bool issued = false;
  bool failed = false;
  bool passed = false;    // it will have no record
  bool captured = false;  // recorded while its stream was captured: a part of a graph
  uint32_t waits = 0;     // sorted, not yet issued
  // Recorded in another worker, before the session moved here: how long before.
  std::optional<uint64_t> before_nanos;
};

// The driver event of an event that graphs record or wait for. All its records use this one.
struct FixedEvent {
  const DriverTable* driver = nullptr;
  CUevent handle = nullptr;
  uint64_t event = 0;
  const Context* context = nullptr;
  std::atomic<bool> dead{false};  // destroyed with its context
  ~FixedEvent() {
    if (!dead) driver->cuEventDestroy_v2(handle);
  }
};

// Guarded by Events' lock.
struct Event {
  uint64_t id = 0;
  uint32_t flags = 0;
  uint64_t newest = 0;  // sorted version
  uint64_t newest_issued = 0;
  std::map<uint64_t, EventVersion> versions;
  std::shared_ptr<Context> context;
  std::shared_ptr<FixedEvent> fixed;  // null: each record has a driver event of its own
};

struct Library {
  uint64_t id = 0;
  std::shared_ptr<Context> context;  // of a module; null for a library
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  uint64_t variable_bytes = 0;  // in each context
  std::vector<uint64_t> functions;
  HostMemory::Share share;  // its image, which the driver keeps, and its functions here
  base::Mutex mutex{base::ranks::kLibrary};
  std::vector<uint64_t> references LONGWIRE_GUARDED_BY(mutex);

  void AddReference(uint64_t id) {
    base::MutexLock lock(mutex);
    references.push_back(id);
  }
};

// A texture or surface reference of a module; one of the two is set.
struct Reference {
  CUtexref texture = nullptr;
  CUsurfref surface = nullptr;
  std::string binding;  // the driver's current binding; guarded by WorkerSession::binding
};

enum class LoadState { kUnloaded, kLoading, kLoaded };

struct LoadedFunction {
  LoadState state = LoadState::kUnloaded;
  CUfunction handle = nullptr;
  CUresult result = CUDA_SUCCESS;
};

struct Function {
  uint64_t id = 0;
  std::string name;
  std::shared_ptr<Context> context;  // of a module's function
  CUfunction function = nullptr;     // of a module
  CUkernel kernel = nullptr;         // of a library
  FunctionParameters parameters;     // where the driver does not tell them; else empty
  base::Mutex mutex{base::ranks::kWorkerFunction};
  // By context.
  std::unordered_map<uint32_t, LoadedFunction> loaded LONGWIRE_GUARDED_BY(mutex);
  // Log thread only:
  std::map<int32_t, int> most_shared;  // by the client's number of the device
  uint32_t launched_in = 0;            // the context of the last launch
  CUfunction launched = nullptr;       // the handle of the last launch
  std::string module;                  // the SHA-256 of its image in digits; empty: not known
  bool of_ptx = false;                 // its image is text, which the driver compiles
  // Each block that it was counted with (tracing/kernel_statistics.h).
  std::vector<CountedKernel*> counted;
  // What rules say about it (code/function_rules.h), by the rules of that version.
  std::shared_ptr<const FunctionRules> rules;
  uint32_t rules_version = 0;
  std::shared_ptr<FunctionAdvice> advice;  // a policy's (code/launch_answers.h)
};

}  // namespace longwire::worker
