// Maps that wait for an unmapping, and those that take the driver long: the first of a chunk takes
// it a millisecond, in which the log thread goes on, with what needs none of the memory.
#include <algorithm>

#include "longwire/calls.h"
#include "server/worker/issue/deferred.h"
#include "server/worker/issue/issuer.h"
#include "server/worker/memory/memory.h"
#include "server/worker/support/helpers.h"

namespace longwire::worker {
Deferred::Place Deferred::PlaceOf(const QueuedCall& call) {
  calls::lwMap map;
  wire::Reader reader(call.arguments);
  if (call.call != CallId::lwMap || map.Decode(reader) != wire::WireResult::kOk) return {};
  return {call.position, map.address, {map.chunk.begin(), map.chunk.end()}};
}

bool Deferred::TakeMap(QueuedCall& call) {
  Place place = PlaceOf(call);
  bool blocked = !maps_.empty() || IsStillMapped(place);
  if (!blocked && !uses_.memory.AnyIsNew(place.chunks)) return false;
  maps_.emplace_back(uses_.waiting, std::move(call));
  uses_.issuer.SetBarrier(maps_.front()->position);
  if (!blocked) MapOnHelper();  // now, so that the log's next call finds it under way
  return true;
}

bool Deferred::MustWait(const wire::RecordHeader& header) const {
  if (!mapping_ || header.stream != 0) return false;  // streams wait at the barrier
  return !PassesMaps(static_cast<CallId>(header.call));
}

bool Deferred::PassMaps() {
  bool any = false;
  while (!maps_.empty()) {
    if (mapping_ && !mapped_) return any;
    if (!mapping_) {
      Place place = PlaceOf(*maps_.front());
      if (IsStillMapped(place)) return any;
      if (uses_.memory.AnyIsNew(place.chunks)) {
        MapOnHelper();
        return any;
      }
      uses_.executor.Execute(*maps_.front(), nullptr);
    }
    mapping_ = mapped_ = false;
    maps_.pop_front();
    uses_.issuer.SetBarrier(maps_.empty() ? UINT64_MAX : maps_.front()->position);
    any = true;
  }
  return any;
}

void Deferred::MapOnHelper() {
  mapping_ = true;
  uses_.helpers.Post(Helpers::kMappingThread, [this, map = *maps_.front()]() mutable {
    uses_.executor.Execute(map, nullptr);
    mapped_ = true;
    uses_.up.PokeConsumer();
  });
}

// By what an unmapping before the map in the log is still to undo. Later ones wait for the map.
bool Deferred::IsStillMapped(const Place& place) {
  uint64_t end = place.address + uses_.memory.BytesOf(place.chunks);
  base::MutexLock lock(mutex_);
  return std::ranges::any_of(unmaps_, [&](const Range& unmap) {
    return unmap.position < place.position && place.address < unmap.address + unmap.bytes &&
           unmap.address < end;
  });
}

}  // namespace longwire::worker
