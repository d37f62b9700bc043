#include "server/signer/rate_limit.h"

#include <algorithm>
#include <iterator>

namespace longwire::signer {
namespace {

// When there are this many keys, those are forgotten that may have their whole burst again. The
// rate of all keys together bounds how many are left.
constexpr size_t kKeys = 4096;

}  // namespace

void RateLimit::Refill(const Rate& rate, Time now, Bucket* bucket) {
  std::chrono::duration<double> passed = now - bucket->at;
  bucket->used = std::max(0.0, bucket->used - passed.count() * rate.per_minute / 60);
  bucket->at = now;
}

bool RateLimit::IsExhausted(const std::string& key, Time now) {
  Refill(all_, now, &everybody_);
  if (everybody_.used + 1 > all_.burst) return true;
  auto found = buckets_.find(key);
  if (found == buckets_.end()) return false;
  Refill(each_, now, &found->second);
  return found->second.used + 1 > each_.burst;
}

void RateLimit::Count(const std::string& key, Time now) {
  if (buckets_.size() >= kKeys) Forget(now);
  Refill(all_, now, &everybody_);
  everybody_.used += 1;
  Bucket& bucket = buckets_.try_emplace(key, Bucket{0, now}).first->second;
  Refill(each_, now, &bucket);
  bucket.used += 1;
}

bool RateLimit::Take(const std::string& key, Time now) {
  if (IsExhausted(key, now)) return false;
  Count(key, now);
  return true;
}

void RateLimit::Forget(Time now) {
  for (auto entry = buckets_.begin(); entry != buckets_.end();) {
    Refill(each_, now, &entry->second);
    entry = entry->second.used == 0 ? buckets_.erase(entry) : std::next(entry);
  }
}

}  // namespace longwire::signer
