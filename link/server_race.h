// Chooses one of several servers, as "happy eyeballs" (RFC 8305) does: each is tried on a thread of
// its own, in the order of the list. The next attempt starts when the one before has failed, or
// beside it when that has not answered for a while. The first server that serves is taken, and the
// other attempts are cancelled.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/certificates/address.h"

namespace longwire::link {

// One server of a race, as the thread that tries it sees it.
class Contender {
 public:
  Contender(const transport::Address& address, std::function<void()> on_connected,
            std::function<void()> on_alive)
      : address_(address), on_connected_(std::move(on_connected)), on_alive_(std::move(on_alive)) {}
  const transport::Address& address() const { return address_; }
  // Set when another server was taken: the attempt should end soon.
  const std::atomic<bool>& given_up() const { return given_up_; }
  // Called by GiveUp, too, until it is replaced. nullptr: nothing is called.
  void set_on_give_up(std::function<void()> on_give_up);
  // Reports that there is a connection: the next attempt then starts later.
  void Connected() { on_connected_(); }
  // Reports that it still works on what it was asked for: the race waits on.
  void Alive() { on_alive_(); }
  void GiveUp();

 private:
  const transport::Address address_;
  const std::function<void()> on_connected_;
  const std::function<void()> on_alive_;
  std::atomic<bool> given_up_{false};
  base::Mutex mutex_{base::ranks::kContender};
  std::function<void()> on_give_up_ LONGWIRE_GUARDED_BY(mutex_);
};

class ServerRace {
 public:
  // Tries one server; `place` is its index in the list. False with a sentence when it does not
  // serve. Called by several threads at once.
  using Try = std::function<bool(size_t place, Contender& contender, std::string* sentence)>;

  // `answer`: at least as long a server is waited for that has taken the connection, or is alive.
  ServerRace(const std::vector<transport::Address>& servers, Try attempt,
             std::chrono::steady_clock::duration answer = {});
  ~ServerRace();  // waits for the cancelled attempts
  ServerRace(const ServerRace&) = delete;
  ServerRace& operator=(const ServerRace&) = delete;

  // The index of the server that was taken. nullopt, with one sentence for each server, when none
  // serves before the deadline, which is at least as far ahead again whenever one is alive.
  std::optional<size_t> Run(std::chrono::steady_clock::time_point deadline, std::string* sentence);
  // Makes Run return nullopt soon. Thread-safe.
  void GiveUp();

 private:
  using Clock = std::chrono::steady_clock;

  enum class State { kWaiting, kConnecting, kAsking, kFailed, kServes };
  struct Progress {
    State state = State::kWaiting;
    Clock::time_point since;  // in this state
    std::string sentence;     // why it does not serve
  };

  void Connected(size_t place);
  void Alive(size_t place);
  void Start(size_t place) LONGWIRE_REQUIRES(mutex_);
  void Attempt(size_t place);
  std::optional<Clock::time_point> NextStart() const LONGWIRE_REQUIRES(mutex_);
  bool AllFailed() const LONGWIRE_REQUIRES(mutex_);
  std::string Sentences() const LONGWIRE_REQUIRES(mutex_);

  const Try attempt_;
  const Clock::duration answer_;
  std::vector<std::unique_ptr<Contender>> contenders_;  // by index; constant
  std::vector<std::thread> threads_;                    // used by Run's caller only

  base::Mutex mutex_{base::ranks::kServerRace};
  base::CondVar changed_;
  std::vector<Progress> progress_ LONGWIRE_GUARDED_BY(mutex_);  // by index
  size_t started_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  std::optional<size_t> winner_ LONGWIRE_GUARDED_BY(mutex_);
  bool given_up_ LONGWIRE_GUARDED_BY(mutex_) = false;
  Clock::time_point deadline_ LONGWIRE_GUARDED_BY(mutex_);
  Clock::duration patience_ LONGWIRE_GUARDED_BY(mutex_){};
};

// The sentence about a server that has not answered in `time`.
std::string NoAnswerFrom(const std::string& server, std::chrono::steady_clock::duration time);

}  // namespace longwire::link
