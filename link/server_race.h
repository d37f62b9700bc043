// Several servers of which one is wanted: the first of a list, unless it keeps its peace. Each is
// tried on a thread of its own; the next one starts when the one before has failed, or beside it
// when that has said nothing for a while. The first that serves is taken, and the others are told
// to give up.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "link/transport/address.h"

namespace longwire::link {

// One server of a race, as the thread that tries it sees it.
class Contender {
 public:
  explicit Contender(const transport::Address& address) : address_(address) {}
  const transport::Address& address() const { return address_; }
  // Set when another serves: then the attempt ends soon.
  const std::atomic<bool>& given_up() const { return given_up_; }
  // While it is set, giving up also calls this. nullptr: no more.
  void set_on_give_up(std::function<void()> on_give_up);
  // There is a connection; the next server is given more time then.
  void Connected();
  void GiveUp();

 private:
  friend class ServerRace;
  enum class State { kWaiting, kConnecting, kAsking, kFailed, kServes };

  const transport::Address address_;
  std::atomic<bool> given_up_{false};
  std::mutex mutex_;
  std::function<void()> on_give_up_;  // under mutex_
  std::function<void()> on_connected_;

  // Under the race's mutex.
  State state_ = State::kWaiting;
  std::chrono::steady_clock::time_point since_;  // in this state
  std::string sentence_;                         // why it does not serve
  std::thread thread_;
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

  void Start(size_t place);
  std::optional<Clock::time_point> NextStart() const;
  std::string Sentences() const;

  const Try attempt_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Contender>> contenders_;
  size_t started_ = 0;  // under mutex_, as all that follows
  std::optional<size_t> winner_;
  bool given_up_ = false;
};

// Of a server that says nothing, after that time.
std::string NoAnswerFrom(const std::string& server, std::chrono::steady_clock::duration time);

}  // namespace longwire::link
