#include "client-shim/tracing/recorder.h"

#include <chrono>
#include <utility>

#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

template <class Note>
void Add(std::vector<Note>& notes, Note note, uint64_t* lost) {
  if (notes.size() < Recorder::kNoteLimit) {
    notes.push_back(std::move(note));
  } else {
    ++*lost;
  }
}

}  // namespace

uint64_t TraceNow() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

Recorder& TheRecorder() {
  static NeverDestroyed<Recorder> recorder;
  return *recorder;
}

void Recorder::Call(const CallNote& note) {
  base::MutexLock lock(mutex_);
  Add(notes_.calls, note, &notes_.lost);
}

void Recorder::Sent(const SentNote& note) {
  base::MutexLock lock(mutex_);
  Add(notes_.sent, note, &notes_.lost);
}

void Recorder::Range(RangeNote note) {
  base::MutexLock lock(mutex_);
  Add(notes_.ranges, std::move(note), &notes_.lost);
}

void Recorder::Probe(const ProbeNote& note) {
  base::MutexLock lock(mutex_);
  Add(notes_.probes, note, &notes_.lost);
}

void Recorder::Memory(int device, int64_t bytes) {
  const uint64_t now = TraceNow();
  base::MutexLock lock(mutex_);
  if (device < 0 || static_cast<size_t>(device) >= memory_.size()) return;
  uint64_t& all = memory_[static_cast<size_t>(device)];
  all += static_cast<uint64_t>(bytes);
  Add(notes_.memory, {device, now, all}, &notes_.lost);
}

void Recorder::Take(Notes* notes) {
  notes->calls.clear();
  notes->sent.clear();
  notes->memory.clear();
  notes->ranges.clear();
  notes->probes.clear();
  notes->lost = 0;
  base::MutexLock lock(mutex_);
  std::swap(*notes, notes_);
}

}  // namespace longwire::shim
