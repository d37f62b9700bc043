// Moves the sessions of a host that an administrator drains to other hosts of its pool, those that
// can move; the others end by themselves, or at the drain's deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "server/daemon/sessions/session_table.h"

namespace longwire::daemon {

class Emptier {
 public:
  // `shall`: whether sessions are to go now.
  Emptier(SessionTable& table, std::function<bool()> shall)
      : table_(table), shall_(std::move(shall)) {}
  ~Emptier() { Stop(); }

  // False with a sentence when there is no thread.
  bool Start(std::string* sentence);
  void Stop();

 private:
  struct Tried {
    Clock::time_point again;
    std::chrono::seconds pause;
  };
  void Loop();
  void MoveSome();

  SessionTable& table_;
  const std::function<bool()> shall_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
  std::map<uint64_t, Tried> tried_;  // used by the thread alone: those that did not go
};

}  // namespace longwire::daemon
