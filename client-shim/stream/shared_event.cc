#include "client-shim/stream/shared_event.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/context/properties.h"
#include "client-shim/memory/device_memory.h"
#include "client-shim/memory/opened_memory.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kSlots = 7;

// As it lies in device memory. Record n is over when done[n % kSlots] is at least n. One slot for
// all would not do: of two records in different streams the older one may finish last.
struct Words {
  uint64_t recorded = 0;  // how many
  uint64_t done[kSlots] = {};

  bool IsOver(uint64_t record) const { return done[record % kSlots] >= record; }
};

uint64_t DoneAddress(const Event& event, uint64_t record) {
  return event.shared_words + offsetof(Words, done) + record % kSlots * sizeof(uint64_t);
}

struct ReadingStreams {
  base::Mutex mutex{base::ranks::kReadingStreams};
  std::map<uint32_t, CUstream> by_context LONGWIRE_GUARDED_BY(mutex);
};

// A stream of our own for each context: reading must wait for no work of the program.
CUresult ReadingStream(CUstream* stream) {
  static NeverDestroyed<ReadingStreams> reading;
  ReadingStreams& streams = *reading;
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  const uint32_t number = context->number.load();
  {
    base::MutexLock lock(streams.mutex);
    auto known = streams.by_context.find(number);
    if (known != streams.by_context.end()) {
      *stream = known->second;
      return CUDA_SUCCESS;
    }
  }
  CUstream made = nullptr;
  LONGWIRE_TRY(hand::cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
  bool first = false;
  {
    base::MutexLock lock(streams.mutex);
    auto [known, inserted] = streams.by_context.insert({number, made});
    *stream = known->second;
    first = inserted;
  }
  // Another thread has made one at the same time.
  return first ? CUDA_SUCCESS : hand::cuStreamDestroy_v2(made);
}

// Not as the program waits, which is forbidden beside captures.
CUresult Await(CUstream handle) {
  Stream* stream = nullptr;
  LONGWIRE_TRY(ResolveForWait(handle, &stream));
  return WaitForStream(stream, stream->last.load());
}

CUresult Read(const Event& event, Words* words) {
  CUstream stream = nullptr;
  LONGWIRE_TRY(ReadingStream(&stream));
  LONGWIRE_TRY(hand::cuMemcpyDtoHAsync_v2(words, event.shared_words, sizeof *words, stream));
  return Await(stream);
}

CUresult Write(const Event& event, const void* bytes, size_t count) {
  CUstream stream = nullptr;
  LONGWIRE_TRY(ReadingStream(&stream));
  LONGWIRE_TRY(hand::cuMemcpyHtoDAsync_v2(event.shared_words, bytes, count, stream));
  return Await(stream);
}

CUresult WaitUntilOver(const Event& event, uint64_t record) {
  using namespace std::chrono_literals;
  for (auto pause = 20us;; pause = std::min<std::chrono::microseconds>(2 * pause, 1ms)) {
    Words words;
    CUresult result = Read(event, &words);
    if (result != CUDA_SUCCESS || words.IsOver(record)) return result;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

CUresult MakeShared(Event* event) {
  CUresult result = MemoryOf(event->context->device)
                        ->Allocate(event->context, sizeof(Words), &event->shared_words);
  Words words;
  return result == CUDA_SUCCESS ? Write(*event, &words, sizeof words) : result;
}

CUresult OpenSharedEvent(Event* event, const SharedPiece& piece) {
  event->opened = true;
  return OpenShared(piece, event->context, &event->shared_words);
}

CUresult ShareEvent(Event* event, SharedPiece* piece) {
  // As natively: only whoever made an event gives it on.
  if (event->shared_words == 0 || event->opened) return CUDA_ERROR_INVALID_HANDLE;
  piece->kind = SharedPiece::kEvent;
  return ShareAllocation(event->shared_words, piece);
}

void DropShared(Event* event) {
  if (event->opened) {
    CloseShared(event->shared_words);
  } else if (event->shared_words != 0) {
    MemoryOf(DeviceOfAddress(event->shared_words))
        ->Free(event->shared_words, UnfinishedWorkOfAll(), mempool::Freed::kInStream);
  }
  event->shared_words = 0;
  event->opened = false;
}

CUresult RecordShared(Event* event, Stream* stream) {
  if (stream->capture.load() != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  base::MutexLock lock(event->mutex);
  Words words;
  LONGWIRE_TRY(Read(*event, &words));
  uint64_t record = words.recorded + 1;
  // The record that had the slot before must be over, or it would undo this one.
  if (record > kSlots) LONGWIRE_TRY(WaitUntilOver(*event, record - kSlots));
  LONGWIRE_TRY(Write(*event, &record, sizeof record));
  return hand::cuStreamWriteValue64_v2(stream->handle, DoneAddress(*event, record), record, 0);
}

CUresult WaitShared(Stream* stream, Event* event) {
  if (stream->capture.load() != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Words words;
  CUresult result = Read(*event, &words);
  if (result != CUDA_SUCCESS || words.IsOver(words.recorded)) return result;
  return hand::cuStreamWaitValue64_v2(stream->handle, DoneAddress(*event, words.recorded),
                                      words.recorded, CU_STREAM_WAIT_VALUE_GEQ);
}

CUresult QueryShared(Event* event) {
  Words words;
  LONGWIRE_TRY(Read(*event, &words));
  return words.IsOver(words.recorded) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult SynchronizeShared(Event* event) {
  Words words;
  CUresult result = Read(*event, &words);
  if (result != CUDA_SUCCESS || words.IsOver(words.recorded)) return result;
  return WaitUntilOver(*event, words.recorded);
}

}  // namespace longwire::shim
