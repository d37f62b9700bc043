// The content of a session that arrives, from its other server to its new worker: pieces that come
// by one connection or by two, each with a thread, and go into the worker's socket in their order.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "wire/socket.h"

namespace longwire::daemon {

class ContentFeed {
 public:
  // The first one is the call by which the session was offered. With a second one the pieces go by
  // both in turn, beginning with the first.
  enum class Way { kFirst, kSecond };

  explicit ContentFeed(wire::Descriptor socket);

  // There is a second connection from now on. False if there is one already, or pieces have come.
  bool Widen();
  bool is_wide() const;

  // By the way's thread: writes its next piece, once all before it are written. False if what was
  // before it does not come, then it is broken, or if the worker takes no more, then it has ended.
  bool Take(Way way, std::span<const std::span<const std::byte>> parts);
  // Waits until the first `pieces` are written. False as Take.
  bool Await(uint64_t pieces);
  // A connection has no more: who waits for its pieces waits no longer.
  void Break();
  bool is_broken() const;
  // Nothing follows: the worker reads an end.
  void End();
  bool has_ended() const;

 private:
  bool Write(std::span<const std::span<const std::byte>> parts) const;

  mutable base::Mutex mutex_{base::ranks::kContentFeed};
  base::CondVar changed_;
  wire::Descriptor socket_;  // by who has its turn
  bool wide_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool broken_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool ended_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool writing_ LONGWIRE_GUARDED_BY(mutex_) = false;
  uint64_t written_ LONGWIRE_GUARDED_BY(mutex_) = 0;               // pieces
  std::array<uint64_t, 2> come_ LONGWIRE_GUARDED_BY(mutex_) = {};  // by each way
};

// The contents that arrive, by the numbers of their moves. The caller sees to its threads.
class ArrivingFeeds {
 public:
  // False if one with that number arrives already.
  bool Add(const std::string& move, const std::string& from, std::shared_ptr<ContentFeed> feed);
  void Remove(const std::string& move) { feeds_.erase(move); }
  // For a second connection: of the server that offered the session, by the same name, and of
  // nobody else.
  std::shared_ptr<ContentFeed> Find(const std::string& move, const std::string& from) const;

 private:
  struct Arriving {
    std::string from;
    std::shared_ptr<ContentFeed> feed;
  };
  std::map<std::string, Arriving> feeds_;
};

}  // namespace longwire::daemon
