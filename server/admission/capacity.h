// Room for those who wait for a session, with a limit for each party and one for all. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace longwire::admission {

class Capacity {
 public:
  struct Limits {
    size_t each = 0;
    size_t all = 0;
  };

  // One unit, held until it ends. The Capacity outlives it.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept {
      Leave();
      capacity_ = std::exchange(other.capacity_, nullptr);
      party_ = std::move(other.party_);
      return *this;
    }
    ~Share() { Leave(); }
    void Leave();

   private:
    friend class Capacity;
    Share(Capacity* shares, std::string party) : capacity_(shares), party_(std::move(party)) {}
    Capacity* capacity_ = nullptr;
    std::string party_;
  };

  // A share for the party; nullopt beyond a limit. The first `own` ones of a party are its own:
  // they are given beyond both limits, and others do not use them up.
  std::optional<Share> Take(const std::string& party, Limits limits, size_t own = 0);

  size_t taken();
  uint64_t refused() const { return refused_.load(); }

 private:
  struct Party {
    size_t count = 0;
    size_t shared = 0;  // of these: counted in shared_
  };

  std::atomic<uint64_t> refused_{0};
  base::Mutex mutex_{base::ranks::kCapacity};
  std::map<std::string, Party> parties_ LONGWIRE_GUARDED_BY(mutex_);
  size_t shared_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // shares that are nobody's own
  size_t taken_ LONGWIRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace longwire::admission
