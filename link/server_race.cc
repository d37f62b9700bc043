#include "link/server_race.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace longwire::link {
namespace {

// Longer than most connections and handshakes between continents take.
constexpr std::chrono::milliseconds kConnectTurn{300};
// A server that has no worker ready starts one first.
constexpr std::chrono::milliseconds kAnswerTurn{1500};
// Of a long list the last is still tried in time.
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
  std::lock_guard lock(mutex_);
  on_give_up_ = std::move(on_give_up);
  if (given_up_.load() && on_give_up_) on_give_up_();
}

void Contender::Connected() { on_connected_(); }

void Contender::GiveUp() {
  std::lock_guard lock(mutex_);
  given_up_.store(true);
  if (on_give_up_) on_give_up_();
}

ServerRace::ServerRace(const std::vector<transport::Address>& servers, Try attempt)
    : attempt_(std::move(attempt)) {
  for (const transport::Address& server : servers) {
    contenders_.push_back(std::make_unique<Contender>(server));
    Contender* contender = contenders_.back().get();
    contender->on_connected_ = [this, contender] {
      std::lock_guard lock(mutex_);
      contender->state_ = Contender::State::kAsking;
      contender->since_ = Clock::now();
      changed_.notify_all();
    };
  }
}

ServerRace::~ServerRace() {
  GiveUp();
  for (auto& contender : contenders_) {
    if (contender->thread_.joinable()) contender->thread_.join();
  }
}

void ServerRace::GiveUp() {
  {
    std::lock_guard lock(mutex_);
    given_up_ = true;
  }
  changed_.notify_all();
  for (auto& contender : contenders_) contender->GiveUp();
}

// The lock is held in these.
void ServerRace::Start(size_t place) {
  Contender& contender = *contenders_[place];
  contender.state_ = Contender::State::kConnecting;
  contender.since_ = Clock::now();
  contender.thread_ = std::thread([this, place, &contender] {
    std::string sentence;
    bool serves = attempt_(place, contender, &sentence);
    std::lock_guard lock(mutex_);
    contender.state_ = serves ? Contender::State::kServes : Contender::State::kFailed;
    contender.sentence_ = std::move(sentence);
    if (serves && !winner_ && !given_up_) winner_ = place;
    changed_.notify_all();
  });
}

// nullopt: all have started.
std::optional<ServerRace::Clock::time_point> ServerRace::NextStart() const {
  if (started_ == contenders_.size()) return std::nullopt;
  if (started_ == 0) return Clock::now();
  const Contender& last = *contenders_[started_ - 1];
  if (last.state_ == Contender::State::kFailed) return Clock::now();
  bool asks = last.state_ == Contender::State::kAsking;
  auto turn = std::min<Clock::duration>(asks ? kAnswerTurn : kConnectTurn,
                                        kAllStarted / (contenders_.size() - 1));
  return last.since_ + turn;
}

std::string ServerRace::Sentences() const {
  std::string all;
  for (const auto& contender : contenders_) {
    std::string said = contender->sentence_;
    std::string server = contender->address().Text();
    auto time = Clock::now() - contender->since_;
    if (contender->state_ == Contender::State::kWaiting) said = server + " was not tried";
    if (contender->state_ == Contender::State::kConnecting) said = NoAnswerFrom(server, time);
    if (contender->state_ == Contender::State::kAsking) {
      said = server + " has taken the connection, but has not answered in " + Seconds(time) +
             "; is longwired there stopped, or starting?";
    }
    all += (all.empty() ? "" : "; ") + said;
  }
  return all;
}

std::optional<size_t> ServerRace::Run(Clock::time_point deadline, std::string* sentence) {
  std::unique_lock lock(mutex_);
  while (!winner_ && !given_up_ && Clock::now() < deadline) {
    auto next = NextStart();
    if (next && *next <= Clock::now()) {
      Start(started_++);
      continue;
    }
    bool all_failed = std::all_of(contenders_.begin(), contenders_.end(), [](const auto& one) {
      return one->state_ == Contender::State::kFailed;
    });
    if (all_failed) break;
    changed_.wait_until(lock, std::min(deadline, next.value_or(deadline)));
  }
  if (!winner_) {
    *sentence = Sentences();
    given_up_ = true;
  }
  std::optional<size_t> winner = winner_;
  lock.unlock();
  for (size_t place = 0; place < contenders_.size(); ++place) {
    if (place != winner) contenders_[place]->GiveUp();
  }
  return winner;
}

}  // namespace longwire::link
