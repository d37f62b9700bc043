// What an administrator said of this host in the pool (withdrawn/H), as the host keeps to it. How
// long a drain may take is measured here, on a clock that goes on when longwired is restarted and
// when the machine sleeps: hosts' calendars are not compared. Not thread-safe.
#pragma once

#include <cstdint>
#include <istream>
#include <string>

#include "server/pool/records.pb.h"

namespace longwire::pool {

// Since the machine began.
uint64_t BootSeconds();

class Following {
 public:
  // What etcd has now; nullptr: nothing. True when it is another one than before: then the state
  // file is to be written anew.
  bool Hear(const Withdrawal* told, uint64_t now);

  bool withdrawn() const { return !number_.empty(); }
  const std::string& number() const { return number_; }
  // Whether the drain's deadline has passed: what still runs is to be ended.
  bool IsDue(uint64_t now) const { return end_ != 0 && now >= end_; }
  // Until then, in steps, because it is written to etcd; 0 without a deadline.
  uint64_t Left(uint64_t now) const;

  // In the state file, whose other fields come before it.
  std::string Text() const;
  void Read(std::istream& text);

 private:
  std::string number_;
  uint64_t end_ = 0;  // BootSeconds; 0: it has no deadline
};

}  // namespace longwire::pool
