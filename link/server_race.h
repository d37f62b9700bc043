// Several servers of which one is wanted: the first of a list, unless it keeps its peace. Each is
// tried on a thread of its own; the next one starts when the one before has failed, or beside it
// when that has said nothing for a while. The first that serves is taken, and the others are told
// to give up.
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
#include "link/transport/address.h"

namespace longwire::link {

// One server of a race, as the thread that tries it sees it.
class Contender {
 public:
  Contender(const transport::Address& address, std::function<void()> on_connected)
      : address_(address), on_connected_(std::move(on_connected)) {}
  const transport::Address& address() const { return address_; }
  // Set when another serves: then the attempt ends soon.
  const std::atomic<bool>& given_up() const { return given_up_; }
  // While it is set, giving up also calls this. nullptr: no more.
  void set_on_give_up(std::function<void()> on_give_up);
  // There is a connection; the next server is given more time then.
  void Connected() { on_connected_(); }
  void GiveUp();

 private:
  const transport::Address address_;
  const std::function<void()> on_connected_;
  std::atomic<bool> given_up_{false};
  base::Mutex mutex_{base::ranks::kContender};
  std::function<void()> on_give_up_ LONGWIRE_GUARDED_BY(mutex_);
};

class ServerRace {
 public:
  // Tries one server; `place` is its number in the list. False with a sentence when it does not
  // serve. Called by several threads.
  using Try = std::function<bool(size_t place, Contender& contender, std::string* sentence)>;

  ServerRace(const std::vector<transport::Address>& servers, Try attempt);
  ~ServerRace();  // waits for those that have given up
  ServerRace(const ServerRace&) = delete;
  ServerRace& operator=(const ServerRace&) = delete;

  // The place of the server that serves; nullopt, with what each of them said, when none does
  // before the deadline.
  std::optional<size_t> Run(std::chrono::steady_clock::time_point deadline, std::string* sentence);
  // Makes Run return soon, with nullopt. From any thread.
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
  void Start(size_t place) LONGWIRE_REQUIRES(mutex_);
  void Attempt(size_t place);
  std::optional<Clock::time_point> NextStart() const LONGWIRE_REQUIRES(mutex_);
  bool AllFailed() const LONGWIRE_REQUIRES(mutex_);
  std::string Sentences() const LONGWIRE_REQUIRES(mutex_);

  const Try attempt_;
  std::vector<std::unique_ptr<Contender>> contenders_;  // by place; as they are from the start on
  std::vector<std::thread> threads_;                    // of Run's caller

  base::Mutex mutex_{base::ranks::kServerRace};
  base::CondVar changed_;
  std::vector<Progress> progress_ LONGWIRE_GUARDED_BY(mutex_);  // by place
  size_t started_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  std::optional<size_t> winner_ LONGWIRE_GUARDED_BY(mutex_);
  bool given_up_ LONGWIRE_GUARDED_BY(mutex_) = false;
};

// Of a server that says nothing, after that time.
std::string NoAnswerFrom(const std::string& server, std::chrono::steady_clock::duration time);

}  // namespace longwire::link
