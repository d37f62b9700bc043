// Measures what sessions use and writes a record of each one that ends, to the log and to a file.
// All that may take time (asking the warden, writing) is done by a thread of its own; the others
// only leave a note. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/daemon/usage/memory_meter.h"
#include "server/daemon/usage/usage_file.h"
#include "server/daemon/usage/usage_record.h"

namespace longwire::daemon {

// Microseconds since 1970.
uint64_t UtcNow();

class UsageLog {
 public:
  // How the keepers' figures are got.
  struct Source {
    // Of a device, after that number; empty if nobody answers.
    std::function<std::vector<keeper::MemoryEvent>(int32_t device, uint64_t after)> events;
    // What sessions have leased now, by device; nullopt if nobody answers.
    std::function<std::optional<std::map<int32_t, MemoryMeter::Leased>>()> leased;
  };

  UsageLog(std::string file, uint64_t limit, Source source);
  ~UsageLog() { Stop(); }
  // Until then only notes are taken.
  void Start();
  // Writes what is left, without waiting for late events.
  void Stop();

  // `opened`: by the system's clock. Before the session has memory: what it leases earlier is not
  // seen as an event of its own.
  void Opened(uint64_t session, std::vector<int32_t> devices, uint64_t opened);
  // One that goes on for another one: what it had before this time was only prepared, and its time
  // and memory count from then on.
  void GoesOn(uint64_t session, uint64_t time);
  // A session that could not be opened after all. Of one that has ended its record stays.
  void Forget(uint64_t session);
  // The warden went away: the next one counts its events anew.
  void WardenLost() { anew_.store(true); }
  // The record's memory is filled in here, unless the session was never opened here.
  void Ended(UsageRecord record);

  // The last sessions that ended, the newest last; what they have used is not filled in.
  std::vector<UsageRecord> Recent() const;

 private:
  struct Ending {
    UsageRecord record;
    std::chrono::steady_clock::time_point due;
  };
  struct Measured {
    std::vector<int32_t> devices;
    bool ended = false;
    uint64_t counts_from = 0;  // microseconds since 1970
  };
  void Loop();
  void Measure();
  void MeasureDevice(int32_t device, uint64_t* cursor);
  std::set<int32_t> Devices();
  // `measured`: all that has happened is known.
  void WriteDue(bool all, bool measured);
  void Write(UsageRecord record);

  UsageFile file_;
  const Source source_;
  std::map<int32_t, uint64_t> cursors_;  // the thread's own: the last event of each device
  uint64_t lost_ = 0;                    // likewise: records that the file did not take
  bool silent_ = false;                  // likewise: the warden did not answer the last time
  std::atomic<bool> anew_{false};
  std::thread thread_;

  mutable base::Mutex mutex_{base::ranks::kUsageLog};
  base::CondVar changed_;
  MemoryMeter meter_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<uint64_t, Measured> sessions_ LONGWIRE_GUARDED_BY(mutex_);
  std::deque<Ending> endings_ LONGWIRE_GUARDED_BY(mutex_);
  std::deque<UsageRecord> recent_ LONGWIRE_GUARDED_BY(mutex_);
  uint64_t dropped_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  bool ending_ LONGWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace longwire::daemon
