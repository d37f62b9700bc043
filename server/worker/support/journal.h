// The calls of a session that made or changed objects which live on, with their answers. Another
// worker runs them again when the session moves, and compares the answers: they hold every value
// that the driver chose and the program saw. A call that is not known as movable makes the session
// unmovable, with its name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/support/journal_entry.h"

namespace longwire::worker {

class Journal {
 public:
  // Of all calls and answers, module images included. A session with more is unmovable. Training
  // with PyTorch loads 66 MB.
  static constexpr size_t kMaxBytes = size_t{256} << 20;
  // Of calls and answers without images. Whenever they have grown to this, or to twice of what was
  // left the last time, those are dropped that leave nothing any more (superseded.h).
  static constexpr size_t kCrowdedBytes = size_t{4} << 20;
  using Entry = JournalEntry;
  using Names = JournalEntry::Names;

  // While the driver loads or unloads a module. Several threads do, and what lies where hangs on
  // who is first, which need not be the log's order: it is written down.
  class Placing {
   public:
    Placing(Journal& journal, uint64_t position) : lock_(journal.places_) {
      journal.NotePlacing(position);
    }

   private:
    base::MutexLock lock_;
  };

  // Whether the call is to be run again: it made or changed an object that lives on, or was
  // captured and is a part of a graph.
  static bool Keeps(const QueuedCall& call);

  // A session that cannot move, whatever it does: nothing is kept.
  void Never(const std::string& why);
  // A call was read from the log. The log thread, or the thread that rebuilds.
  void Read(const QueuedCall& call);
  // Its answer. Any thread.
  void Answered(const QueuedCall& call, int32_t result, std::span<const std::byte> reply);
  // The image that a load has fetched.
  void TookImage(uint64_t position, const std::vector<std::byte>& image, uint32_t knowledge);
  // In a worker that rebuilds: the image that the old one had. False if there is none.
  bool GiveImage(uint64_t position, std::vector<std::byte>* image, uint32_t* knowledge);

  // What was found in that image, which takes its time for large ones.
  void KeepVariables(uint64_t position, Names names);

  // Why the session cannot move; empty if it can.
  std::string Unmovable();
  // All entries from this position on, in the order in which they run again; each is answered,
  // unless it is still running.
  std::vector<Entry> Entries(uint64_t from = 0);
  // Those of some calls alone, in the log's order: to copy all of them takes its time.
  std::vector<Entry> EntriesOf(bool (*wanted)(CallId));
  // Bytes of calls and answers, images left out.
  size_t bytes_of_calls();

  // What the old worker had: the calls answered from now on are held against it.
  void Expect(const Entry& entry);
  // The first difference, for people; empty if there is none.
  std::string Difference();

 private:
  void Refuse(const std::string& why) LONGWIRE_REQUIRES(mutex_);
  bool Grow(size_t bytes) LONGWIRE_REQUIRES(mutex_);
  bool GrowByCall(size_t bytes) LONGWIRE_REQUIRES(mutex_);
  void DropSuperseded() LONGWIRE_REQUIRES(mutex_);
  void NotePlacing(uint64_t position);

  base::Mutex places_{base::ranks::kModulePlaces};
  base::Mutex mutex_{base::ranks::kJournal};
  std::map<uint64_t, Entry> entries_ LONGWIRE_GUARDED_BY(mutex_);  // by position
  size_t bytes_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  size_t call_bytes_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // of these, without images
  size_t crowded_ LONGWIRE_GUARDED_BY(mutex_) = kCrowdedBytes;
  // What a move has taken stays: the new worker may have it already, and gets only the rest.
  uint64_t taken_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  std::string unmovable_ LONGWIRE_GUARDED_BY(mutex_);
  uint64_t placed_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // up to which position modules were
  uint64_t turns_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  std::optional<Entry> expected_ LONGWIRE_GUARDED_BY(mutex_);
  std::string difference_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::worker
