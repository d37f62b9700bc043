#include "server/daemon/sessions/opening_times.h"

#include <algorithm>

namespace longwire::daemon {

void OpeningTimes::Add(std::chrono::nanoseconds time) {
  const double seconds = std::chrono::duration<double>(time).count();
  const auto* bound = std::ranges::lower_bound(kBounds, seconds);
  counts_[static_cast<size_t>(bound - kBounds.begin())].fetch_add(1);
  nanoseconds_.fetch_add(static_cast<uint64_t>(time.count()));
}

OpeningTimes::Figures OpeningTimes::Get() const {
  Figures figures;
  for (size_t i = 0; i < counts_.size(); ++i) figures.counts[i] = counts_[i].load();
  figures.seconds = static_cast<double>(nanoseconds_.load()) / 1e9;
  return figures;
}

}  // namespace longwire::daemon
