// The server's steady clock on this host's. Each round trip says what the server's clock showed
// between two moments of this one, so the middle is wrong by at most half the round trip. The best
// of a few are kept, with straight lines between: what follows in the server's time follows here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace longwire::shim {

class ServerClock {
 public:
  static constexpr size_t kPlaceLimit = 1 << 14;  // places that are kept; the oldest go

  // A round trip began and ended at these times of this host, and the server's clock was `server`
  // in between. Nanoseconds.
  void Add(uint64_t sent, uint64_t server, uint64_t received);
  // The newest round trips count from now on: their best one becomes a place on the line.
  void Settle();
  // This host's time. Once a round trip behind that time has settled it never changes again.
  uint64_t ToHere(uint64_t server) const;
  // How wrong that may be at this time of the server's: between two places as far as it lies from
  // each.
  uint64_t ErrorAt(uint64_t server) const;
  // At the newest place: half of its shortest round trip.
  uint64_t error() const { return error_; }
  // The server's clock less this one's.
  int64_t offset() const { return places_.empty() ? 0 : -places_.back().to_here; }

 private:
  struct Place {
    uint64_t server = 0;
    int64_t to_here = 0;  // added to the server's time
    uint64_t error = 0;
  };
  void Forget();
  // The places around that time, the same one twice outside of all, and which part of the way from
  // the first to the second one it is. There is a place.
  const Place& Around(uint64_t server, const Place** after, double* part) const;

  std::deque<Place> places_;
  uint64_t good_at_ = 0;  // the server's time of the newest place that was measured well
  Place best_;
  bool has_best_ = false;
  uint64_t error_ = 0;
};

}  // namespace longwire::shim
