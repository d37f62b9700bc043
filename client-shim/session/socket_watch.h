// The session's socket: nothing but the end of the other side, and its last words, come over it.
//
// A thread watches it that has a table of descriptors of its own, with the socket as the only one.
// So a program that closes what it does not know, or puts something else in its place, neither ends
// the session nor hides its end, and a forked child does not keep the session open. Where a system
// gives no table of its own the socket stays among the program's descriptors.
#pragma once

#include <functional>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "wire/descriptors.h"

namespace longwire::shim {

class SocketWatch {
 public:
  // `on_end` runs once, on the thread, when nothing more can come. False: no thread is left.
  bool Start(wire::Descriptor socket, std::function<void()> on_end);
  // What the other side said when it ended the session; empty if it says nothing for a moment.
  std::string LastWords() LONGWIRE_EXCLUDES(mutex_);
  // For tests: whether the program's descriptors are none of ours.
  bool apart() const { return apart_; }

 private:
  enum class Table { kUnknown, kOwn, kShared };

  void Run();
  bool LeaveTable();
  void Watch();
  bool TakeWords();

  wire::Descriptor in_own_table_;          // the thread's alone
  wire::OwnDescriptor in_programs_table_;  // instead of that
  std::function<void()> on_end_;
  bool apart_ = false;

  base::Mutex mutex_{base::ranks::kSocketWatch};
  base::CondVar changed_;
  bool started_ LONGWIRE_GUARDED_BY(mutex_) = false;
  // A descriptor that only the thread has if the tables are two.
  int probe_ LONGWIRE_GUARDED_BY(mutex_) = -1;
  Table table_ LONGWIRE_GUARDED_BY(mutex_) = Table::kUnknown;
  bool ended_ LONGWIRE_GUARDED_BY(mutex_) = false;
  std::string words_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::shim
