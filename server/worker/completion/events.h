// Events and their versions. Each record of an event uses a driver event of its own, from a pool,
// so that a wait submitted before a newer record still waits for the older one.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/completion/carried_events.h"
#include "server/worker/support/handle_table.h"
#include "server/worker/support/objects.h"

namespace longwire::worker {

class Events {
 public:
  // The limit of events that graphs use.
  static constexpr size_t kMaxFixedEvents = size_t{1} << 16;

  explicit Events(const DriverTable& driver) : driver_(driver) {}

  // The session's limit: a version is a driver event, which takes some hundred bytes of pinned
  // memory.
  static constexpr size_t kMaxDriverEvents = size_t{1} << 18;

  CUresult Create(uint64_t event, uint32_t flags);
  // Called when all calls that use the event were issued.
  CUresult Destroy(uint64_t event);
  void DestroyAllOf(const Context& context);

  // Called in the log's order, when a record or wait of this version is sorted. The record of a
  // version may come later in the log than a wait for it.
  void RecordSorted(uint64_t event, uint64_t version);
  void WaitSorted(uint64_t event, uint64_t version);

  // Records into the stream; the context is current.
  CUresult Record(uint64_t event, uint64_t version, uint32_t flags, Stream& stream);
  // The version will have no record: waits for it do nothing.
  CUresult Pass(uint64_t event, uint64_t version);
  // The record was dropped with its context.
  void RecordDropped(uint64_t event, uint64_t version);
  // kNotYet until the version's record was issued.
  CUresult Wait(uint64_t event, uint64_t version, uint32_t flags, Stream& stream);
  void WaitDropped(uint64_t event, uint64_t version);
  CUresult Elapsed(uint64_t start, uint64_t start_version, uint64_t end, uint64_t end_version,
                   float* milliseconds);

  // For sessions that move (events_moving.cc). Nothing is under way; `enter` makes a context
  // current.
  using Enter = std::function<CUresult(const Context&)>;
  CUresult Carry(std::vector<CarriedEvent>* carried, CarriedMoment* moment, const Enter& enter);
  CUresult Restore(const std::vector<CarriedEvent>& carried, const CarriedMoment& moment,
                   const HandleTable<Context>& contexts, const Enter& enter);

  // For graphs: gives the event one driver event, which all its records use from now on. The state
  // of the newest record is kept. The context is current.
  CUresult Fix(uint64_t event, const std::shared_ptr<Context>& context,
               std::shared_ptr<FixedEvent>* fixed);
  // The event with this driver event, or null.
  std::shared_ptr<FixedEvent> FindFixed(CUevent handle);
  // A graph launch that records this version was issued.
  void RecordedInGraph(uint64_t event, uint64_t version);
  // False until the version's record was issued.
  bool IsIssued(uint64_t event, uint64_t version);

  // The driver event of the newest issued version, or null.
  CUevent Newest(uint64_t event);

 private:
  using PoolKey = std::pair<uint32_t, uint32_t>;  // context, flags
  CUresult TakeFromPool(Event& event, const Context& context, CUevent* handle)
      LONGWIRE_REQUIRES(mutex_);
  void GiveBack(Event& event, EventVersion& version) LONGWIRE_REQUIRES(mutex_);
  void DropOldVersions(Event& event) LONGWIRE_REQUIRES(mutex_);
  using Versions = std::map<uint64_t, EventVersion>;
  // A call that waits for the version was issued or dropped.
  void HasWaited(Event& event, Versions::iterator place) LONGWIRE_REQUIRES(mutex_);
  CUresult MarkMoments(const std::vector<std::shared_ptr<Context>>& contexts, const Enter& enter)
      LONGWIRE_REQUIRES(mutex_);
  CUresult SinceMove(const Event& event, const EventVersion& version, double* milliseconds)
      LONGWIRE_REQUIRES(mutex_);
  Event* Find(uint64_t event) LONGWIRE_REQUIRES(mutex_);

  const DriverTable& driver_;
  base::Mutex mutex_{base::ranks::kEvents};
  std::map<uint64_t, Event> events_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<PoolKey, std::vector<CUevent>> pool_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<CUevent, std::weak_ptr<FixedEvent>> fixed_ LONGWIRE_GUARDED_BY(mutex_);
  // Of the move: in each context, by number, an event of the driver's and when it was recorded; and
  // the moment after all of them.
  struct Moment {
    CUevent event = nullptr;
    uint64_t nanos = 0;
  };
  std::map<uint32_t, Moment> moments_ LONGWIRE_GUARDED_BY(mutex_);
  uint64_t moment_nanos_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t restored_nanos_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // when this worker took it over
  size_t driver_events_ LONGWIRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace longwire::worker
