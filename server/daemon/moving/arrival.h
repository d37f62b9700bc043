// A session that another server hands over to this one: its new worker, from its start until the
// session is in the table, or is thrown away.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "proto/transport.pb.h"
#include "server/daemon/moving/content_feed.h"
#include "server/daemon/moving/successor.h"
#include "server/daemon/sessions/session_table.h"

namespace longwire::daemon {

class SessionTable::Arrival {
 public:
  // `from`: the name of the server that offers it.
  Arrival(SessionTable& table, transport::HandOverOffer offer, Peer client, std::string from);
  // Without its beginning nothing stays.
  ~Arrival();
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

  // The steps, by one thread; each is false with a sentence. First a worker that waits.
  bool Start(std::string* sentence);
  // Takes what the old worker wrote. Once it takes no more, IsRebuilt says why.
  ContentFeed& feed() { return *feed_; }
  // After a round.
  bool IsAhead(std::string* sentence) { return new_->IsAhead(sentence); }
  bool again() const { return new_->again(); }
  // Whether it is the same there; nothing is fed any more.
  bool IsRebuilt(std::string* sentence);
  bool TakeRings(const transport::HandOverRings& rings, std::string* sentence);
  bool TakeRingBytes(const std::string& bytes, std::string* sentence);
  // All is there, and it waits for its end (SessionTable::EndArrival) for `patience`.
  bool Prepare(std::shared_ptr<Arrival> self, std::string* sentence);

  std::chrono::milliseconds patience() const { return patience_; }
  uint64_t session() const { return new_->session()->id(); }
  int32_t device() const { return new_->device(); }

  // The ends, by any thread: the first one counts. True if it runs here, also since before.
  bool Begin(std::string* sentence);
  // False if it has begun.
  bool Discard();
  bool IsLate() const { return Clock::now() > deadline_; }

 private:
  bool Place(std::string* sentence);
  bool TakeLimit(std::chrono::milliseconds left, std::string* sentence);
  bool FillRings();
  bool BeginOnce(std::string* sentence);

  SessionTable& table_;
  const transport::HandOverOffer offer_;
  const Peer client_;
  const std::string from_;
  size_t descriptors_ = 0;  // that were counted for it
  std::optional<Successor> new_;
  std::shared_ptr<ContentFeed> feed_;
  bool listed_ = false;  // in arriving_
  transport::HandOverRings rings_;
  std::vector<std::vector<std::byte>> contents_;  // of the rings
  size_t filled_ = 0;                             // of contents_: whole
  bool admitted_ = false;
  PlacedSession placed_;
  bool in_pool_ = false;        // has a place there, which is not opened yet
  Clock::time_point accepted_;  // before the other server hears that a worker waits
  std::chrono::milliseconds patience_{0};
  Clock::time_point deadline_;

  enum class State { kOpen, kBegun, kDiscarded };
  base::Mutex mutex_{base::ranks::kArrival};
  State state_ LONGWIRE_GUARDED_BY(mutex_) = State::kOpen;
};

}  // namespace longwire::daemon
