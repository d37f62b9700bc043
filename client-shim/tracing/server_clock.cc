#include "client-shim/tracing/server_clock.h"

#include <algorithm>

namespace longwire::shim {
namespace {

// A round trip that took several times as long as a good one says less than what is known already;
// but not after a while, for clocks drift.
constexpr uint64_t kPoor = 3;
constexpr uint64_t kStale = 5'000'000'000;  // nanoseconds

}  // namespace

void ServerClock::Add(uint64_t sent, uint64_t server, uint64_t received) {
  const uint64_t error = (received - sent) / 2;
  if (has_best_ && error >= best_.error) return;
  best_ = {server, static_cast<int64_t>(sent + error) - static_cast<int64_t>(server), error};
  has_best_ = true;
}

void ServerClock::Settle() {
  if (!has_best_) return;
  has_best_ = false;
  if (!places_.empty()) {
    const Place& last = places_.back();
    if (best_.server <= last.server) return;
    const bool stale = best_.server > good_at_ + kStale;
    if (best_.error > kPoor * last.error && !stale) {
      places_.push_back({best_.server, last.to_here, last.error});
      return Forget();
    }
  }
  places_.push_back(best_);
  good_at_ = best_.server;
  error_ = best_.error;
  Forget();
}

void ServerClock::Forget() {
  if (places_.size() > kPlaceLimit) places_.pop_front();
}

const ServerClock::Place& ServerClock::Around(uint64_t server, const Place** after,
                                              double* part) const {
  auto next = std::ranges::upper_bound(places_, server, {}, &Place::server);
  const bool between = next != places_.begin() && next != places_.end();
  const Place& before = next == places_.begin() ? *next : *std::prev(next);
  *after = between ? &*next : &before;
  *part = between ? static_cast<double>(server - before.server) /
                        static_cast<double>(next->server - before.server)
                  : 0;
  return before;
}

uint64_t ServerClock::ToHere(uint64_t server) const {
  if (places_.empty()) return server;
  const Place* after = nullptr;
  double part = 0;
  const Place& before = Around(server, &after, &part);
  const auto more =
      static_cast<int64_t>(part * static_cast<double>(after->to_here - before.to_here));
  return server + static_cast<uint64_t>(before.to_here + more);
}

uint64_t ServerClock::ErrorAt(uint64_t server) const {
  if (places_.empty()) return 0;
  const Place* after = nullptr;
  double part = 0;
  const Place& before = Around(server, &after, &part);
  return static_cast<uint64_t>((1 - part) * static_cast<double>(before.error) +
                               part * static_cast<double>(after->error));
}

}  // namespace longwire::shim
