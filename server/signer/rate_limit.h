// How often something may happen, for each key and in all: a bucket of tokens each.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace longwire::signer {

struct Rate {
  double burst;       // so often at once
  double per_minute;  // and then so often
};

class RateLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  RateLimit(Rate each, Rate all) : each_(each), all_(all) {}

  // True if the key, or all keys together, may not now.
  bool IsExhausted(const std::string& key, Time now);
  // It happened.
  void Count(const std::string& key, Time now);
  // Counts it if it may happen.
  bool Take(const std::string& key, Time now);

  size_t keys() const { return buckets_.size(); }

 private:
  struct Bucket {
    double used = 0;
    Time at{};
  };
  static void Refill(const Rate& rate, Time now, Bucket* bucket);
  void Forget(Time now);

  const Rate each_;
  const Rate all_;
  Bucket everybody_;
  std::map<std::string, Bucket> buckets_;  // those that are not full
};

}  // namespace longwire::signer
