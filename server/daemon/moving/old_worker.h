// The worker that a session moves away from, or is suspended from (server/protocol/moving.h). Until
// End it goes on as soon as this is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "server/config/config.h"
#include "server/daemon/moving/rounds.h"
#include "server/daemon/sessions/session.h"
#include "server/protocol/moving.h"
#include "wire/socket.h"

namespace longwire::daemon {

struct Pair {
  wire::Descriptor ours, theirs;
};
bool MakePair(int type, Pair* pair);

// The code of a worker's answer; -1 if none came. *calls: of which it speaks.
int32_t HearWorker(int socket, std::chrono::milliseconds patience, std::string* sentence,
                   uint64_t* calls = nullptr);

inline constexpr std::chrono::milliseconds kAnswerPatience{20'000};
inline constexpr std::chrono::milliseconds kCopyPatience{600'000};

// For people.
std::string MillisText(Clock::duration time);

// Why a session of this client stays where it is, whatever its worker says; empty if nothing is
// against it.
std::string BoundToItsPlace(const ClientDescription& client, const config::Config& config);

// Seconds that are left of its time limit; 0: it has none.
uint64_t TimeLeft(const ServerSession& session);

class OldWorker {
 public:
  explicit OldWorker(std::shared_ptr<ServerSession> session) : session_(std::move(session)) {}
  // The connections come back, unless the session has ended here.
  ~OldWorker();
  OldWorker(const OldWorker&) = delete;
  OldWorker& operator=(const OldWorker&) = delete;

  // Whether the worker of a session that was taken over runs it: it was let go, or begun, before
  // its daemon was killed. One that has its notice is about to end.
  static bool GoesOn(const std::shared_ptr<ServerSession>& session);

  // Whether it can leave its worker, which writes what it is into `stream`. False with a sentence.
  bool Ask(wire::Descriptor stream, std::string* sentence);
  // Whether it has answered Ask, whatever it said.
  bool answered() const { return answered_; }
  // With which it was opened.
  const std::string& request() const { return offer_.request; }
  // A round: it writes what there is by now. HasWrittenAhead is its end, which socket() tells.
  bool MayWriteAhead() const { return offer_.knows_ahead.value_or(false); }
  bool WriteAhead();
  Round HasWrittenAhead(std::string* sentence);
  int socket() const { return packets_.get(); }
  const CallsAgain& calls() const { return calls_; }
  // Stands still at a border between calls. One attempt after the other, with the program at work
  // between them. False with a sentence.
  bool Hold(std::string* sentence);
  bool Write();
  // Whether it has written all.
  bool HasWritten(std::string* sentence);
  // There is no way back from here on: it ends, and is killed by `kill` if it does not. False if it
  // is still there.
  template <class Kill>
  bool End(Kill kill) {
    Tell();
    if (!session_->WorkerEnds(kEndPatience)) kill();
    return session_->WorkerEnds(kEndPatience);
  }

 private:
  static constexpr std::chrono::milliseconds kEndPatience{5'000};
  int32_t HoldFor(uint32_t patience, std::string* sentence);
  bool LetGo(std::string* sentence);
  void Tell();

  const std::shared_ptr<ServerSession> session_;
  wire::Descriptor packets_;
  moving::MoveOffer offer_;
  CallsAgain calls_;
  bool answered_ = false;
  bool ended_ = false;
};

}  // namespace longwire::daemon
