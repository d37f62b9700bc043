#include "server/worker/completion/timeline.h"

#include <algorithm>
#include <cstring>

#include "base/try.h"
#include "server/worker/support/log_line.h"

namespace longwire::worker {

CUresult Timelines::Start() {
  void* memory = nullptr;
  LONGWIRE_TRY(driver_.cuMemHostAlloc(&memory, kSlots * sizeof(uint64_t),
                                      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  std::memset(memory, 0, kSlots * sizeof(uint64_t));
  slots_ = static_cast<uint64_t*>(memory);
  return driver_.cuMemHostGetDevicePointer_v2(&device_slots_, memory, 0);
}

bool Timelines::Attach(Stream& stream) {
  base::MutexLock lock(mutex_);
  if (!free_slots_.empty()) {
    stream.slot = free_slots_.back();
    free_slots_.pop_back();
  } else if (next_slot_ < kSlots) {
    stream.slot = next_slot_++;
  } else {
    return false;
  }
  __atomic_store_n(&slots_[stream.slot], 0, __ATOMIC_RELAXED);
  stream.seen = 0;
  return true;
}

void Timelines::Mark(const std::shared_ptr<Stream>& stream, bool in_stream,
                     const std::function<void(CUresult)>& refused) {
  Marker marker;
  marker.position = stream->last_issued;
  marker.acts_for = marker.position;
  // A marker behind no call keeps nobody waiting.
  marker.first_position = stream->unmarked != 0 ? stream->first_unmarked : UINT64_MAX;
  // Where a call has begun and waits for the marker, other streams' calls may stand between. Parts
  // of that call may stand before the marker.
  if (!stream->queue.empty() && stream->queue.front().begun()) {
    marker.acts_for = stream->queue.front().position;
    marker.first_position = std::min(marker.first_position, marker.acts_for);
  }
  marker.calls = stream->unmarked;
  marker.push = stream->push_next;
  marker.actions = std::move(stream->actions);
  stream->actions.clear();
  stream->unmarked = 0;
  stream->push_next = false;
  bool use_event = false;
  {
    base::MutexLock lock(mutex_);
    if (in_stream) marker.ticket = stream->next_ticket++;
    use_event = write_value_missing_;
  }
  // The driver first, the list after it: a reached marker that is not listed yet is seen a moment
  // later, a listed one that was never written would be waited for.
  CUresult result = CUDA_SUCCESS;
  if (in_stream && !use_event) {
    result = driver_.cuStreamWriteValue64_v2(stream->handle, device_slots_ + stream->slot * 8ull,
                                             marker.ticket, CU_STREAM_WRITE_VALUE_DEFAULT);
    use_event = result == CUDA_ERROR_NOT_SUPPORTED;
  }
  if (in_stream && use_event) {
    result = driver_.cuEventCreate(&marker.event, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS) result = driver_.cuEventRecord(marker.event, stream->handle);
  }
  // The device did not take the marker: what it covered has failed or will be seen as failed.
  if (result != CUDA_SUCCESS) {
    marker.ticket = 0;
    marker.good = false;
    refused(result);
  }
  base::MutexLock lock(mutex_);
  write_value_missing_ |= use_event;
  stream->markers.push_back(std::move(marker));
  if (!stream->watched) {
    stream->watched = true;
    watched_.push_back(stream);
    changed_.NotifyAll();
  }
}

uint64_t Timelines::Want(Stream& stream, uint64_t position) {
  base::MutexLock lock(mutex_);
  if (stream.settled >= position) return stream.settled;
  stream.wanted.Add(position);
  return 0;
}

bool Timelines::AllFinishedBelow(const std::vector<std::shared_ptr<Stream>>& streams,
                                 uint64_t position) {
  base::MutexLock lock(mutex_);
  return std::all_of(streams.begin(), streams.end(), [&](const auto& stream) {
    if (stream->unmarked != 0 && stream->first_unmarked < position) return false;
    return stream->markers.empty() || stream->markers.front().first_position >= position;
  });
}

bool Timelines::ReadSettled(Stream& stream, uint64_t* settled) {
  base::MutexLock lock(mutex_);
  *settled = stream.settled;
  return stream.markers.empty() && !stream.watched && stream.unfinished == 0 &&
         stream.settled == stream.finished && !stream.wanted.AnyUpTo(UINT64_MAX);
}

void Timelines::RestoreSettled(Stream& stream, uint64_t settled) {
  base::MutexLock lock(mutex_);
  stream.finished = stream.settled = settled;
}

bool Timelines::Drained(Stream& stream) {
  base::MutexLock lock(mutex_);
  return stream.markers.empty();
}

void Timelines::Detach(Stream& stream) {
  base::MutexLock lock(mutex_);
  stream.dead = true;
  if (!stream.watched) FreeSlot(stream);  // else Collect does
}

void Timelines::FreeSlot(const Stream& stream) {
  // A failed context's markers may still be written: its slots are not used again.
  if (stream.context->failed == 0) free_slots_.push_back(stream.slot);
}

bool Timelines::anything_watched() {
  base::MutexLock lock(mutex_);
  return !watched_.empty();
}

bool Timelines::WaitForWork() {
  base::MutexLock lock(mutex_);
  while (!stop_ && watched_.empty() && !expects_) changed_.Wait(lock);
  expects_ = false;
  return !stop_;
}

void Timelines::ExpectWork() {
  {
    base::MutexLock lock(mutex_);
    expects_ = true;
  }
  changed_.NotifyAll();
}

void Timelines::Stop() {
  base::MutexLock lock(mutex_);
  stop_ = true;
  changed_.NotifyAll();
}

bool Timelines::IsReached(Stream& stream, const Marker& marker) {
  if (marker.ticket == 0 || stream.context->failed.load(std::memory_order_relaxed) != 0) {
    return true;
  }
  if (marker.event != nullptr) return driver_.cuEventQuery(marker.event) != CUDA_ERROR_NOT_READY;
  return stream.seen >= marker.ticket;
}

void Timelines::Collect(std::vector<Reached>* reached) {
  reached->clear();
  base::MutexLock lock(mutex_);
  ReadSlots();
  for (auto& stream : watched_) {
    Reached found;
    while (!stream->markers.empty() && IsReached(*stream, stream->markers.front())) {
      Marker& marker = stream->markers.front();
      stream->finished = std::max(stream->finished, marker.position);
      stream->unfinished -= marker.calls;
      found.push |= marker.push || stream->wanted.AnyUpTo(marker.position);
      found.markers.push_back(std::move(marker));
      stream->markers.pop_front();
    }
    if (found.markers.empty()) continue;
    found.position = stream->finished;
    found.drained = stream->markers.empty();
    found.stream = stream;
    reached->push_back(std::move(found));
  }
  for (auto& stream : watched_) {
    if (!stream->markers.empty()) continue;
    stream->watched = false;
    if (stream->dead) FreeSlot(*stream);
  }
  std::erase_if(watched_, [](const auto& stream) { return !stream->watched; });
}

std::vector<std::shared_ptr<Stream>> Timelines::Watched() {
  base::MutexLock lock(mutex_);
  return watched_;
}

uint64_t Timelines::FirstUnfinished(Stream& stream) {
  base::MutexLock lock(mutex_);
  return stream.markers.empty() ? stream.finished : stream.markers.front().first_position;
}

bool Timelines::Settled(Stream& stream, uint64_t position, bool push) {
  base::MutexLock lock(mutex_);
  stream.settled = std::max(stream.settled, position);
  // Somebody may have begun to want it after it was collected.
  return stream.wanted.Reach(position) || push;
}

// A stream's marker may have waited, by an event, for another stream's marker, which was then
// written first. A pass that reads the later marker must also read the earlier one: passes are
// repeated until two in a row are equal.
void Timelines::ReadSlots() {
  constexpr int kMaxPolls = 8;  // bounded, also when the device is quicker than we are
  bool changed = true;
  for (int poll = 0; changed && poll < kMaxPolls; ++poll) {
    changed = false;
    for (auto& stream : watched_) {
      uint64_t value = __atomic_load_n(&slots_[stream->slot], __ATOMIC_ACQUIRE);
      if (value == stream->seen) continue;
      stream->seen = value;
      changed = true;
    }
  }
}

}  // namespace longwire::worker
