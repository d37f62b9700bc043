#include "link/server_race.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/reason.h"
#include "base/start_thread.h"

namespace longwire::link {
namespace {

// Longer than most connections and handshakes between continents take.
constexpr std::chrono::milliseconds kConnectTurn{300};
// A server without a warm worker starts one first.
constexpr std::chrono::milliseconds kAnswerTurn{1500};
// Bounds the delays, so that the last server of a long list is tried in time.
constexpr std::chrono::milliseconds kAllStarted{2000};

std::string Seconds(std::chrono::steady_clock::duration time) {
  char text[32];
  snprintf(text, sizeof(text), "%.1f s", std::chrono::duration<double>(time).count());
  return text;
}

}  // namespace

std::string NoAnswerFrom(const std::string& server, std::chrono::steady_clock::duration time) {
  return "no answer from " + server + " in " + Seconds(time) +
         ": a firewall drops packets, the address is wrong, or the host is down";
}

void Contender::set_on_give_up(std::function<void()> on_give_up) {
  base::MutexLock lock(mutex_);
  on_give_up_ = std::move(on_give_up);
  if (given_up_.load() && on_give_up_) on_give_up_();
}

void Contender::GiveUp() {
  base::MutexLock lock(mutex_);
  given_up_.store(true);
  if (on_give_up_) on_give_up_();
}

ServerRace::ServerRace(const std::vector<transport::Address>& servers, Try attempt,
                       Clock::duration answer)
    : attempt_(std::move(attempt)), answer_(answer), progress_(servers.size()) {
  for (size_t place = 0; place < servers.size(); ++place) {
    contenders_.push_back(std::make_unique<Contender>(
        servers[place], [this, place] { Connected(place); }, [this, place] { Alive(place); }));
  }
}

ServerRace::~ServerRace() {
  GiveUp();
  for (std::thread& thread : threads_) thread.join();
}

void ServerRace::GiveUp() {
  {
    base::MutexLock lock(mutex_);
    given_up_ = true;
  }
  changed_.NotifyAll();
  for (auto& contender : contenders_) contender->GiveUp();
}

void ServerRace::Connected(size_t place) {
  base::MutexLock lock(mutex_);
  progress_[place].state = State::kAsking;
  progress_[place].since = Clock::now();
  deadline_ = std::max(deadline_, Clock::now() + answer_);
  changed_.NotifyAll();
}

void ServerRace::Alive(size_t place) {
  base::MutexLock lock(mutex_);
  progress_[place].since = Clock::now();
  deadline_ = std::max(deadline_, Clock::now() + std::max(patience_, answer_));
  changed_.NotifyAll();
}

void ServerRace::Start(size_t place) {
  progress_[place].state = State::kConnecting;
  progress_[place].since = Clock::now();
  if (base::StartThread(&threads_.emplace_back(), [this, place] { Attempt(place); })) return;
  threads_.pop_back();
  progress_[place].state = State::kFailed;
  progress_[place].sentence =
      contenders_[place]->address().Text() + " was not tried: " + base::ReasonOfNoThread(errno);
}

void ServerRace::Attempt(size_t place) {
  std::string sentence;
  bool serves = attempt_(place, *contenders_[place], &sentence);
  base::MutexLock lock(mutex_);
  progress_[place].state = serves ? State::kServes : State::kFailed;
  progress_[place].sentence = std::move(sentence);
  if (serves && !winner_ && !given_up_) winner_ = place;
  changed_.NotifyAll();
}

// nullopt: all have started.
std::optional<ServerRace::Clock::time_point> ServerRace::NextStart() const {
  if (started_ == contenders_.size()) return std::nullopt;
  if (started_ == 0) return Clock::now();
  const Progress& last = progress_[started_ - 1];
  if (last.state == State::kFailed) return Clock::now();
  bool asks = last.state == State::kAsking;
  auto turn = std::min<Clock::duration>(asks ? kAnswerTurn : kConnectTurn,
                                        kAllStarted / (contenders_.size() - 1));
  return last.since + turn;
}

bool ServerRace::AllFailed() const {
  return std::ranges::all_of(progress_,
                             [](const Progress& one) { return one.state == State::kFailed; });
}

std::string ServerRace::Sentences() const {
  std::string all;
  for (size_t place = 0; place < contenders_.size(); ++place) {
    const Progress& progress = progress_[place];
    std::string said = progress.sentence;
    std::string server = contenders_[place]->address().Text();
    auto time = Clock::now() - progress.since;
    if (progress.state == State::kWaiting) said = server + " was not tried";
    if (progress.state == State::kConnecting) said = NoAnswerFrom(server, time);
    if (progress.state == State::kAsking) {
      said = server + " has taken the connection, but has not answered in " + Seconds(time) +
             "; is longwired there stopped, or starting?";
    }
    all += (all.empty() ? "" : "; ") + said;
  }
  return all;
}

std::optional<size_t> ServerRace::Run(Clock::time_point deadline, std::string* sentence) {
  base::MutexLock lock(mutex_);
  deadline_ = deadline;
  patience_ = deadline - Clock::now();
  while (!winner_ && !given_up_ && Clock::now() < deadline_) {
    auto next = NextStart();
    if (next && *next <= Clock::now()) {
      Start(started_++);
      continue;
    }
    if (AllFailed()) break;
    changed_.WaitUntil(lock, std::min(deadline_, next.value_or(deadline_)));
  }
  if (!winner_) {
    *sentence = Sentences();
    given_up_ = true;
  }
  std::optional<size_t> winner = winner_;
  lock.Unlock();
  for (size_t place = 0; place < contenders_.size(); ++place) {
    if (place != winner) contenders_[place]->GiveUp();
  }
  return winner;
}

}  // namespace longwire::link
