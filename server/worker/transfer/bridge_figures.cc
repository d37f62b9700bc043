#include "server/worker/transfer/bridge_figures.h"

#include <cstdio>

namespace longwire::worker {
namespace {

constexpr const char* kNames[BridgeFigures::kStages] = {
    "block", "read", "queue", "idle", "room", "fill", "dry", "place", "store", "issue", "write"};

std::string Numbers(const char* verb, uint64_t pieces, uint64_t bytes) {
  return std::string(verb) + " " + std::to_string(pieces) + " pieces of " + std::to_string(bytes) +
         " bytes";
}

}  // namespace

std::string BridgeFigures::Sentence() const {
  if (sent_ == 0 && received_ == 0) return {};
  auto times = [&](int first, int last) {
    std::string text;
    for (int stage = first; stage <= last; ++stage) {
      char time[64];
      std::snprintf(time, sizeof(time), "%s%s %.1f", stage == first ? "" : ", ", kNames[stage],
                    static_cast<double>(stages_[static_cast<size_t>(stage)].load()) / 1e6);
      text += time;
    }
    return " (ms: " + text + ")";
  };
  return "bridges " + Numbers("sent", sent_, sent_bytes_) + times(kBlock, kFill) + ", " +
         Numbers("received", received_, received_bytes_) + ", " + std::to_string(ordinary_.load()) +
         " in ordinary memory" + times(kDry, kWrite);
}

}  // namespace longwire::worker
