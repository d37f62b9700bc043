// What the program does, noted while it runs for the file of longwire trace -o: calls, records that
// went into the log, ranges of NVTX, memory. Off, nothing here is called; on, a note is one short
// lock. Notes wait in memory until the trace's thread writes them (trace_thread.h); what finds no
// room is counted.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "longwire/call_ids.h"
#include "wire/limits.h"

namespace longwire::shim {

// True while notes are taken.
inline std::atomic<bool> recording{false};
inline bool IsRecording() { return recording.load(std::memory_order_relaxed); }

// Times are nanoseconds of the steady clock; threads are numbered as on the wire.
struct CallNote {
  static constexpr uint64_t kNone = UINT64_MAX;
  CallId call{};
  CUresult result = CUDA_SUCCESS;
  uint32_t thread = 0;
  uint64_t began = 0;
  uint64_t ended = 0;
  uint64_t position = kNone;  // TracePosition of the work that it gave a device
};

// A position in the log of a session, which no other session of the program has; JSON's numbers
// hold it exactly.
inline uint64_t TracePosition(int server, uint64_t position) {
  constexpr int kPositionBits = 48;
  return static_cast<uint64_t>(server) << kPositionBits | position;
}

// A record of the log.
struct SentNote {
  CallId call{};
  uint32_t thread = 0;
  uint64_t at = 0;
  uint64_t position = 0;  // TracePosition
};

struct MemoryNote {
  int device = 0;
  uint64_t at = 0;
  uint64_t bytes = 0;  // that the program has from then on
};

// A range of NVTX on one thread.
struct RangeNote {
  uint32_t thread = 0;
  uint64_t began = 0;
  uint64_t ended = 0;
  std::string name;
};

// What a probe in a kernel saw begin and end; or, without a kernel, how many it saw besides.
struct ProbeNote {
  int device = 0;
  const char* map = nullptr;     // which of the probe's; lives as long as the program, as does
  const char* kernel = nullptr;  // its name in the module; null: `number` spans are lost
  uint64_t number = 0;           // of the warp, or the block
  uint64_t began = 0;
  uint64_t ended = 0;
  uint64_t error = 0;  // of both
};

struct Notes {
  std::vector<CallNote> calls;
  std::vector<SentNote> sent;
  std::vector<MemoryNote> memory;
  std::vector<RangeNote> ranges;
  std::vector<ProbeNote> probes;
  uint64_t lost = 0;  // since they were taken last
};

class Recorder {
 public:
  static constexpr size_t kNoteLimit = size_t{1} << 17;  // of each kind: some 12 MiB together

  void Call(const CallNote& note) LONGWIRE_EXCLUDES(mutex_);
  void Sent(const SentNote& note) LONGWIRE_EXCLUDES(mutex_);
  void Range(RangeNote note) LONGWIRE_EXCLUDES(mutex_);
  void Probe(const ProbeNote& note) LONGWIRE_EXCLUDES(mutex_);
  // Counted also before and after notes are taken, if the process will trace.
  void Memory(int device, int64_t bytes) LONGWIRE_EXCLUDES(mutex_);
  // Moves the notes out; `notes` gives its memory in exchange.
  void Take(Notes* notes) LONGWIRE_EXCLUDES(mutex_);

 private:
  base::Mutex mutex_{base::ranks::kRecorder};
  Notes notes_ LONGWIRE_GUARDED_BY(mutex_);
  std::array<uint64_t, wire::kMaxDevices> memory_ LONGWIRE_GUARDED_BY(mutex_){};
};

Recorder& TheRecorder();

// The steady clock, nanoseconds.
uint64_t TraceNow();

}  // namespace longwire::shim
