// Watches the session's socket. Once the session is open, only a message that explains its end, and
// the end of file, come over it. If the other side has ended without a message, another socket may
// take its place (Renewal).
//
// The thread that watches has a descriptor table of its own (unshare), with only the socket in it,
// and what a renewal needs.
// So the program can close or replace descriptors that it does not know without ending the session
// or hiding its end, and a forked child does not keep the session open. If the system refuses a
// table, the socket stays among the program's descriptors.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "wire/descriptors.h"

namespace longwire::shim {

class SocketWatch {
 public:
  // How to get another socket when the other side has ended.
  struct Renewal {
    std::vector<wire::Descriptor> descriptors;  // that it takes along
    // Called on the thread with these. An invalid socket, with the last message or
    // without, ends the watch. Empty: the first end is the end.
    std::function<wire::Descriptor(std::span<const int>, std::string*)> connect;
  };
  // `on_end` runs once, on the thread, when the other side has closed and there is no other. False
  // if no thread could be started.
  bool Start(wire::Descriptor socket, Renewal renewal, std::function<void()> on_end);
  // The message with which the other side ended the session; empty if none comes within a moment.
  std::string LastWords() LONGWIRE_EXCLUDES(mutex_);
  // For tests: true if the thread has a descriptor table of its own.
  bool apart() const { return apart_; }

 private:
  enum class Table { kUnknown, kOwn, kShared };

  void Run();
  bool LeaveTable();
  void Watch();
  bool TakeWords();
  bool Renew();
  std::vector<int> Kept() const;

  wire::Descriptor in_own_table_;          // the socket, if the thread has its own table
  wire::OwnDescriptor in_programs_table_;  // the socket, if it has none
  Renewal renewal_;                        // its descriptors: if the thread has its own table
  std::vector<wire::OwnDescriptor> kept_in_programs_table_;  // the same, if it has none
  std::function<void()> on_end_;
  bool apart_ = false;

  base::Mutex mutex_{base::ranks::kSocketWatch};
  base::CondVar changed_;
  bool started_ LONGWIRE_GUARDED_BY(mutex_) = false;
  // A descriptor that shows whether the thread's table is its own.
  int probe_ LONGWIRE_GUARDED_BY(mutex_) = -1;
  Table table_ LONGWIRE_GUARDED_BY(mutex_) = Table::kUnknown;
  bool ended_ LONGWIRE_GUARDED_BY(mutex_) = false;
  std::string words_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::shim
