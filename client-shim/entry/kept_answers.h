// Answers that the client keeps: of calls for which HasLastingAnswer (call_ids.h) is true, by the
// call, its arguments, and the context that they are meant for. XLA describes the same tensors
// before each launch of a graph, which was a round trip for each.
// LONGWIRE_DISABLE=lasting-answers asks the server each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "wire/buffer.h"

namespace longwire::shim {

struct Where;

class KeptAnswers {
 public:
  // With as many the oldest are long out of use: all are forgotten, and begin anew.
  static constexpr size_t kMaxAnswers = 8192;

  // A reply as it came, or nullopt.
  std::optional<std::vector<std::byte>> Find(const std::string& key) const;
  void Keep(const std::string& key, const std::vector<std::byte>& reply);
  size_t size() const;

 private:
  mutable base::Mutex mutex_{base::ranks::kKeptAnswers};
  std::unordered_map<std::string, std::vector<std::byte>> replies_ LONGWIRE_GUARDED_BY(mutex_);
};

// This process's; nullptr where they are switched off.
KeptAnswers* TheKeptAnswers();

// What such an answer is kept by. `arguments`: as they are sent.
std::string KeyOfAnswer(uint16_t call, const Where& where, const wire::Writer& arguments);

}  // namespace longwire::shim
